"""What-if: the answer is what a run with that gradient gives, and the program does not notice the question."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.inspect import HistoryPolicy, WhatIf
from gradscope.inspect.debugging.session.debugger import Debugger

from ...sessions import debugging, mlp, wait


def loss_of(model):
    gs.manual_seed(1)
    x = gs.randn(8, 3)
    return (model(x) ** 2).mean() + (model[0].weight * model[0].weight).sum() * 0.1


def gradients_with(index, factor):
    """Return the gradients of a run in which the gradient into node `index` is scaled."""
    model = mlp()
    with debugging(lambda: loss_of(model).backward()) as session:
        session.start()
        wait(session)
        if index:
            session.step(index)
            wait(session)
        session.scale_grad(0, factor)
        session.cont()
        assert wait(session) == "finished"
    return {name: np.linalg.norm(p.grad.numpy()) for name, p in model.named_parameters()}


@pytest.mark.parametrize("index", range(12))
def test_it_tells_what_a_run_with_that_gradient_gives(index):
    plain, scaled = gradients_with(0, 1), gradients_with(index, 3)
    model = mlp()
    with debugging(lambda: loss_of(model).backward()) as session:
        session.start()
        wait(session)
        if index:
            session.step(index)
            wait(session)
        found = session.what_if(0, "grad * 3")
        assert isinstance(found, WhatIf)
        assert (found.index, found.slot, found.complete) == (index, 0, True)
        assert found.norm_after == pytest.approx(3 * found.norm_before, rel=1e-6)
        assert {change.parameter for change in found.changes} <= set(plain)
        for change in found.changes:
            assert change.before == pytest.approx(plain[change.parameter], rel=1e-5)
            assert change.after == pytest.approx(scaled[change.parameter], rel=1e-5)
        later = session.what_if(0, "grad * 3")
        assert later == found


def clip(grad):
    return grad.clamp(-1, 1)


def see(*_):
    return None


def hooked(framework):
    """Return the backward of a loss with hooks of every kind, and what it has called."""
    weight = framework.ones(3, requires_grad=True)
    weight.register_hook(clip)
    weight.register_post_accumulate_grad_hook(see)
    hidden = weight.exp()
    hidden.register_hook(clip)
    hidden.register_hook(see).remove()
    hidden.tanh().sum().backward()


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_hooks_that_were_left_out_are_named(framework):
    framework = pytest.importorskip(framework)
    here, clips, sees = "test_what_if.py", clip.__code__.co_firstlineno, see.__code__.co_firstlineno
    at_leaf = [
        f"clip ({here}:{clips}) of node 3 AccumulateGrad weight",
        f"see ({here}:{sees}) of node 3 AccumulateGrad weight",
    ]
    with debugging(lambda: hooked(framework)) as session:
        session.start()
        wait(session)
        found = session.what_if(0, "grad * 100")
        assert list(found.hooks_left_out) == [f"clip ({here}:{clips}) of node 2 ExpBackward0", *at_leaf]
        assert f"\n  without the hook clip ({here}:{clips}) of node 2 ExpBackward0\n" in str(found)
        session.run_to(2)
        wait(session)
        assert list(session.what_if(0, 0.0).hooks_left_out) == at_leaf, "the hook before a node has run where it stands"


def test_hooks_of_a_node():
    weight = gs.ones(3, requires_grad=True)
    hidden = weight.exp()
    hidden.grad_fn.register_prehook(clip)
    hidden.grad_fn.register_hook(see)
    with debugging(hidden.sum().backward) as session:
        session.start()
        wait(session)
        assert [text.split()[0] for text in session.what_if(0, 2.0).hooks_left_out] == ["clip", "see"]
        session.run_to(1)
        wait(session)
        assert [text.split()[0] for text in session.what_if(0, 2.0).hooks_left_out] == ["see"]


def test_from_a_node_of_the_past():
    model = mlp()
    with debugging(lambda: loss_of(model).backward()) as session:
        session.start()
        wait(session)
        session.step(2)
        wait(session)
        there = session.what_if(0, 0)
        session.step(6)
        wait(session)
        session.goto(2)
        assert session.what_if(0, 0) == there
        session.cont()
        session.cont()
        assert wait(session) == "finished"


def test_the_program_does_not_notice():
    calls = []
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda grad: calls.append("leaf"))
    y = x.exp()
    y.register_hook(lambda grad: calls.append("tensor"))
    z = (y * y).sum()
    version = y._version
    with debugging(z.backward) as session:
        session.start()
        wait(session)
        (change,) = session.what_if(0, 5.0).changes
        assert change.relative == pytest.approx(4.0)
        assert (calls, x.grad, y._version, session.task_index) == ([], None, version, 1)
        assert len(session.tasks) == 1
        session.cont()
        assert wait(session) == "finished"
    assert calls == ["tensor", "leaf"]
    assert np.allclose(x.grad.numpy(), 2 * np.exp([2.0, 4.0]))


def test_a_value_that_does_not_fit_and_a_backward_that_has_ended():
    def run():
        for _ in range(2):
            (gs.ones(2, requires_grad=True) * 2).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        with pytest.raises(ValueError, match="there is no incoming gradient 3"):
            session.what_if(3, 1.0)
        with pytest.raises(ValueError, match="cannot take a value of shape"):
            session.what_if(0, [1.0, 2.0])
        session.step(3)
        wait(session)
        session.back()
        with pytest.raises(ValueError, match="backward 1 has ended"):
            session.what_if(0, 1.0)


def test_without_the_gradients_before_it_tells_of_what_passes_through_the_node():
    model = mlp()
    session = Debugger.for_call(lambda: loss_of(model).backward(), history=HistoryPolicy(max_bytes=0))
    try:
        session.start()
        wait(session)
        session.step(5)
        wait(session)
        found = session.what_if(0, 0)
        assert not found.complete
        assert all(change.after == 0 for change in found.changes)
        assert "through this node only" in str(found)
    finally:
        session.abort()
        wait(session)


def test_a_node_that_cannot_be_run_again_says_so():
    def run():
        x = gs.ones(2, requires_grad=True)
        y = x.exp()
        y += 1
        y.sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        with pytest.raises(ValueError, match="what-if: node 2 ExpBackward0 raised SavedTensorModifiedError"):
            session.what_if(0, 2.0)


def test_as_text():
    w = gs.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (w * w).sum().backward()) as session:
        session.start()
        wait(session)
        assert str(session.what_if(0, "grad * 3")).splitlines() == [
            "incoming gradient 0: norm 1 -> 3",
            "  parameter  norm   would be  relative change",
            "  w          4.472  13.42     2",
        ]


def test_an_infinite_gradient_beside_another_is_no_trouble_of_ours():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with debugging((x * gs.tensor([float("inf"), 1.0])).sum().backward) as session:
        session.start()
        wait(session)
        (change,) = session.what_if(0, 5.0).changes
        session.catch("inf", False)
        session.cont()
        assert wait(session) == "finished"
    assert (change.before, change.after) == (float("inf"), float("inf"))
