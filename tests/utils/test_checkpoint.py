"""Checkpoints: the same gradients with less memory, by PyTorch's rules."""

from __future__ import annotations

import importlib
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.utils.checkpoint.functions import Reentrant, leaf, wave

# --- the same numbers -------------------------------------------------------------------------------------------------


@Reentrant
def test_gradients_are_those_without(reentrant: bool) -> None:
    x, other = leaf(), leaf()
    wave(other * 2).sum().backward()
    checkpoint(wave, x * 2, use_reentrant=reentrant).sum().backward()
    assert gs.equal(x.grad, other.grad)


@Reentrant
def test_parameters_inside_get_theirs(reentrant: bool) -> None:
    layer, x = gs.nn.Linear(3, 2), leaf()
    layer(x).tanh().sum().backward()
    expected = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    checkpoint(lambda t: layer(t).tanh(), x, use_reentrant=reentrant).sum().backward()
    assert all(gs.equal(p.grad, e) for p, e in zip(layer.parameters(), expected, strict=True))


@Reentrant
def test_the_same_random_numbers_are_drawn_and_the_others_go_on(reentrant: bool) -> None:
    def noisy(t: Any) -> Any:
        return gs.nn.functional.dropout(t, 0.5) * t.exp()

    def run(call: Any) -> tuple[Any, list[float]]:
        gs.manual_seed(0)
        x = gs.ones(64, requires_grad=True)
        y = call(noisy, x)
        between = gs.rand(2).tolist()
        y.sum().backward()
        return x.grad, [*between, *gs.rand(2).tolist()]

    plain, numbers = run(lambda f, x: f(x))
    found, others = run(lambda f, x: checkpoint(f, x, use_reentrant=reentrant))
    assert gs.equal(found, plain)
    assert others == numbers


def test_without_preserve_rng_state_others_are_drawn() -> None:
    def noisy(t: Any) -> Any:
        return gs.nn.functional.dropout(t, 0.5) * t

    gs.manual_seed(0)
    x = gs.ones(64, requires_grad=True)
    y = checkpoint(noisy, x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not gs.equal(x.grad, 2 * y.detach())


def test_gradients_of_gradients() -> None:
    x = leaf()

    def second(call: Any) -> Any:
        (grad,) = gs.autograd.grad(call(x).sum(), x, create_graph=True)
        return gs.autograd.grad((grad * grad).sum(), x)[0]

    assert gs.equal(second(lambda t: checkpoint(wave, t, use_reentrant=False)), second(wave))


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True:UserWarning")
@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_one_inside_the_other(outer: bool, inner: bool) -> None:
    x, other = leaf(), leaf()

    def both(t: Any) -> Any:
        return checkpoint(wave, t * 2, use_reentrant=inner).cos()

    checkpoint(both, x, use_reentrant=outer).sum().backward()
    wave(other * 2).cos().sum().backward()
    assert gs.equal(x.grad, other.grad)


def test_a_graph_that_is_kept_can_run_again() -> None:
    x, calls = leaf(), []

    def counted(t: Any) -> Any:
        calls.append(1)
        return wave(t)

    loss = checkpoint(counted, x, use_reentrant=False).sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    loss.backward()
    assert gs.equal(x.grad, 2 * once)
    assert len(calls) == 3
    with pytest.raises(gs.SavedTensorFreedError):
        loss.backward()


def test_all_kinds_of_arguments_and_results() -> None:
    def several(t: Any, factor: int, *, shift: Any) -> tuple[Any, int, Any]:
        return (t * factor + shift).exp(), 5, t.detach()

    x, shift = leaf(), leaf()
    y, number, plain = checkpoint(several, x, 3, shift=shift, use_reentrant=False)
    y.sum().backward()
    assert (number, plain.requires_grad) == (5, False)
    assert gs.equal(x.grad, 3 * shift.grad)
    y, number = checkpoint(lambda t, factor: (t * factor, 5), x, 3, use_reentrant=True)
    assert (y.grad_fn.name(), number) == ("CheckpointFunctionBackward", 5)


def test_under_no_grad_it_is_a_plain_call() -> None:
    with gs.no_grad():
        y = checkpoint(wave, leaf(), use_reentrant=False)
    assert (y.requires_grad, y.grad_fn) == (False, None)


@pytest.mark.parametrize("segments", [1, 2, 3])
@Reentrant
def test_a_sequence_in_segments(segments: int, reentrant: bool) -> None:
    gs.manual_seed(0)
    model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.Linear(4, 3), gs.nn.ReLU(), gs.nn.Linear(3, 1))
    x, other = leaf(), leaf()
    model(x).sum().backward()
    checkpoint_sequential(model, segments, other, use_reentrant=reentrant).sum().backward()
    assert gs.equal(x.grad, other.grad)


