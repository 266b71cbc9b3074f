"""Statistics of many tensors at once agree with those of one."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradscope.inspect import summarize
from gradscope.inspect.recording.recorder.gradient_statistics import digest

FLOATS = st.sampled_from([numpy.float16, numpy.float32, numpy.float64])
ARRAYS = FLOATS.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)


def check(arrays):
    found = digest(arrays)
    entries = found.entries
    for array, row in zip(arrays, found.rows):
        wanted = summarize(array)
        assert [int(row[name]) for name in ("zeros", "nans", "infs")] == [wanted.zeros, wanted.nans, wanted.infs]
        largest = max(abs(wanted.max or 0.0), abs(wanted.min or 0.0))
        for name in ("norm", "min", "max", "mean", "std"):
            value = getattr(wanted, name)
            expected = numpy.nan if value is None else value
            # The deviations of equal numbers are rounding, and rounding may differ.
            small = 1e-6 * largest if name in ("mean", "std") else 0.0
            with numpy.errstate(all="ignore"):
                numpy.testing.assert_allclose(row[name], expected, rtol=3e-6, atol=small, err_msg=name)
        bins = entries[row["bins_at"] : row["bins_at"] + row["bins"]].tolist()
        assert tuple(bins) == wanted.histogram


@settings(max_examples=60)
@given(st.lists(ARRAYS, max_size=6))
def test_any_small_tensors(arrays):
    check(arrays)


@pytest.mark.parametrize("dtype", [numpy.float16, numpy.float32, numpy.float64])
@pytest.mark.parametrize("size", [769, 70_000])
@pytest.mark.parametrize("scale", [1.0, 1e-4, 0.0])
def test_large_tensors(dtype, size, scale):
    values = numpy.random.default_rng(0).normal(size=size)
    values[::7] = 0
    check([(values * scale).astype(dtype), (values * scale).astype(dtype).reshape(-1, 1).T])


@pytest.mark.parametrize("value", [1e200, 1e-200, 1e30, 1e-30, numpy.inf, numpy.nan, 5e-324, 1e-40])
def test_extremes(value):
    with numpy.errstate(over="ignore"):
        check([numpy.full(size, value).astype(dtype) for size in (5, 1000) for dtype in (numpy.float32, numpy.float64)])


def test_a_mean_that_dwarfs_the_deviation():
    values = (1000 + numpy.random.default_rng(0).normal(size=5000) * 1e-3).astype(numpy.float32)
    row = digest([values]).rows[0]
    assert row["std"] == pytest.approx(values.astype(float).std(), rel=1e-6)


def test_other_dtypes():
    check([numpy.arange(5), numpy.array([True, False]), numpy.array([3 + 4j, 0])])
    assert digest([numpy.arange(3)]).previews == {0: "[0, 1, 2]"}


def test_many_small_ones_are_split_and_put_together_again():
    rng = numpy.random.default_rng(1)
    check([rng.normal(size=rng.integers(0, 700)).astype(numpy.float32) for _ in range(200)])
