"""Activation functions in one pass over memory; the formulas are in `ops.nn.activations`."""

from __future__ import annotations

import math

import numpy

from .jit import IN1, OUT1, f4, kernel
from .jit.scalars import erf, exp, expm1, log1p_of_share, sigmoid, tanh, tanh_of_softplus

_f4 = numpy.float32
_ZERO, _HALF, _ONE, _THREE, _SIX = map(_f4, (0, 0.5, 1, 3, 6))
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


@kernel(IN1, OUT1)
def relu(x, result):
    for i in range(x.size):
        result[i] = _ZERO if x[i] <= _ZERO else x[i]


@kernel(IN1, IN1, OUT1, f4)
def threshold_backward(g, x, result, threshold):
    for i in range(x.size):
        result[i] = _ZERO if x[i] <= threshold else g[i]


@kernel(IN1, OUT1)
def sigmoids(x, result):
    for i in range(x.size):
        result[i] = sigmoid(x[i])


@kernel(IN1, IN1, OUT1)
def sigmoid_backward(g, y, result):
    for i in range(y.size):
        result[i] = g[i] * ((_ONE - y[i]) * y[i])


@kernel(IN1, IN1, OUT1)
def tanh_backward(g, y, result):
    for i in range(y.size):
        result[i] = g[i] * (_ONE - y[i] * y[i])


@kernel(IN1, OUT1)
def log_sigmoid(x, result):
    for i in range(x.size):
        below = x[i] if x[i] < _ZERO else _ZERO
        result[i] = below - log1p_of_share(exp(-abs(x[i])))


@kernel(IN1, IN1, OUT1)
def log_sigmoid_backward(g, x, result):
    for i in range(x.size):
        result[i] = g[i] * sigmoid(-x[i])


@kernel(IN1, OUT1, f4, f4)
def softplus(x, result, beta, threshold):
    for i in range(x.size):
        scaled = x[i] * beta
        above = scaled if scaled > _ZERO else _ZERO
        smooth = (above + log1p_of_share(exp(-abs(scaled)))) / beta
        result[i] = x[i] if scaled > threshold else smooth


@kernel(IN1, IN1, OUT1, f4, f4)
def softplus_backward(g, x, result, beta, threshold):
    for i in range(x.size):
        scaled = x[i] * beta
        smooth = g[i] * sigmoid(scaled)
        result[i] = g[i] if scaled > threshold else smooth


@kernel(IN1, OUT1)
def mish(x, result):
    for i in range(x.size):
        result[i] = x[i] * tanh_of_softplus(x[i])


@kernel(IN1, IN1, OUT1)
def mish_backward(g, x, result):
    for i in range(x.size):
        t = tanh_of_softplus(x[i])
        result[i] = g[i] * (t + x[i] * sigmoid(x[i]) * (_ONE - t * t))


@kernel(IN1, OUT1, f4, f4, f4)
def elu(x, result, alpha, scale, input_scale):
    for i in range(x.size):
        below = x[i] if x[i] < _ZERO else _ZERO
        curved = expm1(below * input_scale) * (alpha * scale)
        result[i] = curved if x[i] < _ZERO else x[i] * scale


@kernel(IN1, IN1, OUT1, f4, f4, f4)
def elu_backward(g, x, result, alpha, scale, input_scale):
    for i in range(x.size):
        below = x[i] if x[i] < _ZERO else _ZERO
        slope = exp(below * input_scale) * (input_scale * alpha * scale)
        result[i] = g[i] * (slope if x[i] <= _ZERO else scale)


@kernel(IN1, OUT1, f4)
def leaky_relu(x, result, negative_slope):
    for i in range(x.size):
        result[i] = x[i] if x[i] > _ZERO else x[i] * negative_slope


@kernel(IN1, IN1, OUT1, f4)
def leaky_relu_backward(g, x, result, negative_slope):
    for i in range(x.size):
        result[i] = g[i] if x[i] > _ZERO else g[i] * negative_slope


@kernel(IN1, OUT1)
def hardswish(x, result):
    for i in range(x.size):
        above = x[i] + _THREE
        above = _ZERO if above < _ZERO else above
        above = _SIX if above > _SIX else above
        result[i] = x[i] * above / _SIX


@kernel(IN1, IN1, OUT1)
def hardswish_backward(g, x, result):
    for i in range(x.size):
        inner = g[i] * (x[i] / _THREE + _HALF) if x[i] < _THREE else g[i]
        result[i] = _ZERO if x[i] <= -_THREE else inner


@kernel(IN1, OUT1, f4, f4)
def threshold(x, result, limit, value):
    for i in range(x.size):
        result[i] = value if x[i] <= limit else x[i]


@kernel(IN1, IN1, OUT1, f4, f4)
def clamp_backward(g, x, result, low, high):
    for i in range(x.size):
        result[i] = g[i] if (x[i] >= low) & (x[i] <= high) else _ZERO


@kernel(IN1, IN1, OUT1, f4, f4)
def hardtanh_backward(g, x, result, low, high):
    for i in range(x.size):
        result[i] = _ZERO if (x[i] <= low) | (x[i] >= high) else g[i]


@kernel(IN1, IN1, OUT1, f4)
def huber(x, target, result, delta):
    for i in range(x.size):
        size = abs(x[i] - target[i])
        near = delta if size > delta else size
        result[i] = near * (size - _HALF * near)


@kernel(IN1, IN1, OUT1, f4, f4)
def huber_backward(x, target, result, delta, factor):
    for i in range(x.size):
        difference = x[i] - target[i]
        below = delta if difference > delta else difference
        result[i] = factor * (-delta if below < -delta else below)


@kernel(IN1, IN1, OUT1)
def hardsigmoid_backward(g, x, result):
    for i in range(x.size):
        result[i] = g[i] / _SIX if (x[i] > -_THREE) & (x[i] < _THREE) else _ZERO


@kernel(IN1, OUT1, f4)
def hardshrink(x, result, least):
    for i in range(x.size):
        result[i] = _ZERO if abs(x[i]) <= least else x[i]


@kernel(IN1, IN1, OUT1, f4)
def shrink_backward(g, x, result, least):
    for i in range(x.size):
        result[i] = _ZERO if (x[i] >= -least) & (x[i] <= least) else g[i]
