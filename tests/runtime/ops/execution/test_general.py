"""What the step-by-step path promises beyond the operators' own tests."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.runtime import events
from gradscope.runtime.ops.execution import general


@pytest.mark.parametrize(
    "call",
    [gs.sin, gs.relu, lambda x: x * x, lambda x: x + 2, lambda x: x @ x, gs.sum, lambda x: gs.cat([x, x])],
    ids=["sin", "relu", "mul", "add", "matmul", "sum", "cat"],
)
def test_an_operator_that_is_only_listened_to_keeps_its_compiled_form(call, monkeypatch):
    """The step-by-step path takes four times as long."""
    x = gs.ones(2, 2, requires_grad=True)
    recorded = []
    monkeypatch.setattr(general, "run", None)
    with events.subscribe(lambda event: recorded.append(event.node), events.NodeRecorded):
        y = call(x)
    assert recorded == [y.grad_fn]


def test_out_of_another_shape_is_resized_with_pytorchs_warning():
    out = gs.zeros(7)
    with pytest.warns(UserWarning, match="was resized"):
        gs.exp(gs.zeros(2, 3), out=out)
    assert out.tolist() == [[1.0] * 3] * 2


def test_a_refused_out_is_left_as_it_was():
    out = gs.zeros(7, dtype=gs.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        gs.exp(gs.zeros(2, 3), out=out)
    assert out.shape == (7,)
    assert out._version == 0


def test_a_failed_in_place_operator_leaves_data_version_and_history():
    x = gs.ones(2, 3, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        y.mul_(gs.ones(4, 2, 3))
    with pytest.raises(RuntimeError, match="size of tensor a"):
        y.add_(gs.ones(5))
    assert (y._version, y.grad_fn, y.tolist()) == (0, node, [[2.0] * 3] * 2)


@pytest.mark.parametrize("operand", ["text", None, [1, 2]])
def test_an_operand_that_is_no_tensor(operand):
    with pytest.raises(TypeError, match="must be Tensor, not"):
        gs.mul(gs.ones(2), operand)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)") as caught:
        gs.ones(4, 2) + gs.ones(4, 3)
    assert "add(self: float32 [4, 2], other: float32 [4, 3])" in str(caught.value)


def test_mixed_dtypes_promote_and_gradients_come_back_in_the_leafs():
    x = gs.ones(2, requires_grad=True)
    y = x * gs.tensor([2, 3])
    assert y.dtype is gs.float32
    z = x * gs.ones(2, dtype=gs.float64)
    assert z.dtype is gs.float64
    (y.sum() + z.sum()).backward()
    assert x.grad.dtype is gs.float32
    assert x.grad.tolist() == [3.0, 4.0]


class Money:
    def __radd__(self, other):
        return "asked"

    def __eq__(self, other):
        return True

    __hash__ = None


def test_a_foreign_operand_gets_its_turn():
    assert gs.ones(2) + Money() == "asked"
    assert (gs.ones(2) == None) is False  # noqa: E711
    assert gs.ones(2) == Money()
    with pytest.raises(TypeError, match="unsupported operand"):
        gs.ones(2) - "text"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **out: gs.sum(x, 1, **out),
        lambda x, **out: gs.mean(x, **out),
        lambda x, **out: gs.prod(x, 0, **out),
        lambda x, **out: gs.var(x, 0, **out),
        lambda x, **out: gs.std(x, 0, **out),
        lambda x, **out: gs.norm(x, dim=1, **out),
        lambda x, **out: gs.softmax(x, 0, **out),
        lambda x, **out: gs.log_softmax(x, 0, **out),
        lambda x, **out: gs.matmul(x, x, **out),
        lambda x, **out: gs.div(x, x, rounding_mode="floor", **out),
        lambda x, **out: gs.cat([x, x], **out),
        lambda x, **out: gs.stack([x, x], **out),
    ],
)
def test_composites_and_joins_write_into_out(call):
    x = gs.tensor([[1.0, 2.0], [3.0, 5.0]])
    out = gs.empty(0)
    assert call(x, out=out) is out
    assert out.tolist() == call(x).tolist()
    assert out._version == 1
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(x.requires_grad_(), out=gs.empty(0))
