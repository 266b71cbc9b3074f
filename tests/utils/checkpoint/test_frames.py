"""What is compared between the two runs, what is kept, and what goes wrong."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import gradscope as gs
from gradscope.utils import checkpoint as module
from gradscope.utils.checkpoint import CheckpointError, checkpoint
from tests.utils.checkpoint.functions import Reentrant, leaf, wave


@Reentrant
def test_what_is_inside_is_not_kept_and_nothing_leaks(reentrant: bool) -> None:
    kept: list[Any] = []

    def inside(t: Any) -> Any:
        hidden = t.exp()
        kept.append(weakref.ref(hidden))
        return hidden.sin()

    gc.disable()
    try:
        x = leaf()
        y = checkpoint(inside, x, use_reentrant=reentrant)
        assert kept[0]() is None
        y.sum().backward()
        assert kept[1]() is None
        del x
        loss = weakref.ref(y)
        del y
        assert loss() is None
    finally:
        gc.enable()


def test_a_graph_holds_the_arguments_alone() -> None:
    x = gs.ones(1000, requires_grad=True)

    def deep(t: Any) -> Any:
        for _ in range(10):
            t = t.sin().exp()
        return t

    assert gs.inspect.memory(checkpoint(deep, x, use_reentrant=False).sum()).total == 0
    assert gs.inspect.memory(deep(x).sum()).total == 11 * 4000


def test_it_stops_as_soon_as_it_can() -> None:
    steps: list[str] = []

    def inside(t: Any) -> Any:
        hidden = t.exp()
        steps.append("exp")
        result = hidden + 1  # saves nothing
        steps.append("add")
        return result

    def run(**options: Any) -> list[str]:
        steps.clear()
        checkpoint(inside, leaf(), use_reentrant=False, **options).sum().backward()
        return steps[2:]

    assert run() == []
    assert run(early_stop=False) == ["exp", "add"]
    with module.set_checkpoint_early_stop(False):
        assert run() == ["exp", "add"]
    assert run() == []


def changing(*forms: Any) -> Any:
    """Return a function that computes one thing the first time, and another the second."""
    turns = iter(forms)
    return lambda t: next(turns)(t)


def failure(*forms: Any, **options: Any) -> str:
    y = checkpoint(changing(*forms), leaf(), use_reentrant=False, **options)
    with pytest.raises(CheckpointError) as raised:
        y.sum().backward()
    return str(raised.value)


def test_fewer_tensors_the_second_time() -> None:
    text = failure(wave, gs.exp)
    assert "Number of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1." in text
    assert "debug=True" in text


def test_more_tensors_the_second_time() -> None:
    assert failure(gs.exp, wave, early_stop=False).startswith("trying to save more tensors during recomputation")


def test_other_shapes_the_second_time() -> None:
    text = failure(gs.exp, lambda t: t[:2].exp())
    assert "tensor at position 0:\nsaved metadata: [3], gradscope.float32, cpu\nrecomputed metadata: [2]" in text


def test_other_shapes_are_not_looked_at_when_nobody_asks() -> None:
    y = checkpoint(changing(gs.exp, lambda t: t[:2].exp()), leaf(), use_reentrant=False, determinism_check="none")
    with pytest.raises((RuntimeError, ValueError)) as raised:
        y.sum().backward()
    assert not isinstance(raised.value, CheckpointError)


def test_the_first_operator_that_differs_is_named() -> None:
    def first(t: Any) -> Any:
        return t.exp().sin()

    def second(t: Any) -> Any:
        return t.exp()

    text = failure(first, second, debug=True)
    line = first.__code__.co_firstlineno + 1
    assert text.endswith(
        "The operators differ from number 2 on:\n"
        f"  in the forward pass:  sin -> [3] at {__file__}:{line}\n  computed again:       none"
    )
    with module.set_checkpoint_debug_enabled(True):
        assert "differ from number 2 on" in failure(first, second)


def test_an_argument_that_was_written_is_refused() -> None:
    x = leaf()
    hidden = x * 1
    y = checkpoint(wave, hidden, use_reentrant=False)
    with gs.no_grad():
        hidden.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_error_the_second_time_is_that_error() -> None:
    def broken(t: Any) -> Any:
        raise KeyError("gone")

    y = checkpoint(changing(gs.exp, broken), leaf(), use_reentrant=False)
    with pytest.raises(KeyError, match="gone"):
        y.sum().backward()
    x = leaf()
    checkpoint(gs.exp, x, use_reentrant=False).sum().backward()
    assert gs.equal(x.grad, x.detach().exp())
