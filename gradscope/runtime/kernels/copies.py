"""Copies in row-major order of arrays that lie in memory in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["row_major_copy"]

_LINE = 64  # bytes that the processor's cache takes from memory at once
_ALIASED = 1024  # of addresses at multiples of so many bytes it keeps few at a time
_SMALL = 1 << 14  # elements of an array that the cache holds in any case
_FEW = 64  # columns of which it keeps the lines


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
    if array.size < _SMALL or not _is_turned(array):
        return array.copy(order="C")
    result = numpy.empty(array.shape, array.dtype)
    step = max(_LINE // array.itemsize, 1)
    for begin in range(0, array.shape[-1], step):
        result[..., begin : begin + step] = array[..., begin : begin + step]
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
