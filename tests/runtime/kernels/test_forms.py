"""Which form of a kernel runs, and that a large array gives what its parts give."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms, threads
from tests.runtime.kernels.both_forms import numpy_alone

SILU = "activation_loops.silu"


def silu(x):
    return x / (1 + np.exp(-x))


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f")


@pytest.mark.parametrize("size", [forms.LEAST - 1, forms.LEAST, forms.LEAST + 1, 100_003])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_blocks_give_what_the_formula_gives(size, dtype):
    x = normal(size).astype(dtype)
    with numpy_alone():
        np.testing.assert_array_equal(forms.pointwise(SILU, silu, x), silu(x))


@pytest.mark.parametrize(("size", "compiled"), [(forms.FEW - 1, False), (forms.FEW, True)])
def test_the_compiled_form_is_for_arrays_of_some_size(size, compiled):
    pytest.importorskip("numba", reason="compiles kernels")

    def formula(x):
        called.append(x)
        return silu(x)

    called = []
    x = normal(size)
    np.testing.assert_allclose(forms.pointwise(SILU, formula, x), silu(x), rtol=1e-5)
    assert bool(called) is not compiled
    with numpy_alone():
        np.testing.assert_array_equal(forms.pointwise(SILU, formula, x), silu(x))


def test_threads_give_what_one_gives():
    x, before = normal(3 * threads.WORTH), threads.count()
    threads.set_count(1)
    alone = forms.pointwise(SILU, silu, x)
    threads.set_count(3)
    try:
        np.testing.assert_array_equal(forms.pointwise(SILU, silu, x), alone)
    finally:
        threads.set_count(before)


@pytest.mark.parametrize("width", [3, 130, 1001])
def test_rows_do_not_depend_on_the_number_of_threads(width):
    def softmax(rows, out=None):
        rows = np.exp(rows)
        return np.divide(rows, rows.dot(np.ones(width, "f"))[:, None], out=out)

    x, before = normal(4 * threads.WORTH // width, width), threads.count()
    with numpy_alone():
        threads.set_count(1)
        alone = forms.rowwise("softmax_loops.softmax", softmax, x)
        threads.set_count(3)
        try:
            np.testing.assert_array_equal(forms.rowwise("softmax_loops.softmax", softmax, x), alone)
        finally:
            threads.set_count(before)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (127, 128), (2, 3, 5), (7,)])
def test_small_arrays_give_in_one_call_what_the_formula_gives(shape):
    x, g = normal(*shape), normal(*shape[::-1]).T  # a gradient in another order is read in its own
    y = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    formula = lambda g, y: y * (g - (g * y).sum(-1, keepdims=True))  # noqa: E731
    found = forms.rowwise("softmax.softmax_backward", formula, g, y)
    np.testing.assert_allclose(found, formula(g, y), rtol=1e-4, atol=1e-6)
    assert (found.shape, found.dtype, found.base) == (shape, y.dtype, None)


def test_another_layout_keeps_its_own():
    x = normal(200, 300).T
    result = forms.pointwise(SILU, silu, x)
    assert result.strides == silu(x).strides
    np.testing.assert_array_equal(result, silu(x))


def test_an_expanded_gradient_is_read():
    x, g = normal(200, 300), np.broadcast_to(np.float32(2), (200, 300))
    np.testing.assert_allclose(
        forms.pointwise("activation_loops.silu_backward", lambda g, x: g * x, g, x).shape, (200, 300)
    )
    with numpy_alone():
        np.testing.assert_array_equal(forms.pointwise("x.x", lambda g, x: g * x, g, x), 2 * x)


def test_a_formula_of_mixed_dtypes_is_called():
    x = normal(forms.LEAST)
    assert forms.pointwise("x.x", np.multiply, x, x.astype("d")).dtype == "d"


# --- parts of larger arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", [np.s_[:, 8:40], np.s_[::2], np.s_[3:, :, 1:5], np.s_[:, ::-1], np.s_[..., ::2]], ids=str
)
def test_a_part_of_a_larger_array_gives_what_a_copy_of_it_gives(part):
    pytest.importorskip("numba", reason="compiles kernels")
    x = normal(60, 64, 8)[part]
    found, expected = forms.pointwise(SILU, silu, x), forms.pointwise(SILU, silu, x.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    gradient = forms.pointwise("activation_loops.silu_backward", lambda g, x: g * x, normal(*x.shape), x)
    whole = forms.pointwise("activation_loops.silu_backward", lambda g, x: g * x, normal(*x.shape), x.copy())
    if forms._is_part(x):
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(gradient, whole)
