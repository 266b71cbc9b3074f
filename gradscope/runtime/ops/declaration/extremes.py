"""Extreme arguments: what ``samples`` keep clear of, and where an operator is held against its reference too.

A declaration names one of these (or its own function). Like ``samples`` it takes ``make`` and returns a list of
``(args, kwargs)``; ``make.of(values)`` makes a tensor of given values, and ``make.finfo`` has the limits of its dtype.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from .annotations import Cases
from .samples import Samples

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor
    from .annotations import DType, Make

__all__ = ["elementwise", "integral", "points", "rows", "substituted"]


def points(finfo: numpy.finfo) -> list[float]:
    """Return zeros of both signs, denormal, tiny, ordinary, huge and infinite numbers of both signs, and NaN."""
    denormal = float(finfo.smallest_subnormal)
    sizes = [denormal, float(finfo.tiny), float(finfo.eps), 1e-3, 0.5, 1.0, 1.5, 2.0, 10.0, 88.0, 1000.0, 1e4]
    sizes += [math.sqrt(float(finfo.max)), float(finfo.max), math.inf]
    return [0.0, *sizes, -0.0, *(-size for size in sizes), math.nan]


def few_points(finfo: numpy.finfo) -> list[float]:
    """Return some of :func:`points`, of which all pairs and triples are taken."""
    sizes = [float(finfo.smallest_subnormal), 0.5, 1.0, 3.0, 1000.0, float(finfo.max), math.inf]
    return [0.0, *sizes, -0.0, *(-size for size in sizes), math.nan]


def elementwise(count: int = 1, *numbers: Any, **options: Any) -> Samples:
    """Every point of one argument, or every combination of some points of several, then `numbers` and `options`."""

    def extremes(make: Make) -> Cases:
        finfo = make.finfo
        combinations = itertools.product(*[points(finfo) if count == 1 else few_points(finfo)] * count)
        columns = [make.of(list(column)) for column in zip(*combinations)]
        return [((*columns, *numbers), dict(options))]

    return extremes


def integral(count: int = 1, *, kinds: tuple[str, ...] = ("int64", "int8", "uint8", "bool")) -> Samples:
    """Every combination of the least, greatest and some small integers of each dtype."""

    def extremes(make: Make) -> Cases:
        found: Cases = []
        for kind in kinds:
            low, high = {"int64": (-(2**63), 2**63 - 1), "int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}[kind]
            values = sorted({v for v in (low, low + 1, -3, -2, -1, 0, 1, 2, 3, high - 1, high) if low <= v <= high})
            columns = zip(*itertools.product(*[values] * count))
            tensors = [make.of(list(column), dtype=kind) for column in columns]
            found.append((tuple(tensors), {}))
        return found

    return extremes


def rows(*numbers: Any) -> Samples:
    """A matrix whose rows have ties, zeros of both signs, infinities, NaN, huge and denormal numbers, and one of none.

    For operators along the last dimension; `numbers` are what follows the matrix.
    """

    def extremes(make: Make) -> Cases:
        finfo = make.finfo
        huge, small = float(finfo.max), float(finfo.smallest_subnormal)
        table = [
            [1.0, 2.0, 2.0, 1.0],
            [0.0, -0.0, 0.0, -0.0],
            [math.inf, 1.0, 2.0, 3.0],
            [-math.inf, -math.inf, -math.inf, -math.inf],
            [math.inf, -math.inf, 0.0, 1.0],
            [math.nan, 1.0, 2.0, 3.0],
            [huge, huge, 1.0, -huge],
            [small, -small, small, 0.0],
            [1000.0, -1000.0, 999.0, 0.0],
            [-1.0, -2.0, -3.0, -2.0],
        ]
        whole, empty = make.of(table), make.of([], shape=(0, 4))
        return [((matrix, *numbers), {}) for matrix in (whole, empty)]

    return extremes


def mixed(finfo: numpy.finfo) -> list[list[float]]:
    """Return zeros, ties, denormal, huge and infinite numbers and NaN, a few at a time, among ordinary ones."""
    huge, small = float(finfo.max), float(finfo.smallest_subnormal)
    return [
        [0.0],
        [1.0, 2.0, 2.0, 1.0, -1.0],
        [0.0, -0.0, small, -small, 1.0],
        [1.0, huge, -2.0, 3.0, -1.0, 0.5, 0.25],
        [1.0, math.inf, -2.0, 3.0, 0.0, 0.5, 0.25],
        [-1.0, 3.0, -math.inf, 0.0, 1.0, math.inf, 0.5],
        [1.0, -2.0, math.nan, 3.0, 0.0, 0.5, 0.25],
    ]


def substituted(samples: Samples, numbers: Callable[[numpy.finfo], list[list[float]]] = mixed) -> Samples:
    """The samples of an operator with each list of `numbers` in place of their own, repeated in each tensor.

    Integers stay: they are places and labels. `numbers` is a function of ``make.finfo``.
    """

    def extremes(make: Make) -> Cases:
        lists = numbers(make.finfo)
        return [sample for values in lists for sample in samples(_Substitute(make, values))]

    return extremes


class _Substitute:
    """``make`` with numbers of its own in place of random ones."""

    def __init__(self, make: Make, values: list[float]) -> None:
        self._make = make
        self._values = values

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0, dtype: DType = None) -> Tensor:
        if dtype is not None and str(dtype).rpartition(".")[2] not in ("float32", "float64"):
            return self._make(*shape, low=low, high=high, dtype=dtype)
        if (low, high) == (0.0, 1.0):  # a probability has no extremes outside of its range
            return self._make(*shape, low=low, high=high, dtype=dtype)
        flat = itertools.islice(itertools.cycle(self._values), math.prod(shape))
        return self._make.of(list(flat), dtype=dtype, shape=shape)

    def __getattr__(self, name: str) -> object:
        return getattr(self._make, name)
