"""Functions of calculus in one pass over memory, where NumPy calls the C library for each number."""

from __future__ import annotations

import math

import numpy

from .jit import IN1, OUT1, doubles, f4, kernel, of_each, of_pairs, scalars

_f4, _f8 = numpy.float32, numpy.float64

exps = of_each("exps", scalars.gradual_exp)
exp2s = of_each("exp2s", scalars.exp2)
expm1s = of_each("expm1s", scalars.expm1)
log10s = of_each("log10s", scalars.log10)
log2s = of_each("log2s", scalars.log2)
log1ps = of_each("log1ps", scalars.log1p)
sinhs = of_each("sinhs", scalars.sinh)
coshs = of_each("coshs", scalars.cosh)
tanhs = of_each("tanhs", scalars.tanh)
asins = of_each("asins", scalars.asin)
acoss = of_each("acoss", scalars.acos)
atans = of_each("atans", scalars.atan)
atanhs = of_each("atanhs", scalars.atanh)
atan2s = of_pairs("atan2s", scalars.atan2)
hypots = of_pairs("hypots", doubles.hypot)
logaddexps = of_pairs("logaddexps", scalars.logaddexp)

_MOST_TAN = _f4(doubles.MOST_TAN)


@kernel(IN1, OUT1)
def tans(x, result):
    beyond = 0
    for i in range(x.size):
        beyond += 1 if abs(x[i]) > _MOST_TAN else 0
        result[i] = doubles.tan(_f8(x[i]))
    if beyond:
        for i in range(x.size):
            if abs(x[i]) > _MOST_TAN:
                result[i] = math.tan(_f8(x[i]))


@kernel(IN1, OUT1, f4, f4)
def logits(x, result, low, high):
    for i in range(x.size):
        p = low if x[i] < low else x[i]
        p = high if p > high else p
        result[i] = doubles.logit(_f8(p))


@kernel(IN1, IN1, OUT1, f4, f4, f4)
def logit_backward(g, x, result, low, high, outside):
    for i in range(x.size):
        slope = g[i] / (x[i] * (_f4(1) - x[i]))
        result[i] = slope if (x[i] >= low) & (x[i] <= high) else outside
