"""Taking the graph of a backward that a program runs."""

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.debuggee.program import CallProgram
from gradscope.inspect.graphs.graph_capture import GraphCapture


def capture(function, **options):
    program = CallProgram(function)
    found = GraphCapture(program, **options)
    found.run()
    return found, program


def test_the_program_is_ended_at_the_backward_that_was_asked_for():
    w = gs.ones(2, requires_grad=True)
    steps = []

    def train():
        for step in range(5):
            (w * float(step)).sum().backward()
            steps.append(step)

    found, program = capture(train, backward=3)
    assert (found.backwards, steps, program.exit_status) == (3, [0, 1], 0)
    assert [(d["operator"], d["parameter"]) for _, d in found.graph.nodes(data=True)][-1] == ("AccumulateGrad", "w")
    assert w.grad.tolist() == [1.0, 1.0]  # of the first two


def test_gradients_are_those_of_the_engine_and_modules_are_known():
    net = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.Tanh())
    x = gs.ones(4, 3)
    net(x).sum().backward()
    expected = net[0].weight.grad.norm().item()

    def train():
        net.zero_grad()
        net(x).sum().backward()

    found, _ = capture(train, gradients=True)
    graph = found.graph
    weight = graph.nodes[gi.find_node(graph, "0.weight")]
    assert weight["grad_outputs"][0].norm == pytest.approx(expected)
    assert (weight["module"], weight["state"]) == ("0", "done")
    assert graph.graph["parameters"] == ["0.weight", "0.bias"]
    assert all(data["seconds"] >= 0 for _, data in graph.nodes(data=True))


def test_a_backward_inside_a_backward_counts_and_is_not_mixed_up():
    class Nested(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with gs.enable_grad():
                gs.ones(3, requires_grad=True).exp().sum().backward()
            return grad * 2

    x = gs.ones(2, requires_grad=True)
    found, program = capture(lambda: Nested.apply(x).sum().backward(), gradients=True)
    assert program.error is None
    assert [d["operator"] for _, d in found.graph.nodes(data=True)] == ["Sum", "Nested", "AccumulateGrad"]
    inner, _ = capture(lambda: Nested.apply(x).sum().backward(), backward=2)
    assert [d["operator"] for _, d in inner.graph.nodes(data=True)] == ["Sum", "Exp", "AccumulateGrad"]


def test_no_backward_and_an_error():
    found, program = capture(lambda: None)
    assert (found.graph, found.backwards, program.exit_status) == (None, 0, 0)
    found, program = capture(lambda: 1 / 0)
    assert found.graph is None
    assert isinstance(program.error, ZeroDivisionError)
    with pytest.raises(ValueError, match="numbered from 1"):
        GraphCapture(CallProgram(lambda: None), backward=0)


def test_a_failing_backward_marks_the_node_that_failed():
    def fail(grad):
        raise ValueError("no")

    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(fail)
    found, program = capture(lambda: y.sum().backward(), gradients=True)
    states = [data.get("state") for _, data in found.graph.nodes(data=True)]
    assert states[0] == "done"
    assert isinstance(program.error, ValueError)
