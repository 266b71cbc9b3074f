"""Running sums, products and extremes along an axis of NumPy arrays.

NumPy's own pass each number through memory before the next, and go down the columns of a matrix one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy

from . import forms, loading, threads

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["accumulated", "extremes", "sums_from_the_end"]

_WIDE = 1 << 8  # elements of a slice for which a call of a ufunc is worth it
_LOOPS: dict[numpy.ufunc, str] = {numpy.add: "running_sums", numpy.multiply: "running_products"}


def accumulated(ufunc: numpy.ufunc, array: Array, axis: int) -> Array:
    """Return the running result of a ufunc along an axis, in row-major order; each is that of the one before it.

    Parameters
    ----------
    array : ndarray
        Of one dimension at least, and of the dtype of the result.
    axis : int
        From 0.

    Examples
    --------
    >>> accumulated(numpy.add, numpy.array([[1.0, 2.0], [3.0, 4.0]]), 0)
    array([[1., 2.],
           [4., 6.]])
    """
    result = numpy.empty(array.shape, array.dtype)
    loop = _loop(_LOOPS.get(ufunc), array, axis)
    if loop is not None:
        _over_rows(loop, array, result)
    elif _has_wide_slices(array, axis):
        threads.over_lines(array.shape, axis, lambda some: _write_slices(ufunc, array[some], axis, result[some]))
    else:
        threads.over_lines(array.shape, axis, lambda some: ufunc.accumulate(array[some], axis, out=result[some]))
    return result


def sums_from_the_end(array: Array, axis: int) -> Array:
    """Return the running sums along an axis that begin at its end.

    Examples
    --------
    >>> sums_from_the_end(numpy.array([1.0, 2.0, 3.0]), 0)
    array([6., 5., 3.])
    """
    loop = _loop("running_sums_from_the_end", array, axis)
    if loop is not None:
        result = numpy.empty(array.shape, array.dtype)
        _over_rows(loop, array, result)
        return result
    back = (slice(None),) * axis + (slice(None, None, -1),)
    if _has_wide_slices(array, axis):
        result = numpy.empty(array.shape, array.dtype)
        threads.over_lines(
            array.shape, axis, lambda some: _write_slices(numpy.add, array[some][back], axis, result[some][back])
        )
        return result
    return accumulated(numpy.add, array[back], axis)[back].copy()


def extremes(ufunc: numpy.ufunc, array: Array, axis: int) -> tuple[Array, Array]:
    """Return the running extremes along an axis, and the last places at which they were met; NaN is the most extreme.

    Parameters
    ----------
    ufunc : {numpy.maximum, numpy.minimum}

    Examples
    --------
    >>> values, places = extremes(numpy.maximum, numpy.array([1.0, 3.0, 2.0]), 0)
    >>> values.tolist(), places.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    loop = _loop("running_maxima" if ufunc is numpy.maximum else "running_minima", array, axis)
    if loop is not None:
        values, places = numpy.empty(array.shape, array.dtype), numpy.empty(array.shape, numpy.int64)
        _over_rows(loop, array, values, places)
        return values, places
    values = accumulated(ufunc, array, axis)
    each = numpy.arange(array.shape[axis]).reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    met = numpy.where((array == values) | (array != array), each, 0)
    return values, accumulated(numpy.maximum, met, axis)


def _loop(name: str | None, array: Array, axis: int) -> Any:
    """Return a compiled loop over rows, where the axis has them."""
    if name is None or array.dtype.char != "f" or array.size < forms.FEW or axis != array.ndim - 1:
        return None
    return getattr(loading.compiled("running_loops"), name, None)


def _over_rows(loop: Any, array: Array, *results: Array) -> None:
    size = array.shape[-1]
    rows = [numpy.ascontiguousarray(a).reshape(-1, size) for a in (array, *results)]
    threads.over(len(rows[0]), lambda part: loop(*[a[part] for a in rows]), size)


def _has_wide_slices(array: Array, axis: int) -> bool:
    return math.prod(array.shape[axis + 1 :]) >= _WIDE and array.size > 0


def _write_slices(ufunc: numpy.ufunc, array: Array, axis: int, result: Array) -> None:
    given, to = numpy.moveaxis(array, axis, 0), numpy.moveaxis(result, axis, 0)
    to[0] = given[0]
    for place in range(1, len(given)):
        ufunc(to[place - 1], given[place], out=to[place])
