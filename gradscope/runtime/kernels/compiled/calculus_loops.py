"""Functions of calculus in one pass over memory, where NumPy calls the C library for each number."""

from __future__ import annotations

from .jit import IN1, OUT1, kernel, scalars


@kernel(IN1, OUT1)
def exps(x, result):
    for i in range(x.size):
        result[i] = scalars.gradual_exp(x[i])


@kernel(IN1, OUT1)
def exp2s(x, result):
    for i in range(x.size):
        result[i] = scalars.exp2(x[i])


@kernel(IN1, OUT1)
def expm1s(x, result):
    for i in range(x.size):
        result[i] = scalars.expm1(x[i])


@kernel(IN1, OUT1)
def log10s(x, result):
    for i in range(x.size):
        result[i] = scalars.log10(x[i])


@kernel(IN1, IN1, OUT1)
def atan2s(y, x, result):
    for i in range(x.size):
        result[i] = scalars.atan2(y[i], x[i])


@kernel(IN1, OUT1)
def log1ps(x, result):
    for i in range(x.size):
        result[i] = scalars.log1p(x[i])


@kernel(IN1, OUT1)
def sinhs(x, result):
    for i in range(x.size):
        result[i] = scalars.sinh(x[i])


@kernel(IN1, OUT1)
def coshs(x, result):
    for i in range(x.size):
        result[i] = scalars.cosh(x[i])


@kernel(IN1, OUT1)
def asins(x, result):
    for i in range(x.size):
        result[i] = scalars.asin(x[i])


@kernel(IN1, OUT1)
def acoss(x, result):
    for i in range(x.size):
        result[i] = scalars.acos(x[i])


@kernel(IN1, OUT1)
def atans(x, result):
    for i in range(x.size):
        result[i] = scalars.atan(x[i])


@kernel(IN1, OUT1)
def atanhs(x, result):
    for i in range(x.size):
        result[i] = scalars.atanh(x[i])


@kernel(IN1, OUT1)
def tanhs(x, result):
    for i in range(x.size):
        result[i] = scalars.tanh(x[i])
