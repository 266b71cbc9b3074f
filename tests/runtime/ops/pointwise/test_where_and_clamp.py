"""where, masks, clamp, interpolation, comparisons of whole tensors, distinct elements."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs


def leaf(*values: float) -> gs.Tensor:
    return gs.tensor(list(values), requires_grad=True)


def gradient(result: gs.Tensor, *inputs: gs.Tensor) -> list[Any]:
    result.sum().backward()
    return [x.grad.tolist() for x in inputs]


# --- where and masks --------------------------------------------------------------------------------------------------


def test_where_sends_each_gradient_to_its_side() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    result = gs.where(gs.tensor([True, False]), x, y)
    assert result.tolist() == [1.0, 4.0]
    assert gradient(result, x, y) == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (gs.tensor([1, 2]), 1.5, gs.float32),
        (gs.tensor([1, 2]), 3, gs.int64),
        (gs.tensor([1.0, 2.0], dtype=gs.float64), 1.5, gs.float64),
        (1, 2, gs.int64),
        (1.0, 2, gs.float32),
        (gs.tensor([1, 2]), gs.tensor(1.5), gs.float32),
    ],
)
def test_dtypes_of_where(a: Any, b: Any, expected: gs.dtype) -> None:
    condition = gs.tensor([True, False])
    assert gs.where(condition, a, b).dtype is expected
    assert gs.where(condition, b, a).dtype is expected


def test_where_alone_is_nonzero_as_a_tuple() -> None:
    rows, columns = gs.where(gs.tensor([[0, 2], [3, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    assert gs.tensor([[0, 2], [3, 0]]).nonzero().tolist() == [[0, 1], [1, 0]]
    assert tuple(gs.tensor(3.0).nonzero().shape) == (1, 0)
    assert gs.tensor(0.0).nonzero(as_tuple=True)[0].tolist() == []


def test_masks() -> None:
    x, v, mask = leaf(1.0, 2.0, 3.0), gs.tensor(9.0, requires_grad=True), gs.tensor([True, False, True])
    assert gradient(x.masked_fill(mask, v), x, v) == [[0.0, 1.0, 0.0], 2.0]
    assert x.masked_fill(mask, 0).grad_fn.name() == "MaskedFillBackward0"
    assert gs.tensor([1, 2]).masked_fill(gs.tensor([True, False]), 1.5).tolist() == [1, 2]
    y = leaf(1.0, 2.0, 3.0)
    assert gradient(y.masked_select(mask) * gs.tensor([1.0, 10.0]), y) == [[1.0, 0.0, 10.0]]
    z, source = leaf(0.0, 0.0, 0.0), leaf(1.0, 2.0, 3.0)
    scattered = z.masked_scatter(mask, source)
    assert scattered.tolist() == [1.0, 0.0, 2.0]
    assert gradient(scattered, z, source) == [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gs.where(x, x, x), "where expected condition to be a boolean tensor"),
        (lambda x: gs.where(x > 0, x, gs.zeros(3)), "must match the size of tensor|could not be broadcast"),
        (lambda x: x.masked_fill_(x, 0), "only supports boolean masks"),
        (lambda x: x.masked_fill_(x > 0, gs.zeros(2)), "only supports a 0-dimensional value tensor"),
        (lambda x: x.masked_fill_(gs.zeros(3, 2) > 0, 0), "doesn't match the broadcast shape"),
        (lambda x: x.masked_select(x), "expected BoolTensor for mask"),
        (lambda x: x.masked_scatter_(x > 0, gs.zeros(1)), "Number of elements of source < number of ones in mask"),
        (lambda x: x.clamp_(), "At least one of 'min' or 'max' must not be None"),
        (lambda x: x.lerp_(gs.tensor([1, 2]), 0.5), "expected dtype float32 for `end` but got dtype int64"),
        (lambda x: x.isclose(gs.tensor([1, 2])), "Float did not match Long"),
        (lambda x: x.long().clamp_(0.5), "can't be cast to the desired output type"),
        (lambda x: x.long().addcdiv(x.long(), x.long()), "Integer division with addcdiv is no longer supported"),
        (lambda x: gs.bincount(x), "bincount only supports 1-d non-negative integral inputs"),
    ],
)
def test_wrong_calls_change_nothing(call: Any, message: str) -> None:
    x = gs.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=message):
        call(x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


# --- clamp ------------------------------------------------------------------------------------------------------------


def test_the_bounds_themselves_pass_the_gradient() -> None:
    x = leaf(0.0, 1.0, 2.0, 3.0)
    assert gradient(x.clamp(1, 2), x) == [[0.0, 1.0, 1.0, 0.0]]


def test_bounds_that_are_tensors_get_the_gradient_outside() -> None:
    x, low, high = leaf(0.0, 1.5, 3.0), gs.tensor(1.0, requires_grad=True), gs.tensor(2.0, requires_grad=True)
    result = x.clamp(low, high)
    assert result.grad_fn.name() == "ClampBackward0"
    assert gradient(result, x, low, high) == [[0.0, 1.0, 0.0], 1.0, 1.0]


def test_crossed_bounds_give_the_upper_one_and_nan_stays() -> None:
    assert gs.tensor([0.0, math.nan]).clamp(2.0, 1.0).tolist()[0] == 1.0
    assert math.isnan(gs.tensor([math.nan]).clamp(2.0, 1.0).item())
    assert gs.tensor([1, 2]).clamp(1.5).dtype is gs.float32


def test_the_forms_of_clamp() -> None:
    x = gs.tensor([-1.0, 0.5, 2.0])
    assert x.clip(0, 1).tolist() == gs.clamp(x, 0, 1).tolist() == [0.0, 0.5, 1.0]
    assert x.clamp_min(gs.tensor(0.0)).tolist() == [0.0, 0.5, 2.0]
    assert x.clamp_max(1).tolist() == [-1.0, 0.5, 1.0]
    out = gs.zeros(3)
    assert gs.clamp(x, max=0.0, out=out) is out
    assert out.tolist() == [-1.0, 0.0, 0.0]
    assert x.clip_(0).clamp_max_(1).clamp_min_(0.75) is x
    assert (x.tolist(), x._version) == ([0.75, 0.75, 1.0], 3)


# --- interpolation, special values ------------------------------------------------------------------------------------


def test_lerp_is_exact_at_both_ends() -> None:
    a, b = gs.tensor([0.1, 1e8]), gs.tensor([0.7, 1.0])
    assert a.lerp(b, 1.0).tolist() == b.tolist()
    assert a.lerp(b, gs.tensor([0.0, 1.0])).tolist() == [a[0].item(), b[1].item()]


def test_fused_arithmetic_in_place() -> None:
    x = gs.ones(2)
    assert x.addcmul_(gs.tensor([1.0, 2.0]), gs.tensor([3.0, 4.0]), value=2).tolist() == [7.0, 17.0]
    assert x.addcdiv_(gs.ones(2), gs.full((2,), 2.0)).tolist() == [7.5, 17.5]
    assert x._version == 2


def test_nan_to_num() -> None:
    x = leaf(math.nan, math.inf, -math.inf, 1.0)
    result = x.nan_to_num(nan=5.0, posinf=6.0)
    assert result.tolist()[:2] == [5.0, 6.0]
    assert result[2].item() == gs.finfo(gs.float32).min
    assert gradient(result[3:], x) == [[0.0, 0.0, 0.0, 1.0]]


# --- comparisons, sets ------------------------------------------------------------------------------------------------


def test_comparisons_of_whole_tensors() -> None:
    x = gs.tensor([1.0, math.inf, math.nan])
    assert x.isclose(gs.tensor([1.0 + 1e-7, math.inf, math.nan])).tolist() == [True, True, False]
    assert x.isclose(x, equal_nan=True).tolist() == [True, True, True]
    assert not gs.tensor([1.0]).isclose(gs.tensor([math.inf])).item()
    assert gs.allclose(gs.ones(2), gs.ones(2) + 1e-9) is True
    assert gs.equal(gs.ones(2), gs.ones(2, dtype=gs.int64)) is True
    assert gs.equal(gs.ones(2), gs.ones(1, 2)) is False
    assert gs.tensor([1, 2**53 + 1]).isclose(gs.tensor([1, 2**53 + 1])).tolist() == [True, True]


def test_unique_and_bincount() -> None:
    x = gs.tensor([[3, 1], [1, 3]])
    assert gs.unique(x).tolist() == [1, 3]
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [[1, 0], [0, 1]], [2, 2])
    assert gs.unique(gs.tensor([[3, 1], [3, 1]]), dim=0).tolist() == [[3, 1]]
    assert gs.bincount(gs.tensor([0, 2, 2]), minlength=5).tolist() == [1, 0, 2, 0, 0]
    assert gs.bincount(gs.tensor([0, 2, 2]), gs.tensor([0.5, 1.0, 2.0])).tolist() == [0.5, 0.0, 3.0]


# --- side by side with PyTorch ----------------------------------------------------------------------------------------

CALLS: dict[str, Any] = {
    "where, numbers": lambda t, x, y: t.where(x > 0, x, 1.0) + t.where(x > 0.5, 2, y),
    "where, method": lambda t, x, y: x.where(x > 0, y),
    "masked_fill, broadcast": lambda t, x, y: x[0].masked_fill(y > 0, 2.0),
    "masked_select, broadcast": lambda t, x, y: x[0].masked_select(y > 0),
    "masked_scatter": lambda t, x, y: x.masked_scatter(x > 0, y),
    "clamp, equal bounds": lambda t, x, y: x.clamp(y, y),
    "clamp, crossed": lambda t, x, y: x.clamp(y + 1, y),
    "clamp, one tensor": lambda t, x, y: x.clamp(max=y),
    "clamp_min, ties": lambda t, x, y: x.clamp_min(x.detach()),
    "lerp": lambda t, x, y: x.lerp(y, 0.3) + x.lerp(y, y),
    "addcmul": lambda t, x, y: x.addcmul(x, y, value=-2).addcdiv(x, y),
    "in place": lambda t, x, y: x.clone().clamp_(min=-1).masked_fill_(y > 1, 3.0).lerp_(y, 0.5),
    "nonzero": lambda t, x, y: x[t.nonzero(y > 0, as_tuple=True)],
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_of_pytorch(name: str, torch: Any) -> None:
    values = numpy.random.default_rng(3).normal(size=(2, 3, 4))
    x, y = (gs.tensor(v, requires_grad=True) for v in values)
    tx, ty = (torch.tensor(v, requires_grad=True) for v in values)
    found, expected = CALLS[name](gs, x, y), CALLS[name](torch, tx, ty)
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy())
    assert found.grad_fn.name() == expected.grad_fn.name()
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    for a, b in ((x, tx), (y, ty)):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            numpy.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())


@pytest.mark.parametrize("count", [7, 3000], ids=["few", "many"])
@pytest.mark.parametrize("kind", ["e", "f", "d"])
@pytest.mark.parametrize(
    "bounds", [(-1.0, 1.0), (None, 0.5), (-0.5, None), (1.0, -1.0), (float("nan"), 1.0), (-1.0, float("inf"))], ids=str
)
def test_clamp_of_few_and_of_many_elements_is_pytorchs(torch: Any, bounds: Any, kind: str, count: int) -> None:
    x = numpy.concatenate([numpy.linspace(-3, 3, count), [numpy.nan, numpy.inf, -numpy.inf]]).astype(kind)
    numpy.testing.assert_array_equal(gs.tensor(x).clamp(*bounds).numpy(), torch.tensor(x).clamp(*bounds).numpy())
