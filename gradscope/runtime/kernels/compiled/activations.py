"""Activation functions in one pass over memory; the formulas are in `ops.nn.activations`."""

from __future__ import annotations

import math

import numpy

from .jit import IN1, OUT1, kernel
from .scalars import erf, exp, sigmoid, tanh

_f4 = numpy.float32
_HALF, _ONE, _THREE = _f4(0.5), _f4(1), _f4(3)
_ROOT_HALF = _f4(math.sqrt(0.5))
_DENSITY = _f4(1 / math.sqrt(2 * math.pi))
_ROOT_TWO_OVER_PI = _f4(math.sqrt(2 / math.pi))
_CUBIC = _f4(0.044715)


@kernel(IN1, OUT1)
def gelu(x, result):
    for i in range(x.size):
        result[i] = x[i] * (_HALF * (erf(x[i] * _ROOT_HALF) + _ONE))


@kernel(IN1, IN1, OUT1)
def gelu_backward(g, x, result):
    for i in range(x.size):
        below = (erf(x[i] * _ROOT_HALF) + _ONE) * _HALF
        result[i] = g[i] * (below + x[i] * exp(x[i] * x[i] * -_HALF) * _DENSITY)


@kernel(IN1, OUT1)
def gelu_tanh(x, result):
    for i in range(x.size):
        t = tanh(_ROOT_TWO_OVER_PI * (x[i] + _CUBIC * (x[i] * x[i] * x[i])))
        result[i] = x[i] * (_HALF * (t + _ONE))


@kernel(IN1, IN1, OUT1)
def gelu_tanh_backward(g, x, result):
    for i in range(x.size):
        square = x[i] * x[i]
        t = tanh(_ROOT_TWO_OVER_PI * (x[i] + _CUBIC * (x[i] * square)))
        inner = (square * (_THREE * _CUBIC) + _ONE) * _ROOT_TWO_OVER_PI
        result[i] = g[i] * ((t + _ONE) * _HALF + x[i] * _HALF * (_ONE - t * t) * inner)


@kernel(IN1, OUT1)
def silu(x, result):
    for i in range(x.size):
        result[i] = x[i] * sigmoid(x[i])


@kernel(IN1, IN1, OUT1)
def silu_backward(g, x, result):
    for i in range(x.size):
        s = sigmoid(x[i])
        result[i] = g[i] * (s * (x[i] * (_ONE - s) + _ONE))
