"""Softmax and its logarithm along rows, and their derivatives; the formulas are in `ops.nn.activations`."""

from __future__ import annotations

import math

import numpy

from .jit import IN2, OUT2, kernel, scalar
from .jit.scalars import exp, largest

_f4 = numpy.float32
_ZERO, _ONE = _f4(0), _f4(1)


@scalar
def _below(x, most, logarithm):
    """Subtract in this order, which keeps a logarithm that is small beside both others."""
    return (x - most) - logarithm


@kernel(IN2, OUT2)
def softmax(x, result):
    for i in range(len(x)):
        row, to = x[i], result[i]
        most, total = largest(row), _ZERO
        for j in range(row.size):
            to[j] = exp(row[j] - most)
            total += to[j]
        scale = _ONE / total
        for j in range(row.size):
            to[j] *= scale


@kernel(IN2, IN2, OUT2)
def softmax_backward(g, y, result):
    for i in range(len(y)):
        row, of, to = y[i], g[i], result[i]
        total = _ZERO
        for j in range(row.size):
            total += of[j] * row[j]
        for j in range(row.size):
            to[j] = row[j] * (of[j] - total)


@kernel(IN2, OUT2)
def log_softmax(x, result):
    for i in range(len(x)):
        row, to = x[i], result[i]
        most, total = largest(row), _ZERO
        for j in range(row.size):
            total += exp(row[j] - most)
        lost = _f4(math.log(total))
        for j in range(row.size):
            to[j] = _below(row[j], most, lost)


@kernel(IN2, IN2, OUT2)
def log_softmax_backward(g, y, result):
    for i in range(len(y)):
        row, of, to = y[i], g[i], result[i]
        total = _ZERO
        for j in range(row.size):
            total += of[j]
        for j in range(row.size):
            to[j] = of[j] - exp(row[j]) * total
