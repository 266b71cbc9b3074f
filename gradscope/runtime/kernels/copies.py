"""Copies of arrays, which threads share where they are large, and in row-major order of those that lie in another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy

from . import threads

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, DType

__all__ = ["converted", "copy_of", "copy_into", "joined", "row_major_copy", "taken"]

_LINE = 64  # bytes that the processor's cache takes from memory at once
_ALIASED = 1024  # of addresses at multiples of so many bytes it keeps few at a time
_SMALL = 1 << 14  # elements of an array that the cache holds in any case
_FEW = 64  # columns of which it keeps the lines


def copy_into(target: Array, source: Array) -> None:
    """Write an array to another, whose shape it broadcasts to, in the other's dtype.

    Examples
    --------
    >>> target = numpy.empty((2, 2), int)
    >>> copy_into(target, numpy.array([1.5, 2.5]))
    >>> target.tolist()
    [[1, 2], [1, 2]]
    """
    if not threads.sharing or target.size < 2 * threads.WORTH or type(target) is not numpy.ndarray:
        target[...] = source
        return
    axis = next(axis for axis, size in enumerate(target.shape) if size > 1)
    before = (slice(None),) * axis
    is_number = not numpy.ndim(source)
    if not is_number and numpy.may_share_memory(target, source):  # a part would be read where another has been written
        target[...] = source
        return
    source = source if is_number else numpy.broadcast_to(source, target.shape)

    def write(part: slice) -> None:
        target[(*before, part)] = source if is_number else source[(*before, part)]

    threads.over(target.shape[axis], write, math.prod(target.shape[axis + 1 :]), quick=True)


def copy_of(array: Array) -> Array:
    """Return a copy of a NumPy array, its elements in the same order in memory.

    Examples
    --------
    >>> copy_of(numpy.zeros((2, 3)).T).strides
    (8, 24)
    """
    return converted(array, array.dtype)


def converted(array: Array, dtype: DType) -> Array:
    """Return a NumPy array in another dtype, its elements in the same order in memory.

    Examples
    --------
    >>> converted(numpy.array([1.5]), numpy.dtype(int))
    array([1])
    """
    if not threads.sharing or array.size < 2 * threads.WORTH or type(array) is not numpy.ndarray:
        return array.astype(dtype)
    result = numpy.empty_like(array, dtype)
    copy_into(result, array)
    return result


def taken(array: Array, index: Array, axis: int) -> Array:
    """Return the parts of an array that indices name along an axis: ``array.take(index, axis)``.

    Raises
    ------
    IndexError
        If there is no such part.

    Examples
    --------
    >>> taken(numpy.array([[1, 2], [3, 4]]), numpy.array([1, 1, -2]), 0).tolist()
    [[3, 4], [3, 4], [1, 2]]
    """
    if not threads.sharing or axis or type(array) is not numpy.ndarray:
        return array.take(index, axis=axis)
    row, places = math.prod(array.shape[1:]), index.reshape(-1)
    if places.size * row < 2 * threads.WORTH or places.min() < -len(array) or places.max() >= len(array):
        return array.take(index, axis=axis)
    result = numpy.empty((places.size, *array.shape[1:]), array.dtype)

    def take(part: slice) -> None:
        array.take(places[part], axis=0, out=result[part], mode="wrap")  # with a check NumPy would copy once more

    threads.over(places.size, take, row, quick=True)
    return result.reshape(*index.shape, *array.shape[1:])


def joined(arrays: Sequence[Array], axis: int) -> Array:
    """Return NumPy arrays of one dtype joined along an axis, in row-major order.

    Raises
    ------
    ValueError
        If another axis differs.
    TypeError
        If `axis` is no whole number.

    Examples
    --------
    >>> joined([numpy.zeros((1, 2)), numpy.ones((1, 2))], 0).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    if not threads.sharing or sum(array.size for array in arrays) < 2 * threads.WORTH or _differ(arrays, axis):
        together = numpy.concatenate(arrays, axis)
        return together if together.flags.c_contiguous else row_major_copy(together)
    axis %= arrays[0].ndim
    ends = list(accumulate(array.shape[axis] for array in arrays))
    before, after = arrays[0].shape[:axis], arrays[0].shape[axis + 1 :]
    result = numpy.empty((*before, ends[-1], *after), arrays[0].dtype)
    places = [slice(end - array.shape[axis], end) for array, end in zip(arrays, ends, strict=True)]

    def write(rows: slice) -> None:
        for array, place in zip(arrays, places, strict=True):
            if axis:
                result[(rows, *(slice(None),) * (axis - 1), place)] = array[rows]
                continue
            begin, end = max(rows.start, place.start), min(rows.stop, place.stop)
            if begin < end:
                result[begin:end] = array[begin - place.start : end - place.start]

    threads.over(len(result), write, math.prod(result.shape[1:]), quick=True)
    return result


def _differ(arrays: Sequence[Array], axis: int) -> bool:
    """Whether shapes differ along another axis, or the axis is none."""
    first = arrays[0].shape
    if not -len(first) <= axis < len(first):
        return True
    rest = numpy.delete(first, axis).tolist()
    return any(array.ndim != len(first) or numpy.delete(array.shape, axis).tolist() != rest for array in arrays)


def row_major_copy(array: Array) -> Array:
    """Return a copy of a NumPy array in row-major order.

    A transposed matrix is read down its columns. Where these are a large power of two apart, the cache loses each line
    before its next element is asked for; so a line's worth of columns is copied at a time, in a half to a sixth of the
    time.

    Examples
    --------
    >>> copy = row_major_copy(numpy.array([[1, 2], [3, 4]]).T)
    >>> copy.tolist(), copy.flags.c_contiguous
    ([[1, 3], [2, 4]], True)
    """
    if array.size < _SMALL:
        return array.copy(order="C")
    result = numpy.empty(array.shape, array.dtype)
    if not _is_turned(array):
        copy_into(result, array)
        return result
    step = max(_LINE // array.itemsize, 1)

    def write(part: slice) -> None:
        for some in threads.blocks(part, step):
            result[..., some] = array[..., some]

    threads.over(array.shape[-1], write, array.size // array.shape[-1], step)
    return result


def _is_turned(array: Array) -> bool:
    """Whether neighbours in memory are along another axis than the last, and those along it far and evenly apart."""
    apart = abs(array.strides[-1])
    if not apart or apart % _ALIASED or array.shape[-1] < _FEW:
        return False
    neighbours = _LINE // array.itemsize
    return any(
        stride == array.itemsize and size >= neighbours for stride, size in zip(array.strides, array.shape, strict=True)
    )
