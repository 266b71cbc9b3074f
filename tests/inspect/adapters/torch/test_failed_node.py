"""Which node of a PyTorch backward failed, found out afterwards: the one at which a session would have stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gradscope.inspect as gi
from gradscope.inspect import Debugger
from gradscope.inspect.adapters import AnyAdapter
from gradscope.inspect.debugging.stops.condition_names import frames_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def leaf() -> Any:
    return torch.full((3,), 0.5, requires_grad=True)


def double(backward: Callable[[Any, Any], Any]) -> Any:
    """Return a custom Function that doubles, with this backward."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

    Double.backward = staticmethod(backward)
    return Double


def broken(error: BaseException) -> Any:
    def raising(*_: Any) -> None:
        raise error

    return raising


def custom() -> None:
    function = double(broken(ValueError("out of cheese")))
    function.apply(leaf().exp()).tanh().sum().backward()


def custom_with_a_bad_shape() -> None:
    double(lambda ctx, grad: torch.ones(7)).apply(leaf().exp()).tanh().sum().backward()


def custom_with_too_many_gradients() -> None:
    double(lambda ctx, grad: (grad, grad)).apply(leaf().exp()).tanh().sum().backward()


def custom_that_needs_what_was_written() -> None:
    hidden = leaf().exp()
    loss = double(lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(hidden).sum()
    with torch.no_grad():
        hidden.add_(1)
    loss.backward()


def written(**options: Any) -> None:
    hidden = leaf().exp()
    loss = (hidden * hidden.relu()).tanh().sum()
    with torch.no_grad():
        hidden.add_(1)
    loss.backward(**options)


def written_and_kept() -> None:
    written(retain_graph=True)


def written_with_inputs() -> None:
    weight, other = leaf(), leaf()
    hidden = weight.exp()
    loss = (hidden.tanh() * other.exp()).sum() + hidden.sin().sum()
    with torch.no_grad():
        hidden.add_(1)
    torch.autograd.grad(loss, [weight])


def second_time() -> None:
    loss = leaf().exp().tanh().sum()
    loss.backward()
    loss.backward()


def hook_of_a_leaf() -> None:
    weight = leaf()
    weight.register_hook(broken(KeyError("hook")))
    (weight.exp() * 2).sum().backward()


def hook_after_accumulating() -> None:
    weight = leaf()
    weight.register_post_accumulate_grad_hook(broken(KeyError("hook")))
    (weight.exp() * 2).sum().backward()


def hook_of_a_result() -> None:
    hidden = leaf().exp()
    hidden.register_hook(broken(KeyError("hook")))
    hidden.tanh().sum().backward()


def not_a_number() -> None:
    with torch.autograd.detect_anomaly(check_nan=True):
        (torch.zeros(3, requires_grad=True).sqrt() * 0).exp().sum().backward()


FAILING = [
    custom,
    custom_with_a_bad_shape,
    custom_with_too_many_gradients,
    custom_that_needs_what_was_written,
    written,
    written_and_kept,
    written_with_inputs,
    hook_of_a_leaf,
    hook_after_accumulating,
    hook_of_a_result,
    not_a_number,
]


def raised_by(program: Callable[[], None]) -> BaseException:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program()
        except Exception as error:
            return error
    raise AssertionError("the program did not fail")


def found_in(error: BaseException) -> Any:
    return AnyAdapter().failed_call(error, frames_of(error))


def where_a_session_stops(program: Callable[[], None]) -> str:
    """Return the node at which a session that follows the program says that it failed."""
    session = Debugger.for_call(program)
    session.catch("nan", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.cont()
        session.wait(20)
    assert session.reason.kind in ("exception", "violation"), session.reason
    name = session.nodes[session.current].name
    session.abort()
    assert session.wait(20).ended
    return name


@pytest.mark.parametrize("program", FAILING, ids=lambda program: program.__name__)
def test_the_node_is_the_one_at_which_a_session_stops(program):
    found = found_in(raised_by(program))
    assert AnyAdapter().node_name(found.node) == where_a_session_stops(program)
    assert not any("does not say which node" in note for note in found.notes)


def test_a_custom_function_leaves_its_gradients():
    found = found_in(raised_by(custom))
    assert [grad.shape for grad in found.grad_outputs] == [(3,)]
    assert found.notes == ()


def test_the_first_node_had_what_backward_was_given():
    def given():
        hidden = leaf().exp()
        with torch.no_grad():
            hidden.add_(1)
        hidden.backward(torch.tensor([1.0, 2.0, 3.0]))

    found = found_in(raised_by(given))
    assert found.grad_outputs[0].tolist() == [1.0, 2.0, 3.0]


def test_what_is_not_known_is_said():
    found = found_in(raised_by(written))
    assert found.grad_outputs is None
    assert found.notes == ("the gradients that arrived here are not known: PyTorch has let go of them",)


def test_the_first_freed_node_is_the_likely_one_of_a_second_backward():
    found = found_in(raised_by(second_time))
    assert AnyAdapter().node_name(found.node) == where_a_session_stops(second_time) == "TanhBackward0"


def test_several_nodes_that_may_have_failed_are_named():
    def shared():
        hidden = leaf().exp().tanh()
        hidden.sum().backward()
        hidden.sin().sum().backward()

    doubt = found_in(raised_by(shared)).notes[0]
    assert doubt == (
        "PyTorch does not say which node it was: 1 is likely (it is the first that holds nothing any more), "
        "it may also be 2 TanhBackward0, 3 ExpBackward0"
    )


def test_a_hook_of_a_result_is_known_while_somebody_observes():
    def two_hooks():
        hidden = leaf().exp()
        first, second = hidden.tanh(), hidden.sin()
        first.register_hook(broken(KeyError("hook")))
        (first * 2 + second * 3).sum().backward(retain_graph=True)

    unknown = found_in(raised_by(two_hooks))
    assert "the first that may have the hook raising (test_failed_node.py:" in unknown.notes[0]
    with gi.track():
        found = found_in(raised_by(two_hooks))
    assert (AnyAdapter().node_name(found.node), found.in_hook) == ("TanhBackward0", True)
    assert len(found.notes) == 1, "only that the gradients are gone"


def test_anomaly_mode_tells_the_line():
    notes = found_in(raised_by(not_a_number)).notes
    assert any("anomaly mode: it was made at" in note and "in not_a_number" in note for note in notes)


def test_the_facts_of_a_violation_are_on_the_error():
    for program, name in ((written, "self"), (custom_that_needs_what_was_written, "saved_tensors")):
        error = raised_by(program)
        found_in(error)
        assert (error.saved_name, error.saved_version, error.current_version) == (name, 0, 1)


def test_an_error_that_another_thread_has_passed_on():
    def passed_on():
        loss = leaf().exp().sum()
        loss.backward()
        message = str(raised_by(lambda: loss.backward()))
        raise RuntimeError(message)

    found = found_in(raised_by(passed_on))
    assert AnyAdapter().node_name(found.node) == "ExpBackward0"
    assert found.notes[0] == "the traceback does not show the backward: `loss` in passed_on() may be its loss"


@pytest.mark.parametrize(
    "program",
    [
        lambda: leaf().detach().sum().backward(),
        lambda: leaf().exp().backward(),
        lambda: {}["nothing"],
    ],
    ids=["no graph", "not a scalar", "no backward"],
)
def test_a_backward_that_never_began_is_none(program):
    assert found_in(raised_by(program)) is None
