"""Elements of one array or of another, as a mask or their place says: bits of single precision or 32-bit integers."""

from __future__ import annotations

import numpy
from numba import types

from .jit import i8, kernel

__all__ = ["reverse_rows", "select", "select_beside_number", "select_number", "triangle"]

i4 = types.int32
MASK = types.Array(types.int8, 1, "C", readonly=True)
IN = types.Array(i4, 1, "C", readonly=True)
OUT = types.Array(i4, 1, "C")
ROWS = types.Array(i4, 2, "C", readonly=True)
RESULT = types.Array(i4, 2, "C")


@kernel(MASK, IN, IN, OUT)
def select(mask, chosen, other, result):
    for i in range(mask.size):
        here, there = chosen[i], other[i]  # both are read, so that nothing depends on a guess
        result[i] = here if mask[i] else there


@kernel(MASK, IN, i4, OUT)
def select_beside_number(mask, chosen, other, result):
    for i in range(mask.size):
        result[i] = chosen[i] if mask[i] else other


@kernel(MASK, i4, IN, OUT)
def select_number(mask, chosen, other, result):
    for i in range(mask.size):
        result[i] = chosen if mask[i] else other[i]


@kernel(ROWS, i8, i8, i8, i8, i8, RESULT)
def triangle(rows, height, diagonal, lower, begin, end, result):
    for i in range(begin, end):
        middle = min(max(i % height + diagonal + lower, 0), rows.shape[1])
        left, right = rows[i, :middle], rows[i, middle:]
        to_left, to_right = result[i, :middle], result[i, middle:]
        if lower:
            for j in range(left.size):
                to_left[j] = left[j]
            for j in range(right.size):
                to_right[j] = 0
        else:
            for j in range(left.size):
                to_left[j] = 0
            for j in range(right.size):
                to_right[j] = right[j]


@kernel(ROWS, i8, i8, RESULT)
def reverse_rows(rows, begin, end, result):
    for i in range(begin, end):
        row, to = rows[i], result[i]
        last = row.size - 1
        for j in range(row.size):
            to[j] = row[numpy.uintp(last - j)]  # one that may be negative counts from the end, which takes a branch
