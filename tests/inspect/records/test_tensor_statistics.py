"""Summaries of arrays: right for every dtype, and no array makes them fail or warn."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradscope as gs
from gradscope.inspect.records.tensor_statistics import count_bad, norm_of, quick_norm, summarize

DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "uint64", "bool", "complex64", "complex128"]


@settings(max_examples=150)
@given(st.data())
def test_every_array_has_a_summary_that_numpy_agrees_with(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = summarize(array, "x")
    assert (summary.shape, summary.dtype, summary.numel) == (array.shape, dtype.name, array.size)
    assert summary.nbytes == array.nbytes
    bad = np.isnan(array) if dtype.kind in "fc" else np.zeros(array.shape, bool)
    with np.errstate(all="ignore"):
        wide = np.abs(array.astype("complex128")) if dtype.kind == "c" else array.astype("float64")
        inf = np.isinf(wide) & ~np.isnan(wide)
        finite = wide[np.isfinite(wide)]
        assert summary.zeros == np.count_nonzero(finite == 0)
    if dtype.kind != "c":
        assert (summary.nans, summary.infs) == (np.count_nonzero(bad), np.count_nonzero(inf))
    assert sum(count for _, count in summary.histogram) == np.count_nonzero(finite)
    assert summary.zeros + summary.nans + summary.infs + sum(n for _, n in summary.histogram) == array.size
    if finite.size:
        assert summary.min == finite.min()
        assert summary.max == finite.max()
        assert summary.min <= summary.mean * (1 + 1e-9) + 1e-300 or math.isclose(summary.min, summary.mean)
        assert summary.std >= 0
    else:
        assert (summary.min, summary.max, summary.mean, summary.std) == (None, None, None, None)


def test_statistics_of_a_known_array():
    summary = summarize(np.array([[1.0, -2.0], [2.0, 0.0]], dtype=np.float32), "w")
    assert (summary.norm, summary.min, summary.max, summary.mean) == (3.0, -2.0, 2.0, 0.25)
    assert summary.std == pytest.approx(np.std([1.0, -2.0, 2.0, 0.0]))
    assert summary.histogram == ((0, 1), (1, 2))
    assert (summary.zeros, summary.nans, summary.infs) == (1, 0, 0)
    assert summary.preview == "[1, -2, 2, 0]"


def test_nan_and_inf_are_counted_and_left_out_of_the_range():
    summary = summarize([np.nan, np.inf, -np.inf, 1.0, 3.0])
    assert (summary.nans, summary.infs, summary.min, summary.max, summary.mean) == (1, 2, 1.0, 3.0, 2.0)
    assert math.isnan(summary.norm)


def test_the_norm_neither_overflows_nor_vanishes():
    assert summarize(np.full(4, 1e38, dtype=np.float32)).norm == pytest.approx(2e38, rel=1e-6)
    assert norm_of(np.full(4, 1e300)) == pytest.approx(2e300)
    assert norm_of(np.full(4, 1e-300)) == pytest.approx(2e-300)
    assert norm_of([np.inf, 1.0]) == np.inf
    for size in (1e30, 1e-30):  # whose squares float32 has not
        assert quick_norm(np.full(4, size, np.float32)) == pytest.approx(2 * size)


@settings(max_examples=150)
@given(st.data())
def test_a_quick_norm_is_the_norm_whatever_the_layout_and_warns_of_nothing(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [quick_norm(array), quick_norm(array.T), quick_norm(array[..., ::-1] if array.ndim else array)]
    assert found == pytest.approx([norm_of(array)] * 3, rel=1e-5, nan_ok=True)


@pytest.mark.parametrize("size", [8_192, 8_193, 20_000, 65_536])
@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_a_norm_of_many_numbers_is_that_of_all_and_warns_of_nothing(size, scale):
    array = np.random.default_rng(0).standard_normal(size) * scale
    exact = math.sqrt(math.fsum((x / scale) ** 2 for x in array.tolist())) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [norm_of(array), norm_of(array[::-1]), norm_of(array.astype(np.float32))]
        quick = quick_norm(array.astype(np.float32))
        array[-1] = np.nan
        assert np.isnan([norm_of(array), quick_norm(array.astype(np.float32))]).all()
    assert found == pytest.approx([exact, exact, exact], rel=1e-7)
    assert quick == pytest.approx(exact, rel=1e-5)


def test_a_norm_is_taken_while_another_one_is(monkeypatch):
    """On another thread, or by the handler of a signal."""
    vecdot, inner, array = np.vecdot, [], np.full(1 << 14, 2.0, np.float32)

    def interrupted(one, two):
        monkeypatch.setattr(np, "vecdot", vecdot)
        inner.append(quick_norm(array))
        return vecdot(one, two)

    monkeypatch.setattr(np, "vecdot", interrupted)
    assert (quick_norm(array), inner) == (256.0, [256.0])


@settings(max_examples=150)
@given(st.data())
def test_a_norm_alone_is_that_of_the_summary(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))
    if data.draw(st.booleans()):
        array = array.T
    assert np.array_equal(norm_of(array), summarize(array, "x").norm, equal_nan=True)


@pytest.mark.parametrize("exponent", [-150, -140, 140, 149, 151])
def test_a_norm_at_the_ends_of_what_can_be_squared(exponent):
    assert norm_of(np.full(4, 10.0**exponent)) == pytest.approx(2 * 10.0**exponent, rel=1e-12)


def test_an_empty_array():
    summary = summarize(np.zeros((0, 3), dtype=np.float32))
    assert (summary.numel, summary.norm, summary.min, summary.histogram, summary.preview) == (0, 0.0, None, (), "[]")


def test_complex_numbers_count_by_magnitude():
    summary = summarize(np.array([3 + 4j, 0j]))
    assert (summary.norm, summary.min, summary.max, summary.zeros) == (5.0, 0.0, 5.0, 1)


def test_a_long_array_shows_its_first_elements():
    assert summarize(np.arange(100)).preview == "[0, 1, 2, 3, 4, 5, ...]"


def test_a_tensor_that_is_not_contiguous():
    assert summarize(gs.arange(6.0).reshape(2, 3).t()).preview == "[0, 3, 1, 4, 2, 5]"


def test_count_bad():
    assert count_bad(np.array([np.nan, np.inf, 1.0], dtype=np.float16)) == (1, 1)
    assert count_bad(np.array([1, 2])) == (0, 0)
    assert count_bad(np.zeros(0)) == (0, 0)
