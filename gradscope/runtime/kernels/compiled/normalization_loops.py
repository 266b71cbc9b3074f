"""Normalisation of rows, and what normalised planes are made of; NumPy's forms: `kernels.normalization_kernels`."""

from __future__ import annotations

import math

import numpy
from numba import types

from .jit import IN1, IN2, OUT1, OUT2, f4, kernel

_f4, _f8 = numpy.float32, numpy.float64
_ZERO, _ONE = _f4(0), _f4(1)
_SUMS = types.Array(types.float64, 1, "C")


@kernel(IN2, IN1, IN1, f4, OUT2, OUT2, OUT2)
def rows(x, weight, bias, eps, result, mean, rstd):
    size = _f4(x.shape[1])
    for i in range(len(x)):
        row, to = x[i], result[i]
        total = _ZERO
        for j in range(row.size):
            total += row[j]
        middle = total / size
        squares = _ZERO
        for j in range(row.size):
            centred = row[j] - middle
            squares += centred * centred
        scale = _f4(_ONE / math.sqrt(squares / size + eps))
        for j in range(row.size):
            to[j] = (row[j] - middle) * scale * weight[j] + bias[j]
        mean[i, 0], rstd[i, 0] = middle, scale


@kernel(IN2, IN2, IN1, IN1, IN1, OUT2, OUT1, OUT1)
def rows_backward(g, x, weight, mean, rstd, result, of_weight, of_bias):
    size = _f4(x.shape[1])
    for i in range(len(x)):
        row, of, to = x[i], g[i], result[i]
        middle, scale = mean[i], rstd[i]
        total, along = _ZERO, _ZERO
        for j in range(row.size):
            scaled = of[j] * weight[j]
            total += scaled
            along += scaled * ((row[j] - middle) * scale)
        total, along = total / size, along / size
        for j in range(row.size):
            normalized = (row[j] - middle) * scale
            to[j] = (of[j] * weight[j] - total - normalized * along) * scale
            of_weight[j] += of[j] * normalized
            of_bias[j] += of[j]


@kernel(IN2, _SUMS)
def plane_sums(x, total):
    for i in range(len(x)):
        row = x[i]
        part = _ZERO
        for j in range(row.size):
            part += row[j]
        total[i] = _f8(part)


@kernel(IN2, IN1, _SUMS)
def plane_squares(x, middle, total):
    for i in range(len(x)):
        row, by = x[i], middle[i]
        part = _ZERO
        for j in range(row.size):
            part += (row[j] - by) * (row[j] - by)
        total[i] = _f8(part)


@kernel(IN2, IN1, IN1, IN1, OUT2)
def plane_scaled(x, middle, scale, shift, result):
    for i in range(len(x)):
        row, to = x[i], result[i]
        by, times, plus = middle[i], scale[i], shift[i]
        for j in range(row.size):
            to[j] = (row[j] - by) * times + plus


@kernel(IN2, IN2, IN1, _SUMS, _SUMS)
def plane_products(g, x, middle, total, along):
    for i in range(len(x)):
        row, of, by = x[i], g[i], middle[i]
        part, product = _ZERO, _ZERO
        for j in range(row.size):
            part += of[j]
            product += of[j] * (row[j] - by)
        total[i], along[i] = _f8(part), _f8(product)


@kernel(IN2, IN2, IN1, IN1, IN1, IN1, OUT2)
def plane_gradients(g, x, middle, of_g, of_x, constant, result):
    for i in range(len(x)):
        row, of, to = x[i], g[i], result[i]
        by, times, along, plus = middle[i], of_g[i], of_x[i], constant[i]
        for j in range(row.size):
            to[j] = of[j] * times + (row[j] - by) * along + plus


# Columns: the rows are a block of all; what is summed over them is added to what stands in the totals.


@kernel(IN2, OUT1)
def column_sums(x, total):
    for i in range(len(x)):
        row = x[i]
        for j in range(row.size):
            total[j] += row[j]


@kernel(IN2, IN1, OUT1)
def column_squares(x, middle, total):
    for i in range(len(x)):
        row = x[i]
        for j in range(row.size):
            centred = row[j] - middle[j]
            total[j] += centred * centred


@kernel(IN2, IN1, IN1, IN1, OUT2)
def column_scaled(x, middle, scale, shift, result):
    for i in range(len(x)):
        row, to = x[i], result[i]
        for j in range(row.size):
            to[j] = (row[j] - middle[j]) * scale[j] + shift[j]


@kernel(IN2, IN2, IN1, OUT1, OUT1)
def column_products(g, x, middle, total, along):
    for i in range(len(x)):
        row, of = x[i], g[i]
        for j in range(row.size):
            total[j] += of[j]
            along[j] += of[j] * (row[j] - middle[j])


@kernel(IN2, IN2, IN1, IN1, IN1, IN1, OUT2)
def column_gradients(g, x, middle, of_g, of_x, constant, result):
    for i in range(len(x)):
        row, of, to = x[i], g[i], result[i]
        for j in range(row.size):
            to[j] = of[j] * of_g[j] + (row[j] - middle[j]) * of_x[j] + constant[j]
