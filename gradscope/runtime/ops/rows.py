"""Sums and maxima along short rows, as those of a softmax over ten classes, which NumPy takes one row at a time.

That costs 10 to 60 ns a row, however short. A product with ones sums all rows at once, and maxima of the columns of the
transposed array are taken for many rows by one instruction.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

__all__ = ["row_maxima", "row_sums", "short_rows"]

# Above these, what a row costs is not its beginning; below the last, transposing costs more than it gains.
_SHORT_TO_ADD, _SHORT_TO_COMPARE, _FEW = 128, 64, 32


def short_rows(array: Any, axis: int | tuple[int, ...], longest: int = _SHORT_TO_ADD) -> bool:
    """Whether `axis` is that of the rows of an array on the host, of single or double precision, and these are short.

    Parameters
    ----------
    array : ndarray
    axis : int or tuple of int
        From 0; several are no rows.
    longest : int

    Returns
    -------
    bool
    """
    if type(array) is not numpy.ndarray or array.dtype.char not in "fd" or axis != array.ndim - 1:
        return False
    return 0 < array.shape[-1] <= longest and array.size > 0 and array.flags.c_contiguous


def row_sums(xp: Any, array: Any, axis: int | tuple[int, ...]) -> Any:
    """Return the sums along an axis, or several, which are kept as of size 1.

    Parameters
    ----------
    xp : module
    array : ndarray
    axis : int or tuple of int
        From 0.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> row_sums(numpy, numpy.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([[3.],
           [7.]])
    """
    if not short_rows(array, axis):
        return xp.add.reduce(array, axis=axis, keepdims=True)
    count = array.shape[-1]
    return _kept(array, array.reshape(-1, count).dot(_ones(count, array.dtype)))


def row_maxima(xp: Any, array: Any, axis: int) -> Any:
    """Return the maxima along an axis, which is kept as one of size 1; NaN where there is one.

    Parameters
    ----------
    xp : module
    array : ndarray
    axis : int
        From 0.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> row_maxima(numpy, numpy.array([[1.0, 2.0], [4.0, 3.0]]), 1)
    array([[2.],
           [4.]])
    """
    if not short_rows(array, axis, _SHORT_TO_COMPARE) or array.size < _FEW * array.shape[axis]:
        return array.max(axis=axis, keepdims=True)
    return _kept(array, numpy.maximum.reduce(array.reshape(-1, array.shape[-1]).T.copy(), axis=0))


def _kept(array: Any, values: Any) -> Any:
    """Return one value for each row of an array in its shape, with the last dimension of size 1."""
    return values.reshape(*array.shape[:-1], 1)


@lru_cache(maxsize=512)
def _ones(count: int, dtype: Any) -> numpy.ndarray:
    found = numpy.ones(count, dtype)
    found.flags.writeable = False
    return found
