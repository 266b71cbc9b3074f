"""Arithmetic of an array with one that broadcasts to it, where NumPy begins anew at every row.

Beside a row, or a number for each row or channel, that takes NumPy twice to four times as long as beside an array of
the same shape; the compiled loops take no longer than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from .. import loading, threads

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["LEAST", "OPERATIONS", "arithmetic"]

LEAST = 1 << 14
"""How many elements the larger array has for which the compiled loops are worth the look."""

OPERATIONS: dict[Any, tuple[str, str]] = {
    numpy.add: ("ADD", "ADD"),
    numpy.subtract: ("SUBTRACT", "SUBTRACT_FROM"),
    numpy.multiply: ("MULTIPLY", "MULTIPLY"),
    numpy.true_divide: ("DIVIDE", "DIVIDE_BY"),
}
"""What the loops call a ufunc, where the larger array is its first argument, and where it is the second."""

_SINGLE = numpy.dtype(numpy.float32)


def arithmetic(ufunc: Callable[..., Array], first: Any, second: Any, out: Array | None = None) -> Array | None:
    """Return a sum, difference, product or quotient where one argument broadcasts to the other, and a loop is for them.

    Parameters
    ----------
    ufunc : callable
        One of `OPERATIONS`.
    first, second : object
        Its arguments.
    out : ndarray, optional
        Where it writes.

    Returns
    -------
    ndarray or None
        None where the ufunc itself is to be called.
    """
    if type(first) is not numpy.ndarray or type(second) is not numpy.ndarray:
        return None
    if first.shape == second.shape or not (first.ndim and second.ndim):
        return None
    turned = first.size < second.size
    x, other = (second, first) if turned else (first, second)
    if x.size < LEAST or x.dtype is not _SINGLE or other.dtype is not _SINGLE or not _may_write(x, out):
        return None
    loops = loading.compiled("arithmetic_loops")
    found = None if loops is None else _as_rows(x.shape, other.shape)
    if found is None:
        return None
    size, name = found
    result = numpy.empty(x.shape, _SINGLE) if out is None else out
    vector = numpy.ascontiguousarray(other).reshape(-1)
    if out is not None and numpy.may_share_memory(out, vector):
        vector = vector.copy()
    rows, to = x.reshape(-1, size), result.reshape(-1, size)
    loop, operation = getattr(loops, name), getattr(loops, OPERATIONS[ufunc][turned])
    threads.over(len(rows), lambda part: loop(rows, vector, operation, part.start, part.stop, to), size, quick=True)
    return result


def _may_write(x: Array, out: Array | None) -> bool:
    """Whether the loops can read the larger array where it lies, and write the result to `out`."""
    if not x.flags.c_contiguous:
        return False
    if out is None or out is x:
        return True
    lies = out.shape == x.shape and out.dtype is _SINGLE and out.flags.c_contiguous
    return lies and not numpy.may_share_memory(out, x)


def _as_rows(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, str] | None:
    """Return how long rows of the larger array are beside which the other is one row, or numbers; and the loop.

    Examples
    --------
    >>> _as_rows((2, 3, 4), (3, 4)), _as_rows((2, 3, 4), (1, 3, 1)), _as_rows((2, 3, 4), (2, 1, 4))
    ((12, 'beside_row'), (4, 'beside_numbers'), None)
    """
    if len(other) > len(shape):
        return None
    while other and other[0] == 1:
        other = other[1:]
    if not other:
        return None
    start, end = len(shape) - len(other), len(shape)
    if other == shape[start:]:
        return math.prod(other), "beside_row"
    while other[-1] == 1:
        other, end = other[:-1], end - 1
    return (math.prod(shape[end:]), "beside_numbers") if other == shape[start:end] else None
