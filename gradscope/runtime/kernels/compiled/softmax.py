"""Softmax and its logarithm along rows, and their derivatives; the formulas are in `ops.nn.activations`."""

from __future__ import annotations

import math

import numpy

from .jit import IN2, OUT2, kernel, scalar
from .scalars import exp

_f4, _i4 = numpy.float32, numpy.int32
_ZERO, _ONE = _f4(0), _f4(1)
_MAGNITUDE = _i4(0x7FFFFFFF)
_LEAST_KEY = _i4(-0x80000000)


@scalar
def _key(x):
    """Return an integer in whose order floats are: processors find the largest of many integers, NaN or not."""
    bits = _f4(x).view(_i4)
    return _i4(bits ^ (_i4(bits >> _i4(31)) & _MAGNITUDE))


@scalar
def _largest(row):
    """Return the largest number of a row; NaN of either sign may stand for it."""
    most = _LEAST_KEY
    for j in range(row.size):
        key = _key(row[j])
        most = key if key > most else most
    return _i4(most ^ (_i4(most >> _i4(31)) & _MAGNITUDE)).view(_f4)


@kernel(IN2, OUT2)
def softmax(x, result):
    for i in range(len(x)):
        row, to = x[i], result[i]
        most, total = _largest(row), _ZERO
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
        most, total = _largest(row), _ZERO
        for j in range(row.size):
            total += exp(row[j] - most)
        lost = _f4(math.log(total))
        for j in range(row.size):
            to[j] = row[j] - most - lost


@kernel(IN2, IN2, OUT2)
def log_softmax_backward(g, y, result):
    for i in range(len(y)):
        row, of, to = y[i], g[i], result[i]
        total = _ZERO
        for j in range(row.size):
            total += of[j]
        for j in range(row.size):
            to[j] = of[j] - exp(row[j]) * total
