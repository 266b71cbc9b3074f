"""Reductions, statistics, order and rearrangements: what the tests of every operator do not reach."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.engine import backward


def leaf(values: Any) -> gs.Tensor:
    return gs.tensor(values, dtype=gs.float64, requires_grad=True)


def gradient(result: gs.Tensor, x: gs.Tensor) -> Any:
    (found,) = backward.grad([result.sum()], [x])
    return found.tolist()


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
    ],
)
def test_the_gradient_of_a_product_with_zeros(values: list[float], expected: list[float]) -> None:
    x = leaf(values)
    assert gradient(x.prod(), x) == expected
    assert gradient(x.prod(0, keepdim=True), x) == expected
    assert gradient(x.cumprod(0)[-1], x) == expected


FINITE_FACTORS: list[Any] = [
    [[2.0, 3.0], [1.0, -2.0]],
    [[2.0, 0.0, 4.0], [1.0, -2.0, 3.0]],
    [[0.0, 5.0, 0.0], [0.0, -2.0, 3.0]],
    [[0.0, 0.0, 0.0]],
    [[0.0]],
]
EXTREME_FACTORS: list[Any] = [
    [[2.0, math.inf, 4.0], [1.0, -2.0, 3.0]],
    [[2.0, math.inf, 0.0], [math.inf, -2.0, 3.0]],
    [[0.0, math.inf, 0.0], [math.inf, -2.0, 3.0]],
    [[0.0, math.nan, 2.0], [1.0, -2.0, 3.0]],
    [[1e-200, 1e-200, 1e300], [1e200, 1e200, 3.0]],
]


def gradient_of_product(lib: Any, x: Any, dim: int | None, create_graph: bool) -> Any:
    product = x.prod() if dim is None else x.prod(dim)
    (found,) = lib.autograd.grad(product.sum(), x, create_graph=create_graph)
    return found


@pytest.mark.torch
@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("values", FINITE_FACTORS + EXTREME_FACTORS)
def test_a_product_is_divided_by_each_factor_unless_one_is_zero(
    torch: Any, values: Any, create_graph: bool, dim: int | None
) -> None:
    x, other = leaf(values), torch.tensor(values, dtype=torch.float64, requires_grad=True)
    with numpy.errstate(all="ignore"):
        found = gradient_of_product(gs, x, dim, create_graph)
    expected = gradient_of_product(torch, other, dim, create_graph)
    assert found.requires_grad == expected.requires_grad
    numpy.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


@pytest.mark.torch
@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("values", FINITE_FACTORS)
def test_the_second_derivative_of_a_product_with_zeros(torch: Any, values: Any, dim: int | None) -> None:
    def second(lib: Any) -> Any:
        x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
        weights = lib.arange(1.0, 1.0 + x.numel(), dtype=lib.float64).reshape(x.shape)
        first = gradient_of_product(lib, x, dim, True)
        return lib.autograd.grad((first * weights).sum() + 0 * x.sum(), x)[0].tolist()

    assert second(gs) == second(torch)


@pytest.mark.parametrize("values", FINITE_FACTORS)
def test_the_gradient_of_a_product_with_zeros_on_another_device(other_device: str, values: Any) -> None:
    x, moved = leaf(values), leaf(values).to(other_device).detach().requires_grad_()
    for dim in (None, 0):
        expected = gradient_of_product(gs, x, dim, False).tolist()
        assert gradient_of_product(gs, moved, dim, False).tolist() == expected


def test_a_product_saves_its_result_which_may_not_be_written() -> None:
    x = leaf([2.0, 3.0])
    for product in (x.prod(), x.prod(0)):
        assert product.grad_fn._saved_result.tolist() == 6.0
        assert product.grad_fn._saved_self is x
        product.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()


def test_the_second_derivative_of_a_product_with_two_zeros() -> None:
    x = leaf([0.0, 0.0, 4.0])
    (first,) = backward.grad([x.prod()], [x], create_graph=True)
    assert gradient(first[0], x) == [0.0, 4.0, 0.0]


def test_integers_are_added_and_multiplied_as_int64() -> None:
    x = gs.tensor([[1, 2], [3, 4]], dtype=gs.int32)
    for result in (x.prod(), x.cumsum(0), x.cumprod(1), x.trace(), x.sum(1)):
        assert result.dtype is gs.int64
    assert x.prod().item() == 24


# --- extremes ---------------------------------------------------------------------------------------------------------


def test_ties_share_the_gradient_of_a_maximum_of_all() -> None:
    x = leaf([1.0, 3.0, 3.0])
    assert gradient(x.max(), x) == [0.0, 0.5, 0.5]
    assert gradient(x.amax(0), x) == [0.0, 0.5, 0.5]
    assert gradient(x.max(0).values, x) == [0.0, 1.0, 0.0]


def test_maximum_along_a_dimension_is_a_named_tuple() -> None:
    x = leaf([[1.0, 5.0], [7.0, 2.0]])
    values, indices = result = x.max(dim=1, keepdim=True)
    assert (values.tolist(), indices.tolist()) == ([[5.0], [7.0]], [[1], [0]])
    assert result.values is values
    assert values.grad_fn.name() == "MaxBackward0"
    assert not indices.requires_grad
    assert indices.dtype is gs.int64
    assert x.min().grad_fn.name() == "MinBackward1"
    assert gs.max(x, gs.tensor(4.0, dtype=gs.float64)).tolist() == [[4.0, 5.0], [7.0, 4.0]]


def test_indices_written_after_forward_are_noticed() -> None:
    values, indices = leaf([1.0, 2.0]).sort()
    indices.add_(1)
    with pytest.raises(RuntimeError, match=r"output 1 of SortBackward0, is at version 1; expected version 0"):
        values.sum().backward()


def test_nan_wins_and_gets_the_gradient() -> None:
    x = leaf([1.0, math.nan, 3.0])
    assert math.isnan(x.max().item())
    assert x.argmax().item() == 1
    assert gradient(x.max(), x) == [0.0, 1.0, 0.0]
    assert math.isnan(x.median().item())
    assert x.median(0).indices.item() == 1


def test_argmax_and_truth() -> None:
    x = gs.tensor([[1.0, 9.0], [0.0, 2.0]])
    assert x.argmax().item() == 1
    assert x.argmin(0, keepdim=True).tolist() == [[1, 1]]
    assert x.all(1).tolist() == [True, False]
    assert x.any().item() is True
    assert gs.tensor([0, 2], dtype=gs.uint8).any().dtype is gs.uint8
    assert x.count_nonzero(0).tolist() == [1, 2]


# --- statistics -------------------------------------------------------------------------------------------------------


def test_the_ways_to_ask_for_a_variance() -> None:
    x = gs.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]], dtype=gs.float64)
    array = x.numpy()
    assert x.var().item() == pytest.approx(array.var(ddof=1))
    assert x.var(False).item() == pytest.approx(array.var())
    assert x.var(1, False).tolist() == pytest.approx(array.var(1).tolist())
    assert x.std(dim=(0, 1), correction=2, keepdim=True).item() == pytest.approx(array.std(ddof=2))
    std, mean = gs.std_mean(x, 1)
    assert (std.tolist(), mean.tolist()) == (x.std(1).tolist(), x.mean(1).tolist())


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_of_one_element_there_is_no_variance_and_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0"):
        found = getattr(gs, name)(gs.tensor([1.0], dtype=gs.float16))
    assert math.isnan((found[0] if isinstance(found, tuple) else found).item())


def test_only_the_mean_of_var_mean_may_be_used() -> None:
    x = leaf([1.0, 3.0])
    assert gradient(gs.var_mean(x)[1], x) == [0.5, 0.5]
    assert gradient(gs.var_mean(x)[0], x) == [-2.0, 2.0]


HUGE = 1.7976931348623157e308


@pytest.mark.torch
@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize(
    "values",
    [
        [[HUGE, HUGE, HUGE]],
        [[HUGE, 1.0, -2.0], [3.0, HUGE, 4.0]],
        [[HUGE / 2, HUGE, HUGE], [HUGE, HUGE, HUGE / 4]],
        [[math.inf, 1.0, 2.0], [1.0, 3.0, -math.inf]],
        [[1.0, math.inf, 2.0], [1.0, 3.0, 4.0]],
        [[math.inf, math.inf], [1.0, 2.0]],
        [[math.inf]],
        [[math.nan, 1.0]],
    ],
)
def test_the_mean_beside_a_variance_is_a_running_one(torch: Any, name: str, dim: Any, values: Any) -> None:
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (first, mean), expected = (getattr(m, name)(m.tensor(values, dtype=m.float64), dim) for m in (gs, torch))
    numpy.testing.assert_allclose(mean.numpy(), expected[1].numpy(), rtol=1e-12)
    numpy.testing.assert_allclose(first.numpy(), expected[0].numpy(), rtol=1e-12)


def test_the_mean_of_huge_numbers_on_another_device(other_device: str) -> None:
    x = gs.tensor([3e38, 3e38, 3e38]).to(other_device)
    with numpy.errstate(all="ignore"):
        variance, mean = gs.var_mean(x)
    assert mean.tolist() == x.tolist()[0]
    assert variance.tolist() == 0.0


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf, "fro"])
def test_the_gradient_of_the_norm_of_zero_is_zero(p: Any) -> None:
    x = leaf([0.0, 0.0])
    assert gradient(x.norm(p), x) == [0.0, 0.0]


def test_norms() -> None:
    x = gs.tensor([[3.0, -4.0], [0.0, 12.0]])
    assert x.norm().item() == 13.0
    assert x.norm(1, 0).tolist() == [3.0, 16.0]
    assert x.norm(math.inf, dim=1, keepdim=True).tolist() == [[4.0], [12.0]]
    assert x.norm(-math.inf).item() == 0.0
    assert x.norm(0).item() == 3.0
    assert x.norm(p=3, dim=(0, 1)).item() == pytest.approx((27 + 64 + 1728) ** (1 / 3))


def test_logsumexp_neither_overflows_nor_loses_infinities() -> None:
    assert gs.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert gs.tensor([math.inf, 0.0]).logsumexp(0).item() == math.inf
    assert gs.tensor([math.nan, 1.0]).nansum().item() == 1.0
    assert gs.tensor([math.nan, 1.0, 3.0]).nanmean().item() == 2.0


# --- order and rearrangements -----------------------------------------------------------------------------------------


def test_nan_is_the_mode_of_nan_alone() -> None:
    # PyTorch sorts by < alone, which puts numbers beside NaN in no defined order.
    for values, expected in (([math.nan, math.nan, 1.0], (1.0, 2)), ([2.0, math.nan, 1.0, 2.0, math.nan], (2.0, 3))):
        found = leaf(values).mode()
        assert (found.values.item(), found.indices.item()) == expected
    assert math.isnan(leaf([math.nan, math.nan]).mode().values.item())


def test_sorting_is_stable_in_both_directions() -> None:
    x = gs.tensor([1.0, 2.0, 1.0, math.nan, 2.0])
    assert x.sort().indices.tolist() == [0, 2, 1, 4, 3]
    assert x.argsort(descending=True).tolist() == [3, 1, 4, 0, 2]
    assert x[:3].topk(2).values.tolist() == [2.0, 1.0]
    assert x[:3].kthvalue(2).values.item() == 1.0
    assert gs.tensor([4.0, 1.0, 3.0, 2.0]).median().item() == 2.0
    assert gs.tensor([[2, 1], [0, 3]]).msort().tolist() == [[0, 1], [2, 3]]


def test_a_diagonal_is_a_view_that_can_be_written() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x.clone()
    y.diagonal().mul_(10)
    assert y.tolist() == [[10.0, 2.0], [3.0, 40.0]]
    assert y.grad_fn.name() == "CopySlices"
    assert gradient(y, x) == [[10.0, 1.0], [1.0, 10.0]]


def test_rearrangements() -> None:
    x = gs.tensor([[1, 2], [3, 4]])
    assert x.flip(0).tolist() == [[3, 4], [1, 2]]
    assert x.fliplr().tolist() == [[2, 1], [4, 3]]
    assert x.flipud().is_contiguous()
    assert x.roll(1).tolist() == [[4, 1], [2, 3]]
    assert x.roll((1, 1), (0, 1)).tolist() == [[4, 3], [2, 1]]
    assert x.repeat(1, 2).tolist() == x.tile(2).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert tuple(x.repeat(2, 1, 1).shape) == (2, 2, 2)
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert x.repeat_interleave(gs.tensor([0, 2]), dim=1).tolist() == [[2, 2], [4, 4]]
    assert (x.diag().tolist(), x.trace().item()) == ([1, 4], 5)
    assert x.diag().diag(1)[0].tolist() == [0, 1, 0]
    assert x.diagflat()[3].tolist() == [0, 0, 0, 4]
    assert x.tril(-1).tolist() == [[0, 0], [3, 0]]
    assert x.triu_(1).tolist() == [[0, 2], [0, 0]]
    assert gs.outer(gs.tensor([1, 2]), gs.tensor([3, 4])).tolist() == [[3, 4], [6, 8]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x[:0].max(), RuntimeError, r"Expected reduction dim to be specified for input.numel\(\) == 0"),
        (lambda x: x[:0].max(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda x: x[:0].argmin(), IndexError, "Expected reduction dim to be specified"),
        (lambda x: x.max(2), IndexError, "Dimension out of range"),
        (lambda x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: x.long().var(), RuntimeError, "only support floating point and complex dtypes"),
        (lambda x: x.long().norm(), RuntimeError, "only support floating point and complex dtypes"),
        (lambda x: x.norm("spectral"), RuntimeError, "Order spectral not supported"),
        (lambda x: x[:0].norm(math.inf), RuntimeError, "the operation does not have an identity"),
        (lambda x: x.topk(9), RuntimeError, "selected index k out of range"),
        (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range for dimension"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
        (lambda x: x.repeat(2), RuntimeError, "can not be smaller than number of dimensions of tensor"),
        (lambda x: x.diagonal(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical"),
        (lambda x: x[0].trace(), RuntimeError, "expected a matrix, but got tensor with dim 1"),
        (lambda x: x[0].tril(), RuntimeError, "must have at least 2 dimensions"),
        (lambda x: x.outer(x), RuntimeError, "Expected 1-D argument self, but got 2-D"),
        (lambda x: x.repeat_interleave(gs.tensor([1, 2, 3]), 0), RuntimeError, "repeats must have the same size"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(gs.ones(2, 3))


# --- side by side with PyTorch ----------------------------------------------------------------------------------------

CALLS: dict[str, Any] = {
    "prod with zeros": lambda t, x: (x * (x > 0)).prod(1),
    "cumprod with zeros": lambda t, x: (x * (x > -0.5)).cumprod(1),
    "max, ties": lambda t, x: x.round().max(),
    "amin, ties": lambda t, x: x.round().amin((0, 1)),
    "median": lambda t, x: x.median() + x.median(1).values,
    "std of equals": lambda t, x: (x * 0).std(0) + x.std(1)[:1],
    "var_mean": lambda t, x: t.var_mean(x, 0)[0] + t.var_mean(x, 0)[1],
    "norms": lambda t, x: x.norm(dim=0) + x.norm(1, 0) + x.norm(3, 0) + x.norm(0.5, 0) + x.norm(math.inf, 0),
    "logsumexp": lambda t, x: x.logsumexp((0, 1)),
    "sort, descending": lambda t, x: x.sort(0, descending=True).values.cumsum(0),
    "topk": lambda t, x: x.topk(2, largest=False).values,
    "diagonal": lambda t, x: x.diagonal(1) * x.diag(-1)[:2].sum(),
    "repeat_interleave": lambda t, x: x.repeat_interleave(2, 0),
    "rolled, flipped": lambda t, x: x.roll(2).flip(0, 1).tril().repeat(2, 1),
    "outer": lambda t, x: t.outer(x[0], x[1]),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_of_pytorch(name: str, torch: Any) -> None:
    values = numpy.random.default_rng(5).normal(size=(3, 4))
    x, tx = gs.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    found, expected = CALLS[name](gs, x), CALLS[name](torch, tx)
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy())
    assert found.grad_fn.name() == expected.grad_fn.name()
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), tx.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("running", [gs.cumprod, gs.logcumsumexp])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_the_gradient_of_nothing_has_no_history(running: Any, shape: tuple[int, ...]) -> None:
    x = gs.zeros(shape, requires_grad=True)
    (found,) = gs.autograd.grad(running(x, -1).sum(), [x], create_graph=True)
    assert found.shape == shape
    assert not found.requires_grad


@pytest.mark.parametrize(("shape", "dim"), [((1 << 17,), 0), ((2, 1 << 16), 1), ((1 << 12, 300), 0)])
def test_running_logarithms_of_sums_are_as_exact_at_the_end(shape: tuple[int, ...], dim: int) -> None:
    x = numpy.random.default_rng(0).standard_normal(shape).astype("f")
    expected = numpy.log(numpy.cumsum(numpy.exp(x.astype("d")), dim))
    found = gs.tensor(x).logcumsumexp(dim)
    assert found.dtype == gs.float32
    numpy.testing.assert_allclose(found.numpy(), expected, rtol=2e-7, atol=2e-7)


# --- the largest of many ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("special", ["none", "ties", "nan", "infinities"])
@pytest.mark.parametrize("kind", ["f", "d", "e", "i8"])
@pytest.mark.parametrize(("shape", "dim"), [((64, 128), -1), ((128, 64), 0), ((5000,), 0), ((8, 40, 16), 1)])
def test_topk_of_many_is_the_beginning_of_a_stable_sort(
    shape: tuple[int, ...], dim: int, kind: str, special: str, largest: bool
) -> None:
    x = numpy.random.default_rng(0).standard_normal(shape) * 1000
    x = (numpy.round(x / 500) if special == "ties" else x).astype(kind)
    if kind != "i8" and special == "nan":
        x.flat[::37] = math.nan
    if kind != "i8" and special == "infinities":
        x.flat[::91], x.flat[1::91] = math.inf, -math.inf
    for k in (1, 3, 8):
        values, indices = gs.tensor(x).topk(k, dim, largest)
        by_value, order = gs.tensor(x).sort(dim, descending=largest, stable=True)
        numpy.testing.assert_array_equal(values.numpy(), by_value.narrow(dim, 0, k).numpy())
        assert indices.tolist() == order.narrow(dim, 0, k).tolist()


@pytest.mark.parametrize("special", ["none", "ties", "nan", "infinities"])
@pytest.mark.parametrize(("shape", "dim"), [((64, 129), -1), ((128, 64), 0), ((8, 40, 16), 1)])
def test_one_of_many_is_at_its_place_in_a_stable_sort(shape: tuple[int, ...], dim: int, special: str) -> None:
    x = numpy.random.default_rng(0).standard_normal(shape).astype("f") * 1000
    x = numpy.round(x / 500) if special == "ties" else x
    if special == "nan":
        x.flat[::37] = math.nan
    if special == "infinities":
        x.flat[::91], x.flat[1::91] = math.inf, -math.inf
    by_value, order = gs.tensor(x).sort(dim, stable=True)
    for k in (1, 5, shape[dim]):
        values, indices = gs.tensor(x).kthvalue(k, dim)
        numpy.testing.assert_array_equal(values.numpy(), by_value.select(dim, k - 1).numpy())
        assert indices.tolist() == order.select(dim, k - 1).tolist()
    values, indices = gs.tensor(x).median(dim)
    expected = numpy.sort(x, dim).take((shape[dim] - 1) // 2, dim)
    numpy.testing.assert_array_equal(values.numpy(), numpy.where(numpy.isnan(x).any(dim), numpy.nan, expected))
    numpy.testing.assert_array_equal(
        gs.tensor(x).gather(dim, indices.unsqueeze(dim)).squeeze(dim).numpy(), values.numpy()
    )
