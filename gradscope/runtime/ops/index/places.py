"""Elements along an axis at the places that an index names, of large arrays: as positions in one flat array.

NumPy takes several times as long for an index of each dimension. A block of positions stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy

from ...kernels import forms, loading, threads

if TYPE_CHECKING:
    from ..declaration.annotations import Array, Namespace

__all__ = ["are_worth_it", "combine", "put", "take"]

_BLOCK = 1 << 14


def are_worth_it(array: Array, index: Array) -> bool:
    """Whether these functions are for an array in row-major order and an index of as many dimensions, two at least.

    Examples
    --------
    >>> (
    ...     are_worth_it(numpy.zeros((200, 100)), numpy.zeros((200, 100), int)),
    ...     are_worth_it(numpy.zeros(3), numpy.zeros(3, int)),
    ... )
    (True, False)
    """
    if type(array) is not numpy.ndarray or type(index) is not numpy.ndarray or index.size < forms.LEAST:
        return False
    return array.ndim > 1 and array.flags.c_contiguous and array.dtype.kind in "biuf"


def take(array: Array, axis: int, index: Array) -> Array:
    """Return the elements at the places along an axis that an index names, all of which exist.

    Examples
    --------
    >>> take(numpy.array([[1, 2], [3, 4]]), 1, numpy.array([[1], [0]]))
    array([[2],
           [3]])
    """
    result, flat = numpy.empty(index.shape, array.dtype), array.reshape(-1)
    loops = _loops_in_rows(array, axis, index)
    if loops is not None:
        rows, places, to = _in_rows(array, index, result)
        threads.over(len(rows), lambda some: loops.take_in_rows(rows[some], places[some], to[some]), places.shape[1])
        return result

    def work(part: slice) -> None:
        for some, positions in _positions(array, axis, index, part):
            flat.take(positions, out=result[some].reshape(-1), mode="clip")

    threads.over(len(index), work, index[:1].size)
    return result


def put(array: Array, axis: int, index: Array, values: Array) -> None:
    """Write values, which broadcast to the shape of the index, to these places, the last one of several last."""
    flat, values = array.reshape(-1), numpy.broadcast_to(values, index.shape)
    loops = _loops_in_rows(array, axis, index)
    if loops is not None:
        loops.put_in_rows(*_in_rows(array, index, numpy.ascontiguousarray(values, array.dtype)))
        return
    for some, positions in _positions(array, axis, index, slice(0, len(index))):
        flat[positions] = values[some].reshape(-1)


def combine(ufunc: numpy.ufunc, array: Array, axis: int, index: Array, values: Array) -> None:
    """Combine these places with values of the shape of the index, one after the other, as ``ufunc.at`` does."""
    flat = array.reshape(-1)
    loops = _loops_in_rows(array, axis, index) if ufunc is numpy.add else None
    if loops is not None:
        loops.add_in_rows(*_in_rows(array, index, numpy.ascontiguousarray(values, array.dtype)))
        return
    loops = loading.compiled("index_loops") if ufunc is numpy.add and array.dtype.char == "f" else None
    at = ufunc.at if loops is None else loops.add_elements
    for some, positions in _positions(array, axis, index, slice(0, len(index))):
        at(flat, positions, numpy.ascontiguousarray(values[some], array.dtype).reshape(-1))


def _loops_in_rows(array: Array, axis: int, index: Array) -> Namespace | None:
    """Return the compiled loops, where they are for the arrays: places in each of the rows along the last axis."""
    if array.dtype.char != "f" or index.dtype.itemsize != 8 or axis != array.ndim - 1:
        return None
    if index.shape[:-1] != array.shape[:-1] or not index.flags.c_contiguous:
        return None
    return loading.compiled("index_loops")


def _in_rows(array: Array, *others: Array) -> list[Array]:
    """Return arrays that differ in the last dimension alone as matrices."""
    return [a.reshape(-1, a.shape[-1]) for a in (array, *others)]


def _positions(array: Array, axis: int, index: Array, part: slice) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of a part of the index's first dimension, with the positions of their elements in the flat array."""
    steps = [math.prod(array.shape[dim + 1 :]) for dim in range(array.ndim)]
    step = max(1, _BLOCK // max(math.prod(index.shape[1:]), 1))
    others = _offsets(index.shape, steps, [dim for dim in range(1, index.ndim) if dim != axis])
    first = _offsets(index.shape, steps, [0])
    buffer = numpy.empty((min(step, part.stop - part.start), *index.shape[1:]), int)
    for some in threads.blocks(part, step):
        positions = buffer[: some.stop - some.start]
        numpy.multiply(index[some], steps[axis], out=positions, dtype=int)
        positions += others
        if axis:
            positions += first[some]
        yield some, positions.reshape(-1)


def _offsets(shape: tuple[int, ...], steps: list[int], dims: list[int]) -> Array:
    """Return how far the elements of a shape are from the first one along some dimensions, as what broadcasts."""
    offsets = numpy.zeros((1,) * len(shape), int)
    for dim in dims:
        along = numpy.arange(shape[dim]) * steps[dim]
        offsets = offsets + along.reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return offsets
