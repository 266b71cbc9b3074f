"""Which arrays the kernels of normalisation are for, and how many of their rows are taken at once.

Sums over rows are made of those of blocks of one size, whatever the number of threads, so that they are the same
numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from .. import cuda_kernels, forms, loading
from ..row_buffers import WIDE

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["SUMMED", "is_worth_it", "loops_for", "row_totals", "step", "vector"]

SUMMED = 1 << 16
"""Elements of which one product adds the rows: fewer are more exact."""

_BLOCK = 1 << 18  # elements
_KEPT = 1 << 12  # columns of the rows of one number that are kept


def is_worth_it(*arrays: Array | None) -> bool:
    """Whether the kernels of rows are for the arrays: in row-major order, of single or double precision; None is.

    NumPy's forms are for large arrays, the compiled ones and those on a GPU, which are single calls, for all but empty
    ones.
    """
    first = arrays[0]
    if type(first) is not numpy.ndarray:
        return cuda_kernels.take(arrays)
    kind, size = first.dtype, first.size
    if not size or kind.char not in "fd" or not first.flags.c_contiguous:
        return False
    if size < forms.LEAST and (kind.char != "f" or loading.compiled("normalization_loops") is None):
        return False
    for array in arrays:  # all() of a generator takes twice as long
        if array is None or array is first:
            continue
        if type(array) is not numpy.ndarray or array.dtype != kind:
            return False
    return True


def loops_for(array: Array) -> Any:
    """Return the compiled kernels, where they are for such an array; otherwise None."""
    return loading.compiled("normalization_loops") if array.dtype.char == "f" else None


def vector(value: Array | None, size: int, char: str, otherwise: float) -> Array:
    """Return a parameter of each column, or what stands for the one that is not there."""
    if value is None:
        return _row_of(otherwise, size, char) if size <= _KEPT else numpy.full(size, otherwise, char)
    flat = value if value.ndim == 1 else value.reshape(-1)
    return flat if flat.flags.c_contiguous else numpy.ascontiguousarray(flat)


@lru_cache(maxsize=32)
def _row_of(number: float, size: int, char: str) -> Array:
    """Return a row of one number, which nobody writes; to make it anew takes a quarter of a small layer norm's time."""
    return numpy.full(size, number, char)  # were it read-only, Numba would take longer to tell its type


def row_totals(x: Array) -> Array:
    """Return the sums along rows, of one column: a product with ones takes half the time of a sum."""
    return x.dot(numpy.ones(x.shape[1], x.dtype))[:, None]


def step(each: int) -> int:
    """Return how many rows of `each` elements are a block: of short ones as many as NumPy takes together."""
    together = max(1, WIDE // max(each, 1))
    return max(1, _BLOCK // max(each, 1) // together) * together
