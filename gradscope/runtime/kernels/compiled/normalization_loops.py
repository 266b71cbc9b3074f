"""Normalisation of rows, and what normalised planes are made of; NumPy's forms: `kernels.normalization_kernels`."""

from __future__ import annotations

import math

import numpy
from numba import types

from .jit import IN1, IN2, OUT1, OUT2, f4, i8, kernel

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


# Planes that share their statistics are so many, `number`, each as far `apart` from the next; there is a weight and a
# bias for each plane of an example. Planes are gone through as they lie in memory, `totals` are of those that share.


@kernel(IN2, IN1, IN1, f4, i8, i8, i8, i8, _SUMS, OUT2, OUT1, OUT1, OUT1)
def planes_normalized(x, weight, bias, eps, number, apart, begin, end, totals, result, mean, variance, rstd):
    size = _f8(number * x.shape[1])
    for start in range(begin, end, apart):
        places, origin = range(start, min(start + apart, end)), start // apart * (number - 1) * apart
        for place in places:
            totals[place] = 0
        for first in range(origin, origin + number * apart, apart):
            for place in places:
                row, part = x[first + place], _ZERO
                for j in range(row.size):
                    part += row[j]
                totals[place] += part
        for place in places:
            mean[place], totals[place] = _f4(totals[place] / size), 0
        for first in range(origin, origin + number * apart, apart):
            for place in places:
                row, middle, part = x[first + place], mean[place], _ZERO
                for j in range(row.size):
                    part += (row[j] - middle) * (row[j] - middle)
                totals[place] += part
        for place in places:
            variance[place] = _f4(totals[place] / size)
            rstd[place] = _f4(_ONE / math.sqrt(variance[place] + eps))
        for first in range(origin, origin + number * apart, apart):
            for place in places:
                row, to, channel = x[first + place], result[first + place], (first + place) % weight.size
                middle, times, plus = mean[place], rstd[place] * weight[channel], bias[channel]
                for j in range(row.size):
                    to[j] = (row[j] - middle) * times + plus


@kernel(IN2, IN2, IN1, IN1, IN1, i8, i8, i8, i8, _SUMS, _SUMS, OUT2, _SUMS, _SUMS)
def planes_normalized_backward(
    g, x, weight, mean, rstd, number, apart, begin, end, totals, totals_along, result, total, along
):
    size = _f8(number * x.shape[1])
    for start in range(begin, end, apart):
        places, origin = range(start, min(start + apart, end)), start // apart * (number - 1) * apart
        for place in places:
            totals[place] = totals_along[place] = 0
        for first in range(origin, origin + number * apart, apart):
            for place in places:
                i = first + place
                row, of, middle = x[i], g[i], mean[place]
                part, product = _ZERO, _ZERO
                for j in range(row.size):
                    part += of[j]
                    product += of[j] * (row[j] - middle)
                total[i], along[i] = _f8(part), _f8(product)
                totals[place] += total[i] * weight[i % weight.size]
                totals_along[place] += along[i] * weight[i % weight.size]
        for first in range(origin, origin + number * apart, apart):
            for place in places:
                i = first + place
                row, of, to, middle, scale = x[i], g[i], result[i], mean[place], rstd[place]
                times_x = scale * scale * scale * _f4(-totals_along[place] / size)
                constant = scale * _f4(-totals[place] / size)
                times_g = scale * weight[i % weight.size]
                for j in range(row.size):
                    to[j] = of[j] * times_g + (row[j] - middle) * times_x + constant


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
