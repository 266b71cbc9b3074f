"""Running sums, products and extremes along rows; the NumPy form is in `running`.

Each step waits for the one before it, so four rows go through the processor at once.
"""

from __future__ import annotations

from numba import types

from .jit import IN2, OUT2, i8, kernel, scalar

_PLACES = types.Array(i8, 2, "C")


@scalar
def _begin(rows, result, i, at):
    result[i, at] = rows[i, at]
    return rows[i, at]


@kernel(IN2, OUT2)
def running_sums(rows, result):
    count, size = rows.shape
    fours = count // 4 * 4
    for i in range(0, fours, 4):
        a, b = _begin(rows, result, i, 0), _begin(rows, result, i + 1, 0)
        c, d = _begin(rows, result, i + 2, 0), _begin(rows, result, i + 3, 0)
        for j in range(1, size):
            a += rows[i, j]
            b += rows[i + 1, j]
            c += rows[i + 2, j]
            d += rows[i + 3, j]
            result[i, j] = a
            result[i + 1, j] = b
            result[i + 2, j] = c
            result[i + 3, j] = d
    for i in range(fours, count):
        a = _begin(rows, result, i, 0)
        for j in range(1, size):
            a += rows[i, j]
            result[i, j] = a


@kernel(IN2, OUT2)
def running_sums_from_the_end(rows, result):
    count, size = rows.shape
    fours, last = count // 4 * 4, size - 1
    for i in range(0, fours, 4):
        a, b = _begin(rows, result, i, last), _begin(rows, result, i + 1, last)
        c, d = _begin(rows, result, i + 2, last), _begin(rows, result, i + 3, last)
        for j in range(last - 1, -1, -1):
            a += rows[i, j]
            b += rows[i + 1, j]
            c += rows[i + 2, j]
            d += rows[i + 3, j]
            result[i, j] = a
            result[i + 1, j] = b
            result[i + 2, j] = c
            result[i + 3, j] = d
    for i in range(fours, count):
        a = _begin(rows, result, i, last)
        for j in range(last - 1, -1, -1):
            a += rows[i, j]
            result[i, j] = a


@kernel(IN2, OUT2)
def running_products(rows, result):
    count, size = rows.shape
    fours = count // 4 * 4
    for i in range(0, fours, 4):
        a, b = _begin(rows, result, i, 0), _begin(rows, result, i + 1, 0)
        c, d = _begin(rows, result, i + 2, 0), _begin(rows, result, i + 3, 0)
        for j in range(1, size):
            a *= rows[i, j]
            b *= rows[i + 1, j]
            c *= rows[i + 2, j]
            d *= rows[i + 3, j]
            result[i, j] = a
            result[i + 1, j] = b
            result[i + 2, j] = c
            result[i + 3, j] = d
    for i in range(fours, count):
        a = _begin(rows, result, i, 0)
        for j in range(1, size):
            a *= rows[i, j]
            result[i, j] = a


@scalar
def _is_higher(x, best):
    return (x >= best) | (x != x)


@scalar
def _is_lower(x, best):
    return (x <= best) | (x != x)


@kernel(IN2, OUT2, _PLACES)
def running_maxima(rows, values, places):
    count, size = rows.shape
    twos = count // 2 * 2
    for i in range(0, twos, 2):
        a, b, at_a, at_b = rows[i, 0], rows[i + 1, 0], 0, 0
        for j in range(size):
            x, y = rows[i, j], rows[i + 1, j]
            at_a, at_b = j if _is_higher(x, a) else at_a, j if _is_higher(y, b) else at_b
            a, b = x if _is_higher(x, a) else a, y if _is_higher(y, b) else b
            values[i, j], values[i + 1, j] = a, b
            places[i, j], places[i + 1, j] = at_a, at_b
    for i in range(twos, count):
        a, at_a = rows[i, 0], 0
        for j in range(size):
            x = rows[i, j]
            at_a = j if _is_higher(x, a) else at_a
            a = x if _is_higher(x, a) else a
            values[i, j], places[i, j] = a, at_a


@kernel(IN2, OUT2, _PLACES)
def running_minima(rows, values, places):
    count, size = rows.shape
    twos = count // 2 * 2
    for i in range(0, twos, 2):
        a, b, at_a, at_b = rows[i, 0], rows[i + 1, 0], 0, 0
        for j in range(size):
            x, y = rows[i, j], rows[i + 1, j]
            at_a, at_b = j if _is_lower(x, a) else at_a, j if _is_lower(y, b) else at_b
            a, b = x if _is_lower(x, a) else a, y if _is_lower(y, b) else b
            values[i, j], values[i + 1, j] = a, b
            places[i, j], places[i + 1, j] = at_a, at_b
    for i in range(twos, count):
        a, at_a = rows[i, 0], 0
        for j in range(size):
            x = rows[i, j]
            at_a = j if _is_lower(x, a) else at_a
            a = x if _is_lower(x, a) else a
            values[i, j], places[i, j] = a, at_a
