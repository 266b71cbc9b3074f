"""Sums and products of rows, sums of their squares and of those of differences; NumPy's forms are in `row_sums`."""

from __future__ import annotations

import numpy

from .jit import IN2, OUT1, kernel

BLOCK = 256
"""Elements that are added in single precision, of several sums at once."""

_f4, _f8 = numpy.float32, numpy.float64


@kernel(IN2, OUT1)
def sums_of_rows(rows, result):
    for number in range(rows.shape[0]):
        row, total = rows[number], _f8(0)
        for block in range(row.size // BLOCK):
            part = _f4(0)
            for i in range(BLOCK):
                part += row[block * BLOCK + i]
            total += part
        rest, part = row[row.size // BLOCK * BLOCK :], _f4(0)
        for i in range(rest.size):
            part += rest[i]
        result[number] = total + part


@kernel(IN2, OUT1)
def products_of_rows(rows, result):
    for number in range(rows.shape[0]):
        row, product = rows[number], _f4(1)
        for i in range(row.size):
            product *= row[i]
        result[number] = product


# Rows have whole blocks here.


@kernel(IN2, OUT1)
def squares_of_rows(rows, result):
    for number in range(rows.shape[0]):
        row, total = rows[number], _f8(0)
        for block in range(row.size // BLOCK):
            part = _f4(0)
            for i in range(BLOCK):
                part += row[block * BLOCK + i] * row[block * BLOCK + i]
            total += part
        result[number] = total


@kernel(IN2, IN2, OUT1)
def squared_differences_of_rows(rows, others, result):
    for number in range(rows.shape[0]):
        row, other, total = rows[number], others[number], _f8(0)
        for block in range(row.size // BLOCK):
            part = _f4(0)
            for i in range(BLOCK):
                difference = row[block * BLOCK + i] - other[block * BLOCK + i]
                part += difference * difference
            total += part
        result[number] = total
