"""Elements of one array or of another, as a mask or their place says, without a branch for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from . import forms, loading, threads
from .copies import copy_into

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, Namespace, Operand

__all__ = ["reversed_rows", "select", "triangle"]

_BLOCK = 1 << 15  # elements
_SHORT = 1 << 8  # elements of a row below which NumPy's mask takes no longer than to write the rows
# The integers that have the bits of an element of so many bytes.
_BITS = {size: numpy.dtype(f"int{8 * size}") for size in (1, 2, 4, 8)}


def select(xp: Namespace, condition: Array, chosen: Any, other: Operand) -> Array:
    """Return ``where(condition, chosen, other)``; of large arrays by masking bits.

    A processor guesses which way a branch goes: where signs are random, NumPy's ``where`` takes ten times as long.

    Parameters
    ----------
    condition : ndarray
        Of dtype bool.
    chosen, other : ndarray or number
        What is masked are arrays of one dtype, in row-major order, of the shape of `condition` or of no dimension.

    Examples
    --------
    >>> select(numpy, numpy.array([True, False]), numpy.array([1.0, 2.0]), numpy.array([3.0, 4.0])).tolist()
    [1.0, 4.0]
    """
    if type(condition) is not numpy.ndarray or condition.size < forms.LEAST:
        return xp.where(condition, chosen, other)
    shape = condition.shape
    chosen, other = _as_array(chosen, other, shape), _as_array(other, chosen, shape)
    if not _can_mask(condition, chosen, other):
        return xp.where(condition, chosen, other)
    result = numpy.empty(shape, chosen.dtype)
    bits = _BITS[chosen.itemsize]
    mask, to = condition.reshape(-1).view("b"), result.reshape(-1).view(bits)
    a, b = _bits(chosen, bits), _bits(other, bits)
    write, step = _write_selected, _BLOCK
    loop = _loop(a, b)
    if loop is not None:
        write, step = loop, condition.size

    def work(part: slice) -> None:
        for some in threads.blocks(part, step):
            write(mask[some], a[some] if a.ndim else a[()], b[some] if b.ndim else b[()], to[some])

    threads.over(condition.size, work, quick=True)
    return result


def triangle(array: Array, diagonal: int, *, lower: bool) -> Array:
    """Return a triangle of NumPy matrices; the rest is 0.

    Parameters
    ----------
    array : ndarray
        Of shape (..., rows, columns).
    diagonal : int
        The last one of the lower triangle, or the first one of the upper: 0 is the main one, those above are positive.

    Examples
    --------
    >>> triangle(numpy.array([[1, 2], [3, 4]]), 0, lower=True).tolist()
    [[1, 0], [3, 4]]
    """
    height, size = array.shape[-2:]
    if array.size < forms.LEAST or size < _SHORT or not array.flags.c_contiguous or array.dtype.kind not in "biufc":
        return numpy.tril(array, diagonal) if lower else numpy.triu(array, diagonal)
    result = numpy.empty(array.shape, array.dtype)
    rows, to = array.reshape(-1, size), result.reshape(-1, size)
    loop = getattr(loading.compiled("selection_loops"), "triangle", None) if array.itemsize == 4 else None
    if loop is None:
        _write_triangle(rows, height, diagonal, lower, 0, len(rows), to)
        return result
    given, written, first = rows.view("i4"), to.view("i4"), max(-height, min(diagonal, size))
    threads.over(
        len(rows), lambda part: loop(given, height, first, lower, part.start, part.stop, written), size, quick=True
    )
    return result


def _write_triangle(rows: Array, height: int, diagonal: int, lower: bool, begin: int, end: int, result: Array) -> None:
    for i in range(begin, end):
        middle = min(max(i % height + diagonal + lower, 0), rows.shape[1])
        kept, rest = slice(0, middle), slice(middle, None)
        if not lower:
            kept, rest = rest, kept
        result[i, kept] = rows[i, kept]
        result[i, rest] = 0


def reversed_rows(array: Array) -> Array:
    """Return a copy of a NumPy array, in row-major order, its last dimension reversed.

    Examples
    --------
    >>> reversed_rows(numpy.array([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    result = numpy.empty(array.shape, array.dtype)
    loop = getattr(loading.compiled("selection_loops"), "reverse_rows", None)
    if loop is None or array.itemsize != 4 or array.size < forms.LEAST or not array.flags.c_contiguous:
        copy_into(result, array[..., ::-1])
        return result
    size = array.shape[-1]
    rows, to = array.reshape(-1, size).view("i4"), result.reshape(-1, size).view("i4")
    threads.over(len(rows), lambda part: loop(rows, part.start, part.stop, to), size, quick=True)
    return result


def _loop(chosen: Array, other: Array) -> Callable[..., None] | None:
    """Return the compiled kernel for two rows of bits, one of which may be a number; None where there is none."""
    if chosen.itemsize != 4 or chosen.ndim == other.ndim == 0:
        return None
    name = "select" if chosen.ndim == other.ndim else "select_beside_number" if chosen.ndim else "select_number"
    return getattr(loading.compiled("selection_loops"), name, None)


def _as_array(value: Any, beside: Any, shape: tuple[int, ...]) -> Any:
    """Return as an array of no dimension a number beside floats, as NumPy takes it, and one expanded to a shape."""
    if type(value) is numpy.ndarray:
        return value if value.shape != shape or any(value.strides) else value[(0,) * value.ndim + (...,)]
    kind = getattr(beside, "dtype", None)
    if kind is None or kind.kind != "f" or not (type(value) in (int, float) or getattr(value, "dtype", None) == kind):
        return value
    return numpy.asarray(value, kind)


def _can_mask(condition: Array, *values: Any) -> bool:
    if condition.dtype.kind != "b" or not condition.flags.c_contiguous:
        return False
    kind = getattr(values[0], "dtype", None)
    for value in values:
        if type(value) is not numpy.ndarray or value.dtype != kind or value.itemsize not in _BITS:
            return False
        if value.ndim and (value.shape != condition.shape or not value.flags.c_contiguous):
            return False
    return True


def _bits(array: Array, bits: Any) -> Array:
    """Return an array's bits as one row; a number's as they are."""
    return array.reshape(-1).view(bits) if array.ndim else array.view(bits)


def _write_selected(mask: Array, chosen: Array, other: Array, result: Array) -> None:
    result[...] = mask
    numpy.negative(result, out=result)  # now all bits of an integer are set, or none
    result &= chosen ^ other
    result ^= other
