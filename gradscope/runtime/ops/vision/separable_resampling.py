"""Linear maps along one dimension, each output a weighted sum of a few inputs: what interpolation is made of.

Such a map and its adjoint have one form, :class:`Taps`, so that a derivative of any order is one of the two. Unlike a
product with a matrix that is mostly zeros, it costs what it reads, and a NaN goes only where it is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from ...kernels import threads
from ..declaration.annotations import Array, Namespace

__all__ = ["Taps", "along", "as_slice", "read_along", "resample", "resample_bytes"]


@dataclass(frozen=True, eq=False)
class Taps:
    """Which inputs each output reads, and with which weights; host arrays, computed from sizes alone."""

    places: numpy.ndarray
    """Shape (taps, outputs)."""
    weights: numpy.ndarray
    """Shape (taps, outputs); 0 where a tap only fills up."""
    inputs: int
    filling: numpy.ndarray | None = None
    """Which taps only fill up, where outputs read different numbers of inputs: shape (taps, outputs)."""

    @cached_property
    def rows(self) -> list[tuple[slice | numpy.ndarray, float | numpy.ndarray, slice | numpy.ndarray | None]]:
        """For each tap its places, its weights (a number if equal), and the outputs that it is for: None for all."""
        if self.filling is None:
            return [(as_slice(p), _as_number(w), None) for p, w in zip(self.places, self.weights, strict=True)]
        found = []
        for places, weights, filling in zip(self.places, self.weights, self.filling, strict=True):
            kept = numpy.flatnonzero(~filling)
            outputs = None if kept.size == filling.size else as_slice(kept)
            found.append((as_slice(places[kept]), _as_number(weights[kept]), outputs))
        return found

    @cached_property
    def identity(self) -> bool:
        """Whether every output is the input of its place."""
        places, weights, _ = self.rows[0]
        straight = isinstance(places, slice) and places == slice(0, self.inputs, 1)
        return self.places.shape == (1, self.inputs) and straight and isinstance(weights, float) and weights == 1.0

    @cached_property
    def adjoint(self) -> Taps:
        """The adjoint map, in the same form."""
        tap, output = numpy.nonzero(self.weights)
        rows, weights = self.places[tap, output], self.weights[tap, output]
        order = numpy.lexsort((output, rows))
        rows, output, weights = rows[order], output[order], weights[order]
        counts = numpy.bincount(rows, minlength=self.inputs)
        starts = numpy.cumsum(counts) - counts
        number = numpy.arange(rows.size) - starts[rows]
        shape = (max(int(counts.max(initial=0)), 1), self.inputs)
        places, spread = numpy.zeros(shape, numpy.int64), numpy.zeros(shape)
        places[number, rows], spread[number, rows] = output, weights
        filling = numpy.arange(shape[0])[:, None] >= counts
        return Taps(places, spread, self.places.shape[1], filling if filling.any() else None)

    @cached_property
    def whole(self) -> tuple[numpy.ndarray, int]:
        """The weights as integers of 16 bits, and how many of these bits are behind the point.

        As in Pillow and in PyTorch, images of bytes are resampled with these: the results are the same to the bit.
        """
        weights = self.weights.copy()
        for later in range(1, len(weights)):
            for earlier in range(later):  # a place that is read twice is read once, with both weights
                twice = self.places[earlier] == self.places[later]
                weights[earlier] += numpy.where(twice, weights[later], 0)
                weights[later][twice] = 0
        bits = 0
        while bits < _MOST_BITS and int(0.5 + weights.max() * (1 << (bits + 1))) < 1 << 15:
            bits += 1
        return numpy.trunc(weights * (1 << bits) + numpy.copysign(0.5, weights)).astype(numpy.int32), bits


_MOST_BITS = 22


def as_slice(places: numpy.ndarray) -> slice | numpy.ndarray:
    """Return indices as a slice where they are evenly spaced: a view is read then, and keeps the order in memory."""
    if not places.size:
        return slice(0, 0, 1)
    steps = numpy.diff(places)
    step = int(steps[0]) if steps.size else 1
    if step < 1 or (steps != step).any():
        return places
    start = int(places[0])
    return slice(start, start + step * (places.size - 1) + 1, step)


def read_along(xp: Namespace, x: Array, places: slice | Array, axis: int) -> Array:
    """Return what lies at some places of one dimension: a view for a slice, a fresh array for indices."""
    if isinstance(places, slice):
        return x[(*(slice(None),) * (axis % x.ndim), places)]
    return x.take(xp.asarray(places), axis=axis)


def _as_number(weights: numpy.ndarray) -> float | numpy.ndarray:
    return float(weights[0]) if weights.size and (weights == weights[0]).all() else weights


def along(xp: Namespace, x: Array, axis: int, taps: Taps) -> Array:
    """Return `taps` applied to one dimension of `x`; a fresh array."""
    lead, shape = (slice(None),) * axis, (-1,) + (1,) * (x.ndim - 1 - axis)
    if not x.shape[axis]:
        return xp.zeros((*x.shape[:axis], taps.places.shape[1], *x.shape[axis + 1 :]), dtype=x.dtype)
    total: Array = None
    for places, weights, outputs in taps.rows:
        fresh = not isinstance(places, slice)
        part = read_along(xp, x, places, axis)
        if isinstance(weights, float):
            weight: Array = x.dtype.type(weights)
        else:
            weight = xp.asarray(weights.astype(x.dtype)).reshape(shape)
        if isinstance(weights, float) and weights == 1.0:
            part = part if fresh or total is not None else part.copy()
        else:
            part = xp.multiply(part, weight, out=part) if fresh else part * weight
        if outputs is not None:
            # Taps that only fill up a row are left out: 0 times an infinity would be NaN.
            if total is None:
                total = xp.zeros((*x.shape[:axis], taps.places.shape[1], *x.shape[axis + 1 :]), dtype=x.dtype)
            total[(*lead, outputs if isinstance(outputs, slice) else xp.asarray(outputs))] += part
        else:
            total = part if total is None else xp.add(total, part, out=total)
    return total


def resample(xp: Namespace, x: Array, maps: Sequence[Taps]) -> Array:
    """Return `x` with one map applied to each of its last dimensions."""
    lead = x.ndim - len(maps)
    order = _order(x.shape[lead:], maps)

    def resampled(part: Array) -> Array:
        for axis in order:
            part = along(xp, part, lead + axis, maps[axis])
        return part

    if not lead or type(x) is not numpy.ndarray:
        return xp.ascontiguousarray(resampled(x)) if order else x.copy()
    result = numpy.empty((*x.shape[:lead], *(taps.places.shape[1] for taps in maps)), x.dtype)

    def write(part: slice) -> None:
        for some in threads.blocks(part, max(_BLOCK // max(result[:1].size, 1), 1)):
            result[some] = resampled(x[some])

    threads.over(len(x), write, result[:1].size)
    return result


_BLOCK = 1 << 18
"""Pixels that are computed at once: they stay in the processor's cache."""