def test_options_that_do_not_go_together() -> None:
    x = leaf()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint(gs.exp, x, use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(gs.exp, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(gs.exp, x, use_reentrant=False, determinism_check="some")
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint_sequential([gs.exp], 1, x, use_reentrant=False, foo=1)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(gs.exp, x)


def test_what_a_reentrant_one_cannot_do() -> None:
    x = leaf()
    for ask in (lambda y: gs.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
            ask(checkpoint(gs.exp, x, use_reentrant=True).sum())
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(gs.nn.Linear(3, 1), gs.ones(3), use_reentrant=True)
    assert not y.requires_grad

    def quiet(t: Any) -> Any:
        with gs.no_grad():
            return t * 2

    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        checkpoint(quiet, x, use_reentrant=True).sum().backward()


# --- as in PyTorch ----------------------------------------------------------------------------------------------------


def program(lib: Any, reentrant: bool) -> list[Any]:
    """Train three layers with a checkpoint each; return the losses and the parameters."""
    call = importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    rng = numpy.random.default_rng(0)
    weights = [lib.tensor(rng.normal(size=(4, 4)), requires_grad=True) for _ in range(3)]
    x = lib.tensor(rng.normal(size=(5, 4)), requires_grad=True)
    optimizer = lib.optim.SGD(weights, lr=0.1)
    losses = []
    for _ in range(4):
        hidden = x
        for weight in weights:
            hidden = call(lambda t, w: (t @ w).tanh(), hidden, weight, use_reentrant=reentrant)
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, *(w.detach().numpy() for w in weights), x.grad.numpy()]


@pytest.mark.torch
@Reentrant
def test_a_training_run_is_that_of_pytorch(torch: Any, reentrant: bool) -> None:
    for mine, theirs in zip(program(gs, reentrant), program(torch, reentrant), strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("order", ["first", "again", "backward"])
def test_gradients_inside_of_a_checkpoint_that_runs_to_the_end(torch: Any, order: str) -> None:
    """While the function runs, its own backward computes again what it has saved so far, and then more."""

    def program(m: Any, early_stop: bool) -> list[float]:
        def function(x: Any) -> Any:
            y = x.sin()
            if order == "backward":
                other = m.ones(2, requires_grad=True)
                (other * x.detach()).sum().backward()
                return y * other.grad
            (gradient,) = m.autograd.grad(y.sum(), x, create_graph=True, retain_graph=order == "again" or None)
            return y * gradient.exp()

        checkpoints = importlib.import_module(f"{m.__name__}.utils.checkpoint")
        x = m.tensor([0.5, 1.0], requires_grad=True)
        with checkpoints.set_checkpoint_early_stop(early_stop):
            total = checkpoints.checkpoint(function, x, use_reentrant=False).sum()
            total.backward(retain_graph=order == "again")
            if order == "again":
                total.backward()
        return x.grad.tolist()

    assert program(gs, False) == program(gs, True) == pytest.approx(program(torch, False), rel=1e-5)
