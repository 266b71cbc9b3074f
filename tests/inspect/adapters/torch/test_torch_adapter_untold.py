"""On PyTorch 2.4, which does not tell what gradients a node expects: what needs it says so, the rest goes on."""

import traceback

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import NOT_TOLD, adapter_for, expected_spec
from gradscope.inspect.diagnosis.flow.backward_replay import BackwardReplay
from gradscope.inspect.graphs.formats.dot import to_dot
from tests.inspect.sessions import debugging, wait

torch = pytest.importorskip("torch")

from gradscope.inspect.adapters.torch import failed_node, numpy_conversion  # noqa: E402
from gradscope.inspect.adapters.torch import torch_adapter as adapter_module  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _untold(monkeypatch):
    def outputs_of(node):
        leaf = getattr(node, "variable", None)
        return () if leaf is None else (numpy_conversion.spec_of(leaf),)

    monkeypatch.setattr(adapter_module, "outputs_of", outputs_of)
    monkeypatch.setattr(failed_node, "outputs_of", outputs_of)


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_of_a_leaf_it_is_known():
    x = leaf()
    adapter = adapter_for(x)
    node = (x * 2).grad_fn
    assert expected_spec(adapter, node, 0) is None
    assert expected_spec(adapter, node.next_functions[0][0], 0) == adapter.spec(x)


def test_a_graph_has_no_shapes_of_results():
    x = leaf()
    graph = gi.graph((x * 2).exp().sum(), params={"x": x})
    assert [data["outputs"] for _, data in graph.nodes(data=True)][:3] == [(), (), ()]
    assert to_dot(graph).startswith("digraph")


def test_no_backward_is_run_beside_the_program():
    x = leaf()
    loss = (x.exp() * 2).sum()
    with pytest.raises(RuntimeError) as raised:
        BackwardReplay(adapter_for(loss), loss).run(lambda *unused: None)
    assert str(raised.value) == NOT_TOLD


def test_what_if_says_so_and_gradients_can_be_edited():
    x = leaf()
    with debugging(lambda: (x.exp() * 2).sum().backward()) as session:
        session.start()
        assert wait(session) == "paused before"
        with pytest.raises(ValueError, match="does not tell what gradient a node expects"):
            session.what_if(0, 3.0)
        session.set_grad(0, 3.0)
        session.cont()
        assert wait(session) == "finished"
    assert torch.equal(x.grad, 6 * x.detach().exp())


def test_the_gradient_with_which_a_failed_backward_began():
    hidden = leaf().exp()
    with torch.no_grad():
        hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        hidden.backward(torch.tensor([3.0, 4.0]))
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)][::-1]
    call = adapter_for(hidden).failed_call(raised.value, frames)
    assert call.node.name() == "ExpBackward0"
    assert call.grad_outputs[0].tolist() == [3.0, 4.0]
