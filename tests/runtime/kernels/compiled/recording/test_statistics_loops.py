"""The compiled statistics of a recording, beside NumPy's form and the plain way."""

import numpy as np
import pytest

from gradscope.inspect import summarize
from gradscope.inspect.recording.recorder.gradient_statistics import digest
from tests.runtime.kernels.both_forms import both


def normal(size, scale=1.0):
    return (np.random.default_rng(0).standard_normal(size) * scale).astype("f")


def with_zeros(size):
    x = normal(size)
    x[::7], x[3] = 0, -0.0
    return x


def with_denormals(size):
    x = with_zeros(size)
    x[1::11] *= 1e-42
    return x


ARRAYS = {
    "one block": normal(5000),
    "blocks": normal(200_003),
    "zeros": with_zeros(70_001),
    "denormals": with_denormals(70_001),
    "all zero": np.zeros(10_000, "f"),
    "constant": np.full(70_000, 3.25, "f"),
    "far from zero": normal(70_000) + np.float32(1e5),
    "large": normal(10_000, 1e37),
    "small": normal(10_000, 1e-37),
    "negative": -abs(normal(10_000)) - 1,
    "matrix": normal((200, 300)).T,
}


def statistics(array):
    """Return the norm, least, largest, mean and deviation, the zeros and the histogram of an array."""
    measured = digest([array])
    row = measured.rows[0]
    bins = measured.measured(0)
    numbers = [float(row[name]) for name in ("norm", "min", "max", "mean", "std")]
    return numbers, int(row["zeros"]), list(zip(bins.exponents.tolist(), bins.counts.tolist(), strict=True))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_both_forms_are_those_of_the_summary(array):
    plain = summarize(array)
    for numbers, zeros, histogram in both("recording.statistics_loops", statistics, array):
        wanted = [plain.norm, plain.min, plain.max, plain.mean, plain.std]
        np.testing.assert_allclose(numbers, wanted, rtol=2e-5, atol=1e-6 * plain.norm / array.size**0.5)
        assert numbers[1:3] == wanted[1:3]
        assert (zeros, histogram) == (plain.zeros, list(plain.histogram))


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_counted(value):
    array = normal(70_000)
    array[65_999] = value
    plain = summarize(array)

    def counts():
        row = digest([array]).rows[0]
        return int(row["nans"]), int(row["infs"]), float(row["max"])

    assert both("recording.statistics_loops", counts) == ((plain.nans, plain.infs, plain.max),) * 2
