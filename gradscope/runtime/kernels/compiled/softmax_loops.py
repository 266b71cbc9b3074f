"""Softmax along rows, its logarithm, that of attention's scores, and their derivatives.

The formulas are in `ops.nn.activations`; what is around those of attention is in `kernels.attention_kernels`.
"""

from __future__ import annotations

import math

import numpy

from .jit import IN1, IN2, OUT1, OUT2, f4, i8, kernel, scalar
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


# Attention: a row sees the keys up to its own place: row r is the query at place ``first + r % length``. Where `first`
# is the number of keys, each sees all of them.


@scalar
def _power(score, most, scale):
    """Return exp((score - most) * scale), subtracted first: the difference of large numbers is exact."""
    return exp((score - most) * scale)


@kernel(OUT2, f4, f4, i8, i8, OUT1)
def attention_weights(scores, scale, _, first, length, logsumexp):
    """Write the softmax of each row over its scores, and the logarithm of its sum."""
    keys = scores.shape[1]
    for r in range(len(scores)):
        row = scores[r, : min(keys, first + r % length + 1)]
        hidden = scores[r, row.size :]
        most, total = largest(row), _ZERO
        most = _ZERO if most == -math.inf else most
        for j in range(row.size):
            row[j] = _power(row[j], most, scale)
            total += row[j]
        total = _ONE if total == _ZERO else total
        share = _ONE / total
        for j in range(row.size):
            row[j] *= share
        for j in range(hidden.size):
            hidden[j] = _ZERO
        logsumexp[r] = most * scale + _f4(math.log(total))


@kernel(OUT2, f4, f4, i8, i8, OUT2, IN1, IN1)
def attention_gradients(scores, scale, factor, first, length, g, logsumexp, slopes):
    """Write the weights over the scores, and over their gradients those of the products."""
    keys = scores.shape[1]
    for r in range(len(scores)):
        seen = min(keys, first + r % length + 1)
        row, to, hidden, none = scores[r, :seen], g[r, :seen], scores[r, seen:], g[r, seen:]
        for j in range(row.size):
            weight = exp(row[j] * scale - logsumexp[r])
            to[j] = weight * (to[j] - slopes[r]) * factor
            row[j] = weight
        for j in range(hidden.size):
            hidden[j] = _ZERO
            none[j] = _ZERO
