"""Regions that are computed again in the backward pass, under the instruments."""

import importlib

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import NOT_TOLD, adapter_for
from gradscope.inspect.adapters.protocol import Observer
from tests.inspect.sessions import debugging, wait


def checkpoint_of(fw):
    return importlib.import_module(f"{fw.__name__}.utils.checkpoint").checkpoint


def leaf(fw):
    return fw.tensor([1.0, 2.0], requires_grad=True)


class Names(Observer):
    def __init__(self, adapter):
        self.adapter, self.tasks, self.nodes = adapter, 0, []

    def task_started(self, task):
        self.tasks += 1

    def node_exited(self, call):
        self.nodes.append(self.adapter.node_name(call.node))


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_backward_that_runs_and_the_one_inside(fw, reentrant):
    x = leaf(fw)
    names = Names(adapter_for(x))
    with names.adapter.observe(names, forward=True, backward=True):
        checkpoint_of(fw)(lambda t: t.exp().log(), x, use_reentrant=reentrant).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, 1.0])
    assert names.tasks == (2 if reentrant else 1)
    inside = ["LogBackward0", "ExpBackward0", "AccumulateGrad"]
    around = ["CheckpointFunctionBackward", "AccumulateGrad"] if reentrant else []
    assert names.nodes == ["SumBackward0", *inside, *around]


def test_a_reentrant_one_says_that_it_cannot_be_looked_into(fw):
    x = leaf(fw)
    adapter = adapter_for(x)
    y = checkpoint_of(fw)(fw.exp, x, use_reentrant=True)
    assert "recomputed" in adapter.blind(y.grad_fn)
    assert adapter.blind(y.sum().grad_fn) == ""


def test_looking_at_what_is_saved_computes_nothing(fw):
    calls = []

    def counted(t):
        calls.append(1)
        return t.exp()

    with debugging(lambda: checkpoint_of(fw)(counted, leaf(fw), use_reentrant=False).sum().backward()) as session:
        session.start()
        assert wait(session) == "paused before"
        session.step()
        assert wait(session) == "paused before"
        assert session.nodes[session.current].name == "ExpBackward0"
        session.evaluate("saved.result")
        assert [view.name for view in session.nodes[session.current].saved] == ["result"]
        assert len(calls) == 1
        session.cont()
        assert wait(session) == "finished"
    assert len(calls) == 2


def test_it_holds_no_memory(fw):
    x = fw.ones(1000, requires_grad=True)
    loss = checkpoint_of(fw)(lambda t: t.sin().sin().sin(), x, use_reentrant=False).sum()
    assert gi.memory(loss).total == 0


def test_a_reentrant_one_is_not_run_beside_the_program(fw):
    x, w = leaf(fw), leaf(fw)
    loss = (checkpoint_of(fw)(lambda t: (t * w).exp(), x, use_reentrant=True) * 2).sum()
    with pytest.raises(RuntimeError) as refused:
        gi.gradient_flow({"x": x}, loss)
    if str(refused.value) == NOT_TOLD:
        pytest.skip(NOT_TOLD.partition("\n")[0])
    assert "runs a backward of its own" in str(refused.value)
    with debugging(loss.backward) as session:
        session.start()
        assert wait(session) == "paused before"
        with pytest.raises(ValueError, match=r"CheckpointFunctionBackward raised RuntimeError: .* fills the \.grad"):
            session.what_if(0, 2.0)
    assert (x.grad, w.grad) == (None, None)
