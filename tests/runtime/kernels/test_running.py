"""Running sums, products and extremes, along each axis, beside NumPy's own."""

import numpy as np
import pytest

from gradscope.runtime.kernels.running import accumulated, extremes, sums_from_the_end
from tests.runtime.kernels.both_forms import numpy_alone

SHAPES = [(7,), (5000,), (7, 300), (300, 7), (3, 40, 300), (300, 5, 3), (0, 4), (4, 0), (4, 0, 300)]


def numbers(shape, dtype="f"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture(params=[True, False], ids=["as installed", "NumPy alone"])
def kernels(request):
    if request.param:
        yield
    else:
        with numpy_alone():
            yield


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", ["f", "d", "q"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_along_each_axis_are_those_of_numpy(shape, dtype):
    x = numbers(shape, dtype)
    for axis in range(x.ndim):
        np.testing.assert_array_equal(accumulated(np.add, x, axis), np.cumsum(x, axis))
        np.testing.assert_array_equal(accumulated(np.multiply, x, axis), np.cumprod(x, axis))
        expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
        found = sums_from_the_end(x, axis)
        np.testing.assert_array_equal(found, expected)
        assert found.flags.c_contiguous


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("shape", [(5000,), (7, 300), (300, 7)], ids=str)
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
def test_extremes_are_met_last_and_nan_is_the_most_extreme(ufunc, shape):
    x = np.round(numbers(shape))
    x.reshape(-1)[[500, 900]] = np.nan
    for axis in range(x.ndim):
        values, places = extremes(ufunc, x, axis)
        np.testing.assert_array_equal(values, ufunc.accumulate(x, axis))
        np.testing.assert_array_equal(np.take_along_axis(x, places, axis), values)
        later = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        same = (np.roll(x, -1, axis) == values) & (later < x.shape[axis] - 1)
        assert (np.roll(places, -1, axis)[same] == np.broadcast_to(later + 1, x.shape)[same]).all()


def test_an_expanded_or_transposed_array_is_summed_from_its_end():
    for x in (np.broadcast_to(np.float32(2), (30, 50)), numbers((50, 30)).T):
        np.testing.assert_array_equal(sums_from_the_end(x, 1), np.cumsum(x[:, ::-1], 1)[:, ::-1])
