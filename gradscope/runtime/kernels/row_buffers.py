"""The buffer of NumPy's ufuncs, fitted to rows beside a number each, or beside one row.

What NumPy broadcasts it repeats in a buffer of 8192 elements, as many rows as there is room for, and computes these at
once: that takes as long as two computations. Where there is no room for two it begins anew at each row, which costs as
much as some 300 elements, and reads what it broadcasts where it lies.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy

__all__ = ["LARGE", "WIDE", "buffer_for"]

WIDE = 2048
"""Elements of a row for which beginning anew costs next to nothing, and of the quickest buffer for shorter ones."""

LARGE = 1 << 16
"""How many elements the rows have for which another buffer is worth the call."""

_LONG = 320  # elements of a row for which beginning anew is quicker than the buffer


def buffer_for(rows: int, size: int) -> AbstractContextManager[object]:
    """Return a context in which ufuncs have the quickest buffer for so many rows of `size` elements.

    They compute the same numbers. One that converts its arguments does so in this buffer, and takes longer.

    Examples
    --------
    >>> with buffer_for(100, 1000):
    ...     numpy.getbufsize() < 1000
    True
    >>> numpy.getbufsize()
    8192
    """
    if rows * size < LARGE:
        return _UNCHANGED
    return _Buffer(WIDE if size < _LONG else _LONG)


class _Buffer:
    def __init__(self, elements: int) -> None:
        self._elements = elements

    def __enter__(self) -> None:
        self._before = numpy.setbufsize(self._elements)

    def __exit__(self, *exc_info: object) -> None:
        numpy.setbufsize(self._before)


_UNCHANGED = nullcontext()
