"""Running sums, products and extremes along rows; the NumPy form is in `running`.

Each step waits for the one before it, so four rows go through the processor at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from .jit import IN2, OUT2, i8, kernel, scalar, with_functions


@scalar
def _added(total, x):
    return total + x


@scalar
def _multiplied(total, x):
    return total * x


@scalar
def _from_the_beginning(j, size):
    return j


@scalar
def _from_the_end(j, size):
    return size - 1 - j


_combined, _place = _added, _from_the_beginning  # the functions that each kernel has its own of


@scalar
def _begin(rows, result, i, at):
    result[i, at] = rows[i, at]
    return rows[i, at]


def _accumulate(rows, result):
    count, size = rows.shape
    fours, first = count // 4 * 4, _place(0, size)
    for i in range(0, fours, 4):
        a, b = _begin(rows, result, i, first), _begin(rows, result, i + 1, first)
        c, d = _begin(rows, result, i + 2, first), _begin(rows, result, i + 3, first)
        for j in range(1, size):
            at = _place(j, size)
            a = _combined(a, rows[i, at])
            b = _combined(b, rows[i + 1, at])
            c = _combined(c, rows[i + 2, at])
            d = _combined(d, rows[i + 3, at])
            result[i, at] = a
            result[i + 1, at] = b
            result[i + 2, at] = c
            result[i + 3, at] = d
    for i in range(fours, count):
        a = _begin(rows, result, i, first)
        for j in range(1, size):
            at = _place(j, size)
            a = _combined(a, rows[i, at])
            result[i, at] = a


def _accumulation(name: str, combined: Any, place: Any) -> Callable[..., None]:
    return kernel(IN2, OUT2)(with_functions(name, _accumulate, _combined=combined, _place=place))


running_sums = _accumulation("running_sums", _added, _from_the_beginning)
running_sums_from_the_end = _accumulation("running_sums_from_the_end", _added, _from_the_end)
running_products = _accumulation("running_products", _multiplied, _from_the_beginning)


@scalar
def _is_higher(x, best):
    return (x >= best) | (x != x)


@scalar
def _is_lower(x, best):
    return (x <= best) | (x != x)


_is_beyond = _is_higher  # likewise


def _find_extremes(rows, values, places):
    count, size = rows.shape
    twos = count // 2 * 2
    for i in range(0, twos, 2):
        a, b, at_a, at_b = rows[i, 0], rows[i + 1, 0], 0, 0
        for j in range(size):
            x, y = rows[i, j], rows[i + 1, j]
            at_a, at_b = j if _is_beyond(x, a) else at_a, j if _is_beyond(y, b) else at_b
            a, b = x if _is_beyond(x, a) else a, y if _is_beyond(y, b) else b
            values[i, j], values[i + 1, j] = a, b
            places[i, j], places[i + 1, j] = at_a, at_b
    for i in range(twos, count):
        a, at_a = rows[i, 0], 0
        for j in range(size):
            x = rows[i, j]
            at_a = j if _is_beyond(x, a) else at_a
            a = x if _is_beyond(x, a) else a
            values[i, j], places[i, j] = a, at_a


def _extremes(name: str, is_beyond: Any) -> Callable[..., None]:
    places = types.Array(i8, 2, "C")
    return kernel(IN2, OUT2, places)(with_functions(name, _find_extremes, _is_beyond=is_beyond))


running_maxima = _extremes("running_maxima", _is_higher)
running_minima = _extremes("running_minima", _is_lower)
