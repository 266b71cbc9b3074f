"""Batch and group norm as formulas on doubles, which kernels are compared with."""

import numpy as np


def _shared_axes(x, groups):
    """Return images as (N, groups, channels of a group, ...) and the axes along which they share their statistics."""
    if groups is None:
        return x[:, :, None], (0, *range(2, x.ndim + 1))
    return x.reshape(len(x), groups, -1, *x.shape[2:]), tuple(range(2, x.ndim + 1))


def _by_channel(vector, x):
    return 1.0 if vector is None else vector.astype(float).reshape(-1, *[1] * (x.ndim - 2))


def normalized(x, weight, bias, eps, groups=None):
    """Return images that are normalised, mean, variance and 1 / sqrt(variance + eps)."""
    x = x.astype(float)
    grouped, axes = _shared_axes(x, groups)
    mean, variance = grouped.mean(axes, keepdims=True), grouped.var(axes, keepdims=True)
    rstd = 1 / np.sqrt(variance + eps)
    result = ((grouped - mean) * rstd).reshape(x.shape) * _by_channel(weight, x)
    return result if bias is None else result + _by_channel(bias, x), mean, variance, rstd


def normalized_backward(g, x, weight, eps, groups=None):
    """Return the gradients of images, weight and bias."""
    g, x = g.astype(float), x.astype(float)
    centred, _, _, rstd = normalized(x, None, None, eps, groups)
    others = (0, *range(2, x.ndim))
    given, axes = _shared_axes(g * _by_channel(weight, x), groups)
    along, _ = _shared_axes(centred, groups)
    of_x = given - given.mean(axes, keepdims=True) - along * (given * along).mean(axes, keepdims=True)
    return (of_x * rstd).reshape(x.shape), (g * centred).sum(others), g.sum(others)
