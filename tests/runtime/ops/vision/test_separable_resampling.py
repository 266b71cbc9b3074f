"""Weighted sums of a few inputs along one dimension, and their adjoints."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.ops.vision.interpolate import _taps
from gradscope.runtime.ops.vision.separable_resampling import Taps, adaptive_bounds, along, resample, windows


def matrix(taps: Taps) -> numpy.ndarray:
    return along(numpy, numpy.eye(taps.inputs), 0, taps)


MODES = ["nearest", "nearest_exact", "linear", "cubic", "linear_aa", "cubic_aa", "lanczos_aa"]


@given(st.sampled_from(MODES), st.integers(1, 9), st.integers(1, 12), st.booleans())
def test_the_adjoint_is_the_transposed_matrix(mode: str, size: int, out: int, align: bool) -> None:
    taps = _taps(mode, size, out, align, None)
    numpy.testing.assert_allclose(matrix(taps.adjoint), matrix(taps).T, atol=1e-12)
    numpy.testing.assert_allclose(matrix(taps.adjoint.adjoint), matrix(taps), atol=1e-12)


@given(st.sampled_from(MODES), st.integers(1, 9), st.integers(1, 12), st.booleans())
def test_interpolations_keep_a_constant(mode: str, size: int, out: int, align: bool) -> None:
    numpy.testing.assert_allclose(along(numpy, numpy.ones(size), 0, _taps(mode, size, out, align, None)), 1.0)


@given(st.integers(1, 20), st.integers(1, 20))
def test_adaptive_windows_cover_everything(size: int, out: int) -> None:
    starts, ends = adaptive_bounds(size, out)
    taps = windows(starts, ends, size, [[1.0] * (e - s) for s, e in zip(starts, ends, strict=True)])
    ones = matrix(taps)
    assert (starts[0], ends[-1]) == (0, size)
    assert ones.any(axis=0).all()
    assert ones.sum(axis=1).tolist() == [e - s for s, e in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_nan_goes_only_where_it_is_read(mode: str) -> None:
    taps = _taps(mode, 8, 16, False, None)
    x = numpy.zeros(8)
    x[0] = numpy.nan
    assert numpy.isnan(along(numpy, x, 0, taps)).tolist() == (matrix(taps)[:, 0] != 0).tolist()
    g = numpy.zeros(16)
    g[0] = numpy.nan
    assert numpy.isnan(along(numpy, g, 0, taps.adjoint)).tolist() == (matrix(taps)[0] != 0).tolist()


def test_an_infinity_is_no_nan_where_windows_differ_in_length() -> None:
    taps = windows([0, 1], [1, 4], 4, [[1.0], [1.0] * 3])
    assert along(numpy, numpy.array([numpy.inf, 1.0, 2.0, 3.0]), 0, taps).tolist() == [numpy.inf, 6.0]
    assert along(numpy, numpy.array([numpy.inf, 1.0]), 0, taps.adjoint).tolist() == [numpy.inf, 1.0, 1.0, 1.0]


def test_inputs_that_nobody_reads_have_no_gradient() -> None:
    adjoint = _taps("nearest", 6, 2, False, None).adjoint
    assert along(numpy, numpy.array([numpy.nan, 2.0]), 0, adjoint)[1:].tolist() == [0.0, 0.0, 2.0, 0.0, 0.0]


def test_the_same_size_is_a_copy() -> None:
    x = numpy.arange(6.0).reshape(1, 1, 2, 3)
    result = resample(numpy, x, [_taps("linear", n, n, False, None) for n in (2, 3)])
    assert result.tolist() == x.tolist()
    assert not numpy.shares_memory(result, x)
