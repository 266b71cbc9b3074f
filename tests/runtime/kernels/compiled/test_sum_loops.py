"""Sums of all elements, compiled and as NumPy makes them, beside exact ones."""

import math

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.row_sums import reduced, row_products, sum_of_squared_differences, sum_of_squares, sums
from tests.runtime.kernels.both_forms import both

SIZES = [1, (1 << 15) - 1, 1 << 15, (1 << 15) + 1, (1 << 17) + 12_345]


def numbers(size):
    return (np.random.default_rng(size).standard_normal(size) * 3 + 1).astype("f")


@pytest.mark.parametrize("size", SIZES)
def test_sums_are_exact_to_a_few_units_in_the_last_place(size):
    x = numbers(size)
    exact, squares = math.fsum(x.tolist()), math.fsum((x.astype("d") ** 2).tolist())
    for total in both("sum_loops", reduced, np.add, x):
        assert abs(float(total) - exact) <= 1e-6 * abs(x).sum(dtype="d")
    for total in both("sum_loops", sum_of_squares, x):
        np.testing.assert_allclose(float(total), squares, rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", [1, 2])
def test_squared_differences_are_exact_to_a_few_units_in_the_last_place(size, step):
    x, y = numbers(size)[::step], numbers(size + 1)[1::step]
    exact = math.fsum(((x.astype("d") - y) ** 2).tolist())
    for total in both("sum_loops", sum_of_squared_differences, x, y):
        np.testing.assert_allclose(float(total), exact, rtol=1e-6)


@pytest.mark.parametrize("shape", [(3, 5), (300, 301)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x.double()])
def test_squared_errors_and_their_gradients_are_pytorchs(torch, layout, reduction, shape):
    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype("f")
    found = []
    for lib in (gs, torch):
        leaves = [lib.tensor(array, requires_grad=True) for array in (x, y)]
        loss = lib.nn.functional.mse_loss(layout(leaves[0]), layout(leaves[1]), reduction=reduction)
        gradients = lib.autograd.grad(loss.sum() * 3, leaves)
        found.append([part.detach().numpy() for part in (loss, *gradients)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("row", [256, 1024, 1100, 5001])
def test_sums_along_rows_are_exact_to_a_few_units_in_the_last_place(row):
    x = numbers(64 * row).reshape(64, row)
    exact = x.astype("d").sum(1)
    for found in both("sum_loops", sums, x, (1,), False):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * abs(x).sum(1).max())


@pytest.mark.parametrize("row", [2, 33, 64, 1000])
def test_products_along_rows_are_exact_to_a_few_units_in_the_last_place(row):
    x = (1 + np.random.default_rng(0).standard_normal(((1 << 17) // row, row)) / 10).astype("f")
    x[0, 0], x[1, :2], x[2, 0] = np.nan, (0, np.inf), 0
    with np.errstate(invalid="ignore"):
        exact = x.astype("d").prod(1)
        for found in both("sum_loops", row_products, x):
            np.testing.assert_allclose(found, exact, rtol=1e-7 * row + 1e-6)


@pytest.mark.parametrize("special", [[np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [3e38, 3e38]])
def test_what_is_not_finite_is_passed_on(special):
    x = numbers(1 << 16)
    x[7 : 7 + len(special)] = special
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.add.reduce(x)
        for total in both("sum_loops", reduced, np.add, x):
            np.testing.assert_array_equal(total, expected)
        for total in both("sum_loops", sum_of_squares, x):
            np.testing.assert_array_equal(total, np.nan if np.isnan(special).any() else np.inf)


@pytest.mark.parametrize("size", SIZES)
def test_tensors_have_pytorchs_sums_and_norms(torch, size):
    x = numbers(size).reshape(1, -1)
    for call in (
        lambda x: x.sum(),
        lambda x: x.sum((0, 1), keepdim=True),
        lambda x: x.mean(),
        lambda x: x.norm(),
        lambda x: x.norm(dim=(0, 1), keepdim=True),
        lambda x: x.t().sum(),
        lambda x: x[:, ::2].norm(),
    ):
        ours, theirs = call(gs.tensor(x)), call(torch.tensor(x))
        assert tuple(ours.shape) == tuple(theirs.shape)
        # Of what lies apart in memory PyTorch adds the squares one after the other, and is off by 7e-6.
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5)
