"""Which arrays the kernels of normalisation are for, and what of an array they return."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms
from gradscope.runtime.kernels.normalization_kernels import Columns, Planes, channels, is_worth_it, rows, rows_backward
from tests.runtime.kernels.both_forms import numpy_alone


@pytest.mark.parametrize(
    ("array", "others", "worth"),
    [
        (np.zeros((128, 128), "f"), [None], True),
        (np.zeros((128, 128)), [np.zeros(128)], True),
        (np.zeros((128, 127)), [], False),
        (np.zeros((0, 128), "f"), [], False),
        (np.zeros((128, 128), "e"), [], False),
        (np.zeros((256, 128), "f").T, [], False),
        (np.zeros((128, 128), "f"), [np.zeros(128)], False),
    ],
    ids=["large", "doubles", "small", "empty", "half", "another layout", "mixed"],
)
def test_what_they_are_for(array, others, worth):
    assert is_worth_it(array, *others) is worth


def test_the_compiled_form_is_for_small_arrays_too():
    pytest.importorskip("numba", reason="compiles kernels")
    assert is_worth_it(np.zeros((2, 3), "f"), np.zeros(3, "f"))
    with numpy_alone():
        assert not is_worth_it(np.zeros((2, 3), "f"), np.zeros(3, "f"))


def test_short_planes_are_not_worth_it():
    assert Planes.are_worth_it(np.zeros((64, 64, 4, 4), "f"))
    assert not Planes.are_worth_it(np.zeros((128, 128), "f"))
    assert not Planes.are_worth_it(np.zeros((1024, 16, 3), "f"))


def test_channels_are_planes_or_columns_as_they_lie_in_memory():
    images = np.zeros((4, 16, 32, 32), "f")
    last = np.zeros((4, 32, 32, 16), "f").transpose(0, 3, 1, 2)
    assert [type(channels(x)) for x in (images, last, np.zeros((256, 64)))] == [Planes, Columns, Columns]
    for other in (images[:0], last[:, :, ::2], images.astype("e"), images.swapaxes(0, 1)):
        assert channels(other) is None
    assert channels(last, np.zeros(16)) is None


def test_rows_keep_the_shape_and_statistics_are_those_of_each_row():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    result, mean, rstd = rows(x, None, None, 20, 0.5)
    assert (result.shape, mean.shape, rstd.shape) == ((3, 4, 5), (3, 1), (3, 1))
    np.testing.assert_allclose(mean[:, 0], x.reshape(3, 20).mean(1))
    np.testing.assert_allclose(rstd[:, 0], 1 / np.sqrt(x.reshape(3, 20).var(1) + 0.5))


@pytest.mark.parametrize("size", [4, 5000])
def test_rows_without_scale_and_shift_leave_no_memory_of_others(size):
    x = np.random.default_rng(0).standard_normal((2, size)).astype("f")
    plain = rows(x, None, None, size, 1e-5)[0]
    scaled = rows(x, np.full(size, 2, "f"), np.full(size, 3, "f"), size, 1e-5)[0]
    np.testing.assert_allclose(scaled, plain * 2 + 3, rtol=1e-5)
    np.testing.assert_array_equal(rows(x, None, None, size, 1e-5)[0], plain)


@pytest.mark.parametrize("size", [7, 256, 300, 320, 1024, 5000])
def test_rows_of_any_length_and_number_are_normalised(size):
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, (1 << 18) // size + 3, size))
    weight, bias = rng.standard_normal((2, size))
    normalized, mean, rstd = rows(x, weight, bias, size, 1e-5)
    by, scale = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    centred = (x - by[:, None]) * scale[:, None]
    np.testing.assert_allclose(normalized, centred * weight + bias, atol=1e-12)
    given = g * weight
    wanted = given - given.mean(1, keepdims=True) - centred * (given * centred).mean(1, keepdims=True)
    of_x, of_weight, of_bias = rows_backward(g, x, weight, mean, rstd, size)
    np.testing.assert_allclose(of_x, wanted * scale[:, None], atol=1e-12)
    np.testing.assert_allclose(of_weight, (g * centred).sum(0), atol=1e-9)
    np.testing.assert_allclose(of_bias, g.sum(0), atol=1e-9)


def test_sums_over_rows_do_not_depend_on_how_many_there_are_at_once():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 2000, 300)).astype("f")
    _, mean, rstd = rows(x, None, None, 300, 1e-5)
    _, of_weight, of_bias = rows_backward(g, x, None, mean, rstd, 300)
    assert x.size > 2 * forms.LEAST
    normalized = (x.astype("d") - mean) * rstd
    np.testing.assert_allclose(of_weight, (g * normalized).sum(0), atol=2e-3)
    np.testing.assert_allclose(of_bias, g.astype("d").sum(0), atol=2e-3)


def test_numbers_of_columns():
    x, g = np.random.default_rng(0).standard_normal((2, 2, 5, 4, 3)).transpose(0, 1, 4, 2, 3)
    columns, middle = Columns(x), np.array([1.0, 2.0, 3.0])
    by = middle[:, None, None]
    np.testing.assert_allclose(columns.sums().sum(0), x.sum((0, 2, 3)))
    np.testing.assert_allclose(columns.squares(middle).sum(0), ((x - by) ** 2).sum((0, 2, 3)))
    scaled = columns.scaled(middle, np.float64(2), middle)
    np.testing.assert_allclose(scaled, (x - by) * 2 + by)
    assert scaled.strides == x.strides
    total, along = columns.products(g, middle)
    np.testing.assert_allclose(total.sum(0), g.sum((0, 2, 3)))
    np.testing.assert_allclose(along.sum(0), (g * (x - by)).sum((0, 2, 3)))
    combined = columns.gradients(np.ascontiguousarray(g), middle, middle, np.float64(5), np.float64(7))
    np.testing.assert_allclose(combined, g * by + (x - by) * 5 + 7)


def test_numbers_of_planes():
    x, g = np.random.default_rng(0).standard_normal((2, 2, 3, 4))
    planes, middle = Planes(x), np.array([1.0, 2.0, 3.0])
    centred = x - middle[:, None]
    np.testing.assert_allclose(planes.sums(), x.sum(2))
    np.testing.assert_allclose(planes.squares(middle), (centred**2).sum(2))
    np.testing.assert_allclose(planes.scaled(middle, np.float64(2), middle), centred * 2 + middle[:, None])
    np.testing.assert_allclose(planes.products(g, middle), [g.sum(2), (g * centred).sum(2)])
    combined = planes.gradients(g, middle, middle, np.float64(5), np.float64(7))
    np.testing.assert_allclose(combined, g * middle[:, None] + centred * 5 + 7)
