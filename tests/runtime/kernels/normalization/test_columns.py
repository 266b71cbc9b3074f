"""Channels that are last in memory."""

import numpy as np
import pytest

from gradscope.runtime.kernels.normalization.columns import Columns, channels_last

from .normalization_formula import normalized, normalized_backward


def test_images_are_viewed_with_their_channels_last():
    x = np.zeros((2, 3, 4, 5))
    assert channels_last(x).shape == (2, 4, 5, 3)
    assert channels_last(x).base is x


def test_numbers_of_columns():
    x, g = np.random.default_rng(0).standard_normal((2, 2, 5, 4, 3)).transpose(0, 1, 4, 2, 3)
    columns, middle = Columns(x), np.array([1.0, 2.0, 3.0])
    by = middle[:, None, None]
    scaled = columns.scaled(middle, np.float64(2), middle)
    np.testing.assert_allclose(scaled, (x - by) * 2 + by)
    assert scaled.strides == x.strides
    total, along = columns.products(g, middle)
    np.testing.assert_allclose(total.sum(0), g.sum((0, 2, 3)))
    np.testing.assert_allclose(along.sum(0), (g * (x - by)).sum((0, 2, 3)))


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("weighs", [True, False])
def test_they_are_normalised(kind, weighs):
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 2, 300, 70, 5)).astype(kind).transpose(0, 1, 4, 2, 3)
    weight, bias = rng.standard_normal((2, 5)).astype(kind) if weighs else (None, None)
    columns, exact = Columns(x), 1e-4 if kind == "f" else 1e-11
    result, mean, variance, rstd = columns.normalized(weight, bias, 1e-5)
    for found, wanted in zip((result, mean, variance, rstd), normalized(x, weight, bias, 1e-5), strict=True):
        np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=exact, atol=exact)
    gradients = columns.normalized_backward(g, weight, mean, rstd)
    for found, wanted in zip(gradients, normalized_backward(g, x, weight, 1e-5), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=exact, atol=exact * 100)
