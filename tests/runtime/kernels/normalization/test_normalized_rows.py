"""Layer norm by rows."""

import numpy as np
import pytest

from gradscope.runtime.kernels import forms
from gradscope.runtime.kernels.normalization.normalized_rows import rows, rows_backward


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
