"""Channels that are planes."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels.normalization.planes import Planes
from tests.runtime.kernels.both_forms import numpy_alone

from .normalization_formula import normalized, normalized_backward


def test_short_planes_are_not_worth_it():
    assert Planes.are_worth_it(np.zeros((64, 64, 4, 4), "f"))
    assert not Planes.are_worth_it(np.zeros((128, 128), "f"))
    assert not Planes.are_worth_it(np.zeros((1024, 16, 3), "f"))


def test_numbers_of_planes():
    x, g = np.random.default_rng(0).standard_normal((2, 2, 3, 4))
    planes, middle = Planes(x), np.array([1.0, 2.0, 3.0])
    centred = x - middle[:, None]
    np.testing.assert_allclose(planes.scaled(middle, np.float64(2), middle), centred * 2 + middle[:, None])
    np.testing.assert_allclose(planes.products(g, middle), [g.sum(2), (g * centred).sum(2)])


def found(x, g, weight, bias, groups):
    planes = Planes(x, groups)
    result, mean, variance, rstd = planes.normalized(weight, bias, 1e-5)
    return [result, mean, variance, rstd, *planes.normalized_backward(g, weight, mean, rstd)]


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("groups", [None, 1, 2, 6])
@pytest.mark.parametrize("weighs", [True, False])
@pytest.mark.parametrize("shape", [(5, 6, 7, 9), (1, 6, 1500), (40, 6, 50, 50)])
def test_they_are_normalised(shape, weighs, groups, kind):
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((2, *shape)) + 3).astype(kind)
    weight, bias = rng.standard_normal((2, 6)).astype(kind) if weighs else (None, None)
    wanted = [*normalized(x, weight, bias, 1e-5, groups), *normalized_backward(g, x, weight, 1e-5, groups)]
    exact = 1e-4 if kind == "f" else 1e-11
    with numpy_alone():
        alone = found(x, g, weight, bias, groups)
    for form in (found(x, g, weight, bias, groups), alone):
        for one, other in zip(form, wanted, strict=True):
            np.testing.assert_allclose(one, other.reshape(one.shape), rtol=exact, atol=exact * np.abs(other).max())


@pytest.mark.parametrize("groups", [None, 4])
def test_threads_compute_the_same_numbers(groups):
    x, g = np.random.default_rng(0).standard_normal((2, 16, 32, 50, 50)).astype("f")
    before, results = gs.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            gs.set_num_threads(count)
            results.append(found(x, g, None, None, groups))
    finally:
        gs.set_num_threads(before)
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("groups", [None, 2])
def test_what_is_not_finite_stays_where_its_statistics_are(value, groups):
    x, g = np.random.default_rng(0).standard_normal((2, 3, 4, 40, 40)).astype("f")
    x[1, 2, 3, 4] = value
    result, _, _, _, of_x, of_weight, _ = found(x, g, None, None, groups)
    touched = np.zeros((3, 4), bool)
    touched[(slice(None), 2) if groups is None else (1, slice(2, 4))] = True
    for array in (result, of_x):
        np.testing.assert_array_equal(np.isnan(array).all((2, 3)), touched)
        assert np.isfinite(array[~touched]).all()
    np.testing.assert_array_equal(np.isnan(of_weight), touched.any(0))
