"""Variable: what it shares with its data, and what is volatile."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.autograd import Function, Variable


def volatile(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), volatile=True)


def leaf(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), requires_grad=True)


def test_variable_shares_memory_and_version():
    data = gs.ones(3)
    x = Variable(data)
    x.add_(1)
    assert isinstance(x, Variable)
    assert isinstance(data, Variable)
    assert not isinstance(3, Variable)
    assert (data.tolist(), data._version, x.requires_grad, x.volatile) == ([2.0, 2.0, 2.0], 1, False, False)


def test_a_variable_keeps_its_name():
    x = Variable(gs.ones(2), name="weights")
    assert x.name == "weights"
    assert Variable(gs.ones(2)).name is None
    x.name = "others"
    assert x.name == "others"


def test_variable_refuses_contradictions_and_numbers():
    with pytest.raises(RuntimeError, match="can't be volatile and require_grad at the same time"):
        Variable(gs.ones(2), requires_grad=True, volatile=True)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])


class Twice(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class OldTwice(Function):
    def forward(self, x, y):
        return x * 2

    def backward(self, g):
        return g * 2, None


@pytest.mark.parametrize(
    "compute",
    [
        lambda v, w: v * w,
        lambda v, w: w + v,
        lambda v, w: w * v.exp(),
        lambda v, w: v[:2] * w[:2],
        lambda v, w: v.view(3, 1),
        lambda v, w: v.t() if v.ndim == 2 else v.unsqueeze(0).t(),
        lambda v, w: gs.cat([w, v]),
        lambda v, w: gs.stack([w, v]).sum(),
        lambda v, w: v.unbind()[0],
        lambda v, w: gs.where(w > 0, w, v),
        lambda v, w: w.clone().add_(v),
        lambda v, w: w.clone().copy_(v),
        lambda v, w: w.clone()[:2].mul_(v[:2]),
        lambda v, w: gs.mul(v, 2.0, out=gs.empty(3)),
        lambda v, w: v.detach() * w,
        lambda v, w: v.long() * 1,
        lambda v, w: v.double(),
        lambda v, w: Twice.apply(w, v),
        lambda v, w: OldTwice()(w, v),
    ],
)
def test_one_volatile_input_makes_the_output_volatile(compute):
    y = compute(volatile(), leaf())
    assert (y.volatile, y.requires_grad, y.grad_fn, y.creator) == (True, False, None, None)


def test_volatile_through_an_assignment_of_elements():
    y = leaf() * 1
    sibling = y[1:]
    y[0] = volatile(5.0)[0]
    assert (y.volatile, y.grad_fn, y.requires_grad) == (True, None, False)
    assert (sibling.grad_fn, sibling.volatile, sibling.requires_grad) == (None, True, False)


def test_backward_on_volatile():
    with pytest.raises(RuntimeError, match="calling backward on a volatile variable"):
        (volatile() * leaf()).sum().backward()


def test_an_execution_engine_takes_callbacks():
    calls = []
    x = leaf()
    x.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: calls.append(x.grad.tolist())))
    x.sum().backward()
    assert calls == [[1.0, 1.0, 1.0]]
