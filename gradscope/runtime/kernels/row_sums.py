"""Sums along rows and down columns, and maxima along rows, where NumPy's own begin anew at every row.

That costs 10 to 60 ns a row, however short. A product with ones sums all of them at once, and more exactly; maxima of
the columns of the transposed array are taken for many rows by one instruction.

All elements of a large array are reduced as rows, which threads share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy

from . import forms, loading, threads
from .elementwise import LARGE, shared

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, DType


__all__ = [
    "reduced",
    "row_maxima",
    "row_products",
    "spread_sums",
    "sum_of_squared_differences",
    "sum_of_squares",
    "sums",
    "sums_of_squares",
]

# Above these, what a row costs is not its beginning, but rows of whole parts of the first are added part by part; below
# the last, transposing costs more than it gains.
_SHORT_TO_ADD, _SHORT_TO_COMPARE, _FEW = 128, 64, 32

# From the short ones up to these, NumPy finds the place of a maximum in half of the time of the maximum.
_LONG_TO_COMPARE = 1 << 10

# Up to these, to add rows as often as they have elements takes less than to broadcast the sums.
_SHORT_TO_SPREAD, _FEW_TO_SPREAD = 16, 512

_LONG_TO_ADD = 1 << 10  # elements of a row that has no whole short parts, up to which a product is exact enough
_FEW_IN_RUNS = 1 << 10  # elements below which one call of NumPy's takes no longer than several products
_BLOCK_OF_LOOP = 256  # elements that a compiled kernel adds at once: it takes long for a rest

_FIRST = tuple(range(64))  # an array has at most as many axes
_BLOCK = 1 << 14  # rows that are added at once
_PART = 1 << 14  # elements that are reduced to one before it meets others
_FEW_PARTS = 2 * _PART  # from here on a compiled kernel is worth the call
_kept_ones: dict[str, numpy.ndarray] = {}


def reduced(ufunc: numpy.ufunc, array: Array) -> Array:
    """Return what a ufunc reduces all elements to; it does not depend on the number of threads.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One whose result is of the elements' dtype.

    Returns
    -------
    ndarray
        Or NumPy's number.

    Examples
    --------
    >>> float(reduced(numpy.add, numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    10.0
    """
    loop = _loop("sums_of_rows", array) if ufunc is numpy.add else None
    if loop is None and (array.size < LARGE or not _is_dense(array)):
        return ufunc.reduce(array, None)
    reduce_rows = loop or (lambda rows, found: ufunc.reduce(rows, 1, out=found))
    return _reduced_in_parts(ufunc, (array,), reduce_rows, ufunc.reduce)


def sum_of_squares(array: Array) -> Array:
    """Return the sum of the squares of all elements, in one pass where that is compiled.

    Examples
    --------
    >>> float(sum_of_squares(numpy.array([[1.0, 2.0], [3.0, 4.0]])))
    30.0
    """
    loop = _loop("squares_of_rows", array)
    if loop is None:
        return sums(array * array, tuple(range(array.ndim)), keepdims=False)
    return _reduced_in_parts(numpy.add, (array,), loop, lambda rest: numpy.add.reduce(rest * rest))


def sum_of_squared_differences(first: Array, second: Array) -> Array:
    """Return the sum of the squares of all differences of arrays, in one pass where that is compiled.

    Examples
    --------
    >>> float(sum_of_squared_differences(numpy.array([3.0, 4.0]), numpy.array([1.0, 1.0])))
    13.0
    """
    loop = _loop("squared_differences_of_rows", first)
    if loop is None or first.strides != second.strides or not (_is_dense(second) and second.dtype == first.dtype):
        return sum_of_squares(shared(numpy.subtract, first, second))

    def reduce_rest(rest: Array, other: Array) -> Array:
        return numpy.add.reduce(numpy.square(rest - other))

    return _reduced_in_parts(numpy.add, (first, second), loop, reduce_rest)


def _is_dense(array: Array) -> bool:
    return type(array) is numpy.ndarray and array.flags.forc


def _loop(name: str, array: Array) -> Callable[..., object] | None:
    """Return a compiled kernel that reduces rows, where an array is one for it and it is worth the call."""
    if array.size < _FEW_PARTS or array.dtype.char != "f" or not _is_dense(array):
        return None
    return getattr(loading.compiled("sum_loops"), name, None)


def _reduced_in_parts(
    ufunc: numpy.ufunc,
    arrays: tuple[Array, ...],
    reduce_rows: Callable[..., object],
    reduce_rest: Callable[..., Array],
) -> Array:
    """Return what a ufunc reduces to one number: what rows of whole parts, and the rest, are reduced to."""
    vectors = [array.reshape(-1, order="A") for array in arrays]
    count = vectors[0].size // _PART
    whole, found = count * _PART, numpy.empty(count + 1, vectors[0].dtype)
    rows = [vector[:whole].reshape(count, _PART) for vector in vectors]
    threads.over(count, lambda part: reduce_rows(*[r[part] for r in rows], found[part]), _PART, quick=True)
    if vectors[0].size == whole:
        return ufunc.reduce(found[:count])
    found[count] = reduce_rest(*[vector[whole:] for vector in vectors])
    return ufunc.reduce(found)


def sums(array: Array, axes: tuple[int, ...], keepdims: bool = True) -> Array:
    """Return the sums along dimensions: products with ones, or compiled, where NumPy takes longer.

    Parameters
    ----------
    axes : tuple of int
        From 0.
    keepdims : bool
        Whether these dimensions stay, with size 1.

    Returns
    -------
    ndarray
        Or NumPy's number, where no dimension is left.

    Examples
    --------
    >>> sums(numpy.array([[1.0, 2.0], [3.0, 4.0]]), (1,))
    array([[3.],
           [7.]])
    >>> sums(numpy.array([[1.0, 2.0], [3.0, 4.0]]), (0,), keepdims=False)
    array([4., 6.])
    """
    shape, count = array.shape, len(axes)
    if array.size >= _FEW_PARTS and count == len(shape) and _is_plain(array):
        total = reduced(numpy.add, array)
        return total.reshape((1,) * count) if keepdims else total
    if not 0 < count < len(shape) or not _is_plain(array):
        if _is_expanded(array):  # the gradient of a sum
            number = array[(0,) * len(shape)] * array.dtype.type(math.prod(shape[axis] for axis in axes))
            kept = [1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes]
            return numpy.full(kept, number, array.dtype)
        if count == 1 and len(shape) == 2 and _is_plain(array.T):
            total = sums(array.T, (1 - axes[0],), keepdims=False)
            return numpy.expand_dims(total, axes[0]) if keepdims else total
        return array.sum(axis=axes, keepdims=keepdims)
    if len(shape) == 2 and axes[0] and shape[1] <= _SHORT_TO_ADD:
        total = array.dot(_column(array.dtype.char, shape[1]))
        return total if keepdims else total.reshape(-1)
    if axes == _FIRST[:count]:
        total = _down(array.reshape(math.prod(shape[:count]), -1))
        rest = (1,) * count + shape[count:] if keepdims else shape[count:]
    elif axes == (len(shape) - 1,):
        total = _along(array.reshape(-1, shape[-1]))
        rest = (*shape[:-1], 1) if keepdims else shape[:-1]
    elif array.size < _FEW_IN_RUNS:
        return array.sum(axis=axes, keepdims=keepdims)
    else:
        total = _in_runs(array, axes)
        rest = tuple([1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes])
    return total if len(rest) == 1 else total.reshape(rest)


def sums_of_squares(array: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the sums of squares along dimensions; along the last ones each is one product of a row with itself.

    Examples
    --------
    >>> sums_of_squares(numpy.array([[1.0, 2.0], [3.0, 4.0]]), (1,), True)
    array([[ 5.],
           [25.]])
    """
    shape, begin = array.shape, array.ndim - len(axes)
    size = math.prod(shape[begin:])
    are_rows = 0 < begin < len(shape) and axes == tuple(range(begin, len(shape))) and _is_plain(array)
    if not are_rows or size < _SHORT_TO_COMPARE:
        return sums(array * array, axes, keepdims)
    rows = array.reshape(-1, size)
    return numpy.vecdot(rows, rows).reshape((*shape[:begin], *(1,) * len(axes)) if keepdims else shape[:begin])


def row_products(array: Array) -> Array:
    """Return the products along the last dimension, which is not kept.

    Examples
    --------
    >>> row_products(numpy.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 12.0]
    """
    loop = _loop("products_of_rows", array) if array.ndim > 1 and _is_plain(array) else None
    if loop is None:
        return numpy.multiply.reduce(array, -1)
    rows, found = array.reshape(-1, array.shape[-1]), numpy.empty(array.shape[:-1], array.dtype)
    flat = found.reshape(-1)
    threads.over(len(rows), lambda part: loop(rows[part], flat[part]), array.shape[-1], quick=True)
    return found


def spread_sums(array: Array, axes: tuple[int, ...]) -> Array:
    """Return what broadcasts as the sums along dimensions do: beside a small matrix those of rows for each element.

    NumPy takes longer to begin to broadcast than for a product with ones, and arithmetic of two small arrays.

    Examples
    --------
    >>> spread_sums(numpy.array([[1.0, 2.0], [3.0, 4.0]]), (1,))
    array([[3., 3.],
           [7., 7.]])
    """
    shape = array.shape
    few = axes == (1,) and len(shape) == 2 and shape[1] <= _SHORT_TO_SPREAD and array.size <= _FEW_TO_SPREAD
    if few and _is_plain(array):
        return array.dot(_square(array.dtype.char, shape[1]))
    return sums(array, axes)


def row_maxima(array: Array, axis: int) -> Array:
    """Return the maxima along an axis, which is kept as one of size 1; NaN where there is one.

    Parameters
    ----------
    axis : int
        From 0.

    Examples
    --------
    >>> row_maxima(numpy.array([[1.0, 2.0], [4.0, 3.0]]), 1)
    array([[2.],
           [4.]])
    """
    shape = array.shape
    row = shape[axis]
    if row > _LONG_TO_COMPARE or axis != len(shape) - 1 or array.size < _FEW * row or not _is_plain(array):
        if type(array) is numpy.ndarray:
            return numpy.maximum.reduce(array, axis, keepdims=True)  # max() calls this by way of Python
        return array.max(axis=axis, keepdims=True)
    matrix = array.reshape(-1, row)
    if row < _SHORT_TO_COMPARE:
        return numpy.maximum.reduce(matrix.T.copy(), axis=0).reshape(*shape[:-1], 1)
    places = matrix.argmax(1)
    places += numpy.arange(0, array.size, row)
    return array.take(places).reshape(*shape[:-1], 1)


def _is_plain(array: Array) -> bool:
    """Whether an array is on the host, of single or double precision, in row-major order and not empty."""
    return bool(type(array) is numpy.ndarray and array.dtype.char in "fd" and array.flags.c_contiguous and array.size)


def _is_expanded(array: Array) -> bool:
    """Whether a large array is one number, of single or double precision, in each of its places."""
    large = type(array) is numpy.ndarray and array.size >= forms.LEAST and array.dtype.char in "fd"
    return large and not any(array.strides)


def _along(matrix: numpy.ndarray) -> numpy.ndarray:
    """Return the sums along rows."""
    size = matrix.shape[1]
    loop = _loop("sums_of_rows", matrix) if size > _LONG_TO_ADD or not size % _BLOCK_OF_LOOP else None
    if loop is None:
        return _along_by_products(matrix)
    total = numpy.empty(len(matrix), matrix.dtype)
    threads.over(len(matrix), lambda part: loop(matrix[part], total[part]), size, quick=True)
    return total


def _along_by_products(matrix: numpy.ndarray) -> numpy.ndarray:
    """Return the sums along rows as products with ones: those of whole short parts first, which is as exact."""
    ones, size = _ones(matrix.dtype), matrix.shape[1]
    if size > _LONG_TO_ADD and size % _SHORT_TO_ADD:
        return numpy.add.reduce(matrix, 1)
    while size > _SHORT_TO_ADD and not size % _SHORT_TO_ADD:
        matrix = matrix.reshape(-1, _SHORT_TO_ADD).dot(ones[:_SHORT_TO_ADD])
        size //= _SHORT_TO_ADD
    return matrix.reshape(-1, size).dot(ones[:size])


def _in_runs(array: Array, axes: tuple[int, ...]) -> Array:
    """Return the sums along axes, one run of neighbours after the other, the last first; these stay with size 1."""
    left, shape = sorted(axes), list(array.shape)
    while left:
        end = left.pop() + 1
        begin = end - 1
        while left and left[-1] == begin - 1:
            begin = left.pop()
        before, size, after = (math.prod(part) for part in (shape[:begin], shape[begin:end], shape[end:]))
        array = _across(array.reshape(before, size, after))
        shape[begin:end] = [1] * (end - begin)
    return array


def _across(matrices: Array) -> Array:
    """Return the sums down the columns of each matrix, of shape (matrices, columns)."""
    count, rows, columns = matrices.shape
    if columns == 1:
        return _along(matrices.reshape(count, rows))
    if count == 1:
        return _down(matrices[0])
    if rows > _BLOCK:
        return numpy.add.reduce(matrices, 1)
    return numpy.matmul(_ones(matrices.dtype)[:rows], matrices)


def _down(matrix: numpy.ndarray) -> numpy.ndarray:
    """Return the sums down the columns of a matrix."""
    ones, rows = _ones(matrix.dtype), len(matrix)
    if rows <= _BLOCK:
        return ones[:rows].dot(matrix)
    total = ones.dot(matrix[:_BLOCK])
    for start in range(_BLOCK, rows, _BLOCK):
        part = matrix[start : start + _BLOCK]
        total += ones[: len(part)].dot(part)
    return total


@cache
def _column(char: str, rows: int) -> numpy.ndarray:
    """Return a column of ones: a product with it has a row of one number where a sum of a row has."""
    column = numpy.ones((rows, 1), char)
    column.flags.writeable = False
    return column


@cache
def _square(char: str, rows: int) -> numpy.ndarray:
    square = numpy.ones((rows, rows), char)
    square.flags.writeable = False
    return square


def _ones(dtype: DType) -> numpy.ndarray:
    """Return a read-only block of ones."""
    kept = _kept_ones.get(dtype.char)
    if kept is None:
        kept = _kept_ones[dtype.char] = numpy.ones(_BLOCK, dtype)
        kept.flags.writeable = False
    return kept
