"""Sums along rows and down columns, and maxima along rows: what NumPy's own give, whatever the shape and layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.kernels import threads
from gradscope.runtime.kernels.elementwise import LARGE
from gradscope.runtime.kernels.row_sums import reduced, row_maxima, spread_sums, sums

SHAPES = [
    (64, 10), (64, 1), (1, 64), (3, 10), (40, 128), (40, 129), (20_000, 3), (2, 20, 10), (0, 3), (3, 0), (10,), (),
    (2, 3, 4, 64), (40, 256), (3, 384), (2, 5, 1024), (2, 128 * 131), (1, 128 * 128 * 2),
    (40, 300), (30, 1300), (2, 64, 14, 14), (3, 4, 50, 61),
]  # fmt: skip


WIDER = {"float32": "float64", "complex64": "complex128"}


def close(ours, array, exact):
    """Compare sums of an array up to rounding, which grows with the size of what is added."""
    assert ours.shape == exact.shape
    np.testing.assert_allclose(ours, exact, rtol=2e-5, atol=1e-6 * float(abs(array).sum()))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_they_are_numpys(shape, dtype):
    array = (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)
    axes = tuple(range(array.ndim))
    for begin in axes:
        for end in axes[begin:]:
            for keepdims in (False, True):
                chosen = axes[begin : end + 1]
                exact = array.astype(WIDER.get(dtype, dtype)).sum(chosen, keepdims=keepdims)
                close(np.asarray(sums(array, chosen, keepdims)), array, np.asarray(exact))
    close(sums(array, ()), array, array.sum((), keepdims=True))
    assert sums(array, axes).dtype == array.sum().dtype
    for axis in axes:
        if shape[axis]:
            np.testing.assert_array_equal(row_maxima(array, axis), array.max(axis, keepdims=True), strict=True)


@pytest.mark.parametrize("row", [128, 196, 384, 1000, 1024, 1300, 5001, 1 << 17])
def test_sums_of_long_rows_are_as_exact_as_numpys(row):
    array = np.random.default_rng(0).standard_normal(((1 << 19) // row, row)).astype("f") + 1
    exact = array.astype("d").sum(1, keepdims=True)
    wrong, numpys = (np.abs(found - exact).max() for found in (sums(array, (1,)), array.sum(1, keepdims=True)))
    assert wrong <= 4 * numpys + 1e-6 * row


def test_axes_in_any_order():
    array = np.arange(24.0).reshape(2, 3, 4)
    assert sums(array, (1, 0), keepdims=False).tolist() == array.sum((0, 1)).tolist()
    assert sums(array, (2, 0), keepdims=False).tolist() == array.sum((0, 2)).tolist()


@pytest.mark.parametrize("lay_out", [np.asfortranarray, lambda a: a[:, ::2], lambda a: a[::-1]], ids=["F", "2", "-"])
def test_other_layouts(lay_out):
    array = lay_out(np.random.default_rng(0).standard_normal((64, 10)))
    for axis in (0, 1):
        close(sums(array, (axis,)), array, array.sum(axis, keepdims=True))
        np.testing.assert_array_equal(row_maxima(array, axis), array.max(axis, keepdims=True))


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]), min_size=80, max_size=80))
def test_what_is_not_finite_is_passed_on(values):
    array = np.array(values, np.float32).reshape(40, 2)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(sums(array, (1,)), array.sum(1, keepdims=True))
        np.testing.assert_array_equal(sums(array, (0,)), array.sum(0, keepdims=True))
        for rows in (array, array.repeat(32, 1)):  # which are transposed, and whose places are looked for
            np.testing.assert_array_equal(row_maxima(rows, 1), rows.max(1, keepdims=True))


def test_sums_of_counts_are_exact():
    assert gs.ones(50, 100).sum(-1).unique().tolist() == [100.0]
    assert gs.ones(70_000, 3).sum(0).tolist() == [70_000.0] * 3
    assert gs.full((40, 3), 2.0**23).sum(1).unique().tolist() == [3 * 2.0**23]


def test_no_warning_is_given_for_what_is_not_finite():
    rows = gs.tensor([[float("inf"), float("-inf"), float("nan")]] * 40)
    assert gs.isnan(rows.sum(1)).all()
    assert gs.isnan(gs.cat([rows, -rows]).sum(0)).all()
    assert gs.isnan(gs.log_softmax(rows, 1)).all()


def test_what_is_summed_stays_as_it_is_and_ones_are_given_to_nobody():
    array = np.ones((5, 3))
    total = sums(array, (0,), keepdims=False)
    total += 1
    assert array.tolist() == np.ones((5, 3)).tolist()
    assert sums(array, (0,)).tolist() == [[5.0] * 3]


# --- all elements -----------------------------------------------------------------------------------------------------


@pytest.fixture
def any_number_of_threads():
    before = threads.count()
    yield (1, 2, 3, 7)
    threads.set_count(before)


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1, 5 * LARGE // 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_sum_of_all_is_the_same_on_any_number_of_threads(size, dtype, any_number_of_threads):
    array = (np.random.default_rng(0).standard_normal(size) * 10 + 1).astype(dtype)
    found = []
    for number in any_number_of_threads:
        threads.set_count(number)
        found.append(reduced(np.add, array))
    assert {total.tobytes() for total in found} == {found[0].tobytes()}
    close(found[0], array, array.astype(WIDER.get(dtype, dtype)).sum())


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("place", [0, LARGE // 2, LARGE + 4])
def test_an_extreme_of_all_is_found_wherever_it_is(ufunc, dtype, place, any_number_of_threads):
    array = np.ones(LARGE + 5, dtype)
    for extreme in (0, 1, 7, np.nan) if dtype == "float32" else (0, 1):
        array[place] = extreme
        for number in any_number_of_threads:
            threads.set_count(number)
            np.testing.assert_array_equal(reduced(ufunc, array), ufunc.reduce(array), strict=True)


@pytest.mark.parametrize("lay_out", [np.asfortranarray, lambda a: a[:, ::2], lambda a: a[::-1]], ids=["F", "2", "-"])
def test_all_elements_of_other_layouts(lay_out):
    array = lay_out(np.random.default_rng(0).standard_normal((2048, 1024)))
    close(reduced(np.add, array), array, array.sum())


def test_sums_over_all_axes_are_the_sum_of_all():
    array = np.random.default_rng(0).standard_normal((1024, 1030)).astype("f")
    total = reduced(np.add, array)
    assert sums(array, (0, 1), keepdims=False) == total
    assert sums(array, (0, 1)).tolist() == [[total]]
    tensor = gs.from_numpy(array)
    assert tensor.sum().item() == tensor.sum((0, 1)).item() == total
    assert tensor.mean().item() == total / np.float32(array.size)


@pytest.mark.parametrize(
    "shape", [(8, 8), (32, 16), (33, 16), (8, 17), (1, 1), (0, 3), (3, 0), (2, 4, 4), (5,)], ids=str
)
@pytest.mark.parametrize("lay_out", [lambda a: a, np.asfortranarray, lambda a: a[::-1]], ids=["C", "F", "-"])
def test_spread_sums_broadcast_as_sums_do(shape, lay_out):
    array = lay_out(np.random.default_rng(0).standard_normal(shape).astype("f"))
    axis = array.ndim - 1
    spread, wanted = spread_sums(array, (axis,)), array.sum(axis, keepdims=True)
    assert spread.dtype == array.dtype
    np.testing.assert_allclose(array - spread, array - wanted, atol=1e-5)


def test_what_is_not_finite_is_spread_over_its_own_row():
    array = np.ones((4, 3), "f")
    array[1, 2], array[2, 0] = np.nan, np.inf
    assert np.isnan(spread_sums(array, (1,))[1]).all()
    np.testing.assert_array_equal(spread_sums(array, (1,))[[0, 2, 3]], [[3] * 3, [np.inf] * 3, [3] * 3])


def test_an_expanded_number_is_added_as_often_as_it_stands_there():
    expanded = np.broadcast_to(np.float32(0.1), (200, 300, 2))
    for axes in ((0,), (1,), (2,), (0, 2)):
        for keepdims in (True, False):
            found, expected = sums(expanded, axes, keepdims), expanded.sum(axis=axes, keepdims=keepdims, dtype="d")
            assert (found.shape, found.dtype) == (expected.shape, expanded.dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            found[...] = 0  # can be written