def resample_bytes(xp: Namespace, x: Array, maps: Sequence[Taps]) -> Array:
    """Return images of bytes with a map applied to each of the last dimensions, the last first, rounded after each."""
    result = x
    for axis, taps in zip(range(x.ndim - 1, 0, -1), reversed(maps), strict=False):
        if not taps.identity:
            result = _bytes_along(xp, result, axis, taps)
    return xp.ascontiguousarray(result) if result is not x else x.copy()


def _bytes_along(xp: Namespace, x: Array, axis: int, taps: Taps) -> Array:
    weights, bits = taps.whole
    shape = (-1,) + (1,) * (x.ndim - 1 - axis)
    total: Array = 1 << (bits - 1)
    for places, weight in zip(taps.places, weights, strict=True):
        part = x.take(xp.asarray(places), axis=axis).astype("int32")
        total = part * xp.asarray(weight).reshape(shape) + total
    return xp.minimum(xp.maximum(total >> bits, 0), 255).astype("uint8")


def _order(sizes: Sequence[int], maps: Sequence[Taps]) -> list[int]:
    """Return the dimensions to go through: those that shrink first, the last before others."""
    wanted = [a for a, m in enumerate(maps) if not m.identity]
    return sorted(wanted, key=lambda a: (maps[a].places.shape[1] / max(sizes[a], 1), -a))


def linear_parts(position: numpy.ndarray, size: int) -> Taps:
    """Return the two neighbours of fractional places, weighted by how near they are."""
    first = numpy.minimum(position.astype(numpy.int64), size - 1)
    part = numpy.clip(position - first, 0, 1)
    second = numpy.minimum(first + 1, size - 1)
    return Taps(numpy.stack([first, second]), numpy.stack([1 - part, part]), size)


def cubic_weights(t: Array, a: float) -> list[Array]:
    """Return the weights of the four neighbours at distances 1 + t, t, 1 - t and 2 - t.

    Works on arrays and tensors. R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """
    s = 1 - t
    return [_outer(t + 1, a), _inner(t, a), _inner(s, a), _outer(s + 1, a)]


def _inner(x: Array, a: float) -> Array:
    return (x * (a + 2) - (a + 3)) * x * x + 1


def _outer(x: Array, a: float) -> Array:
    return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a


def windows(starts: Sequence[int], ends: Sequence[int], size: int, weights: Sequence[Sequence[float]]) -> Taps:
    """Return sums over windows of unequal length."""
    count = max((e - s for s, e in zip(starts, ends, strict=True)), default=0)
    places = numpy.zeros((max(count, 1), len(starts)), numpy.int64)
    spread = numpy.zeros(places.shape)
    filling = numpy.ones(places.shape, dtype=bool)
    for i, (start, end, row) in enumerate(zip(starts, ends, weights, strict=True)):
        places[:, i] = start
        places[: end - start, i] = range(start, end)
        spread[: end - start, i] = row
        filling[: end - start, i] = False
    return Taps(places, spread, size, filling if filling.any() else None)


def adaptive_bounds(size: int, out: int) -> tuple[list[int], list[int]]:
    """Return the starts and ends of `out` windows that cover `size` elements as evenly as possible."""
    return [i * size // out for i in range(out)], [-(-(i + 1) * size // out) for i in range(out)]


def lanczos(x: float) -> float:
    """Return the Lanczos kernel of three lobes."""
    if abs(x) >= 3:
        return 0.0
    return 1.0 if x == 0 else 3 * math.sin(math.pi * x) * math.sin(math.pi * x / 3) / (math.pi * x) ** 2
