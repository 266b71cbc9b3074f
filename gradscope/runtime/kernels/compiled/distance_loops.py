"""Distances between the rows of two matrices, and their derivative; the second matrix is given by its columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .jit import IN2, OUT2, kernel, scalar, with_functions

_f4 = numpy.float32
_ZERO, _ONE = _f4(0), _f4(1)


@scalar
def _square(apart):
    return apart * apart


@scalar
def _root(total):
    return _f4(math.sqrt(total))


@scalar
def _size(apart):
    return abs(apart)


@scalar
def _itself(x):
    return x


@scalar
def _sign(apart):
    above = _ONE if apart > _ZERO else _ZERO
    below = _ONE if apart < _ZERO else _ZERO
    return apart if apart != apart else above - below


_term, _finished, _slope = _square, _root, _itself  # the functions that each kernel has its own of


def _write_distances(rows, columns, result):
    width, count = columns.shape
    fours = width // 4 * 4
    for i in range(len(rows)):
        line = result[i]
        for j in range(count):
            line[j] = _ZERO
        for k in range(0, fours, 4):
            a, b, c, d = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
            at_a, at_b, at_c, at_d = rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3]
            for j in range(count):
                line[j] += _term(at_a - a[j]) + _term(at_b - b[j]) + _term(at_c - c[j]) + _term(at_d - d[j])
        for k in range(fours, width):
            column, at = columns[k], rows[i, k]
            for j in range(count):
                line[j] += _term(at - column[j])
        for j in range(count):
            line[j] = _finished(line[j])


def _write_pulls(weights, rows, columns, result):
    width, count = columns.shape
    for i in range(len(rows)):
        line = weights[i]
        for k in range(width):
            column, at, total = columns[k], rows[i, k], _ZERO
            for j in range(count):
                total += line[j] * _slope(at - column[j])
            result[i, k] = total


def _distances(name: str, term: Any, finished: Any) -> Callable[..., None]:
    return kernel(IN2, IN2, OUT2)(with_functions(name, _write_distances, _term=term, _finished=finished))


def _pulls(name: str, slope: Any) -> Callable[..., None]:
    return kernel(IN2, IN2, IN2, OUT2)(with_functions(name, _write_pulls, _slope=slope))


euclidean_distances = _distances("euclidean_distances", _square, _root)
euclidean_pulls = _pulls("euclidean_pulls", _itself)
manhattan_distances = _distances("manhattan_distances", _size, _itself)
manhattan_pulls = _pulls("manhattan_pulls", _sign)
