"""The few largest or smallest numbers of rows, and the largest of each window of images.

The NumPy forms are in `ops.reduce.sort_and_cumulate` and `ops.nn.adaptive_pooling`.
"""

from __future__ import annotations

from numba import types

from .jit import IN2, OUT2, f4, i8, kernel, scalar

_PLACES = types.Array(i8, 2, "C")
_BOUNDS = types.Array(i8, 1, "C", readonly=True)


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


@kernel(types.Array(f4, 3, "C", readonly=True), _BOUNDS, _BOUNDS, _BOUNDS, _BOUNDS,
        types.Array(f4, 3, "C"), types.Array(i8, 3, "C"))  # fmt: skip
def largest_in_windows(images, tops, bottoms, lefts, rights, values, places):
    """Find the first of equals, and the last NaN, in reading order."""
    count, rows, columns = values.shape
    width = images.shape[2]
    for number in range(count):
        for i in range(rows):
            for j in range(columns):
                best, place = images[number, tops[i], lefts[j]], tops[i] * width + lefts[j]
                for y in range(tops[i], bottoms[i]):
                    for x in range(lefts[j], rights[j]):
                        value = images[number, y, x]
                        if (value > best) | (value != value):
                            best, place = value, y * width + x
                values[number, i, j], places[number, i, j] = best, place
