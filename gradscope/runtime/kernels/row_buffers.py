"""The buffer of NumPy's ufuncs, fitted to rows beside a number each, or beside one row.

What NumPy broadcasts it repeats in a buffer of 8192 elements, as many rows as there is room for, and computes these at
once: that takes as long as two computations. Where there is no room for two it begins anew at each row, which costs as
much as some 300 elements, and reads what it broadcasts where it lies.
"""

from __future__ import annotations

import numpy

__all__ = ["WIDE", "buffer_rows"]

WIDE = 2048
"""Elements of a row for which beginning anew costs next to nothing, and of the quickest buffer for shorter ones."""

_LONG = 320  # elements of a row for which beginning anew is quicker than the buffer


def buffer_rows(size: int) -> None:
    """Have NumPy's ufuncs use the quickest buffer for rows of `size` elements until ``errstate`` ends.

    They compute the same numbers. One that converts its arguments does so in this buffer, and takes longer.

    Examples
    --------
    >>> with numpy.errstate():
    ...     buffer_rows(1000)
    ...     numpy.getbufsize() < 1000
    True
    >>> numpy.getbufsize()
    8192
    """
    numpy.setbufsize(WIDE if size < _LONG else _LONG)
