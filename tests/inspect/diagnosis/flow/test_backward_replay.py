"""A backward run again beside the program gives the program's gradients, and leaves no trace."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.diagnosis.flow.backward_replay import BackwardReplay

OPERATORS = {
    "mul": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "tanh": lambda x, y: x.tanh(),
    "row": lambda x, y: x * y[:1],
    "column": lambda x, y: x + y.sum(1, keepdim=True),
    "scalar": lambda x, y: x * y.mean(),
    "matmul": lambda x, y: x @ y.t(),
    "unbind": lambda x, y: x.unbind()[1] * y,
}


def gradients(loss, grad=None):
    adapter, found = adapter_for(loss), {}

    def visit(node, grads, produced):
        leaf = adapter.variable(node)
        if leaf is not None:
            found[id(leaf)] = grads[0].tolist()

    BackwardReplay(adapter, loss).run(visit, grad)
    return found


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_gradients_are_those_of_backward(steps):
    leaves = [gs.linspace(-1, 1, 9, dtype=gs.float64).reshape(3, 3).requires_grad_() for _ in range(2)]
    values = list(leaves)
    for name, a, b in steps:
        values.append(OPERATORS[name](values[a % len(values)], values[b % len(values)]).tanh())
    loss = sum((v.sum() for v in values), gs.zeros((), dtype=gs.float64))
    found = gradients(loss)
    assert all(leaf.grad is None for leaf in leaves)
    loss.backward()
    for leaf in leaves:
        assert found[id(leaf)] == [pytest.approx(row) for row in leaf.grad.tolist()]


def test_with_a_gradient_and_without_hooks(fw):
    w, heard = fw.ones(3, requires_grad=True), []
    w.register_hook(heard.append)
    y = w * 2
    y.register_hook(heard.append)
    assert gradients(y, fw.full((3,), 5.0)) == {id(w): [10.0, 10.0, 10.0]}
    assert gradients(y.sum()) == {id(w): [2.0, 2.0, 2.0]}
    assert heard == []
    y.sum().backward()
    assert len(heard) == 2


def test_custom_functions(fw):
    class Cube(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    w = fw.full((2,), 2.0, requires_grad=True)
    assert gradients(Cube.apply(w).sum()) == {id(w): [12.0, 12.0]}
