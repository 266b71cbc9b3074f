"""The few largest or smallest numbers of rows; the NumPy form is in `ops.reduce.sort_and_cumulate`."""

from __future__ import annotations

from numba import types

from .jit import IN2, OUT2, i8, kernel, scalar

_PLACES = types.Array(i8, 2, "C")


@scalar
def _is_larger(x, other):
    """Whether a number is the larger one: NaN is the largest."""
    return (x > other) | ((x != x) & (other == other))


@kernel(IN2, OUT2, _PLACES)
def largest_few(rows, values, places):
    few = values.shape[1]
    for i in range(rows.shape[0]):
        row, value, place = rows[i], values[i], places[i]
        for j in range(row.size):
            at = min(j, few)
            if at == few and not _is_larger(row[j], value[few - 1]):
                continue
            at = min(at, few - 1)
            while at > 0 and _is_larger(row[j], value[at - 1]):
                value[at], place[at] = value[at - 1], place[at - 1]
                at -= 1
            value[at], place[at] = row[j], j


@kernel(IN2, OUT2, _PLACES)
def smallest_few(rows, values, places):
    few = values.shape[1]
    for i in range(rows.shape[0]):
        row, value, place = rows[i], values[i], places[i]
        for j in range(row.size):
            at = min(j, few)
            if at == few and not _is_larger(value[few - 1], row[j]):
                continue
            at = min(at, few - 1)
            while at > 0 and _is_larger(value[at - 1], row[j]):
                value[at], place[at] = value[at - 1], place[at - 1]
                at -= 1
            value[at], place[at] = row[j], j
