import gradscope as gs
from gradscope.check.watching.task_nodes import arrivals, nodes_of
from gradscope.inspect.adapters import NativeAdapter
from gradscope.runtime.engine.graph_task import GraphTask


def test_gradients_have_come_from_the_nodes_that_were_recorded_later():
    adapter = NativeAdapter()
    x = gs.ones(2, requires_grad=True)
    t = x * 1
    side, late = t.tanh(), t.exp()
    loss = (t + side).sum() + late.sum()
    task = GraphTask([loss.grad_fn], [1.0])
    assert {node.name() for node in nodes_of(adapter, task)} >= {"MulBackward0", "TanhBackward0", "AccumulateGrad"}
    # Of its three gradients the join has the addition's when exp() is about to run, and exp()'s when tanh() is.
    assert arrivals(adapter, task, (t.grad_fn, 0), late.grad_fn) == 1
    assert arrivals(adapter, task, (t.grad_fn, 0), side.grad_fn) == 2
    assert arrivals(adapter, task, (loss.grad_fn, 0), t.grad_fn) == 1
