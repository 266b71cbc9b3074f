"""Reductions along short rows: what NumPy's own give, whatever the shape and layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.ops.rows import row_maxima, row_sums, short_rows

SHAPES = [(64, 10), (64, 1), (3, 10), (40, 128), (40, 129), (2, 20, 10), (0, 3), (3, 0), (10,), (2, 3, 4, 64)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_they_are_numpys(shape, dtype):
    array = (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)
    for axis in range(array.ndim):
        np.testing.assert_allclose(row_sums(np, array, axis), array.sum(axis, keepdims=True), rtol=2e-5, atol=2e-5)
        if array.shape[axis]:
            np.testing.assert_array_equal(row_maxima(np, array, axis), array.max(axis, keepdims=True))


def test_several_axes_are_no_rows():
    array = np.ones((4, 5, 6))
    assert row_sums(np, array, (1, 2)).tolist() == [[[30.0]]] * 4
    assert not short_rows(array, (1, 2))


@pytest.mark.parametrize("lay_out", [np.asfortranarray, lambda a: a[:, ::2], lambda a: a[::-1]], ids=["F", "2", "-"])
def test_other_layouts(lay_out):
    array = lay_out(np.random.default_rng(0).standard_normal((64, 10)))
    assert not short_rows(array, 1)
    np.testing.assert_allclose(row_sums(np, array, 1), array.sum(1, keepdims=True))
    np.testing.assert_array_equal(row_maxima(np, array, 1), array.max(1, keepdims=True))


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]), min_size=80, max_size=80))
def test_what_is_not_finite_is_passed_on(values):
    array = np.array(values, np.float32).reshape(40, 2)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(row_sums(np, array, 1), array.sum(1, keepdims=True))
        np.testing.assert_array_equal(row_maxima(np, array, 1), array.max(1, keepdims=True))


def test_sums_of_counts_are_exact():
    assert gs.ones(50, 100).sum(-1).unique().tolist() == [100.0]
    assert gs.full((40, 3), 2.0**23).sum(1).unique().tolist() == [3 * 2.0**23]


def test_no_warning_is_given_for_what_is_not_finite():
    rows = gs.tensor([[float("inf"), float("-inf"), float("nan")]] * 40)
    assert gs.isnan(rows.sum(1)).all()
    assert gs.isnan(gs.log_softmax(rows, 1)).all()
