"""Remainders, and quotients rounded down, of large float32 arrays: by division in double precision.

A quotient of two float32 numbers that is no integer is 2^-24 away from one at least, so that double precision rounds
none below 2^28 to an integer; an integer of so many bits times a float32 number is exact in double precision, and so is
the remainder. C's fmod, which NumPy calls for each element, subtracts one bit of the quotient after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from .. import forms, loading, threads

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["floor_divide", "fmod", "remainder"]

_BLOCK = 1 << 16  # elements whose quotients stay in the cache
_MOST = 1 << 28
_MOST_ROUNDED = 1 << 21
"""The largest quotient that NumPy's steps in single precision round down to the integer that is exact."""


def fmod(x: Any, y: Any) -> Array:
    """Return the remainder with the sign of `x`, as ``numpy.fmod`` does.

    Examples
    --------
    >>> fmod(numpy.array([-3.0, 5.0], "f"), 2).tolist()
    [-1.0, 1.0]
    """
    return _in_blocks(numpy.fmod, _write_fmod, x, y)


def remainder(x: Any, y: Any) -> Array:
    """Return the remainder with the sign of `y`, as ``numpy.remainder`` does; a zero may have either sign.

    Examples
    --------
    >>> remainder(numpy.array([-3.0, 5.0], "f"), 2).tolist()
    [1.0, 1.0]
    """
    return _in_blocks(numpy.remainder, _write_remainder, x, y)


def floor_divide(x: Any, y: Any) -> Array:
    """Return the quotient rounded down, as ``numpy.floor_divide`` does.

    Examples
    --------
    >>> floor_divide(numpy.array([-3.0, 5.0], "f"), 2).tolist()
    [-2.0, 2.0]
    """
    return _in_blocks(numpy.floor_divide, _write_quotient, x, y)


def _in_blocks(ufunc: numpy.ufunc, write: Any, x: Any, y: Any) -> Array:
    """Return what `write` writes of large arrays, a block at a time, and of blocks that it does not take the ufunc."""
    operands = _operands(x, y)
    if operands is None:
        return ufunc(x, y)
    result = numpy.empty(max(x, y, key=numpy.size).shape, numpy.float32)
    target = result.reshape(-1)

    def work(part: slice) -> None:
        with numpy.errstate(all="ignore"):
            wide, quotient = numpy.empty((2, _BLOCK))
            for some in threads.blocks(part, _BLOCK):
                a, b = (value[some] if value.ndim else value for value in operands)
                size = some.stop - some.start
                if not write(a, b, target[some], wide[:size], quotient[:size]):
                    ufunc(a, b, out=target[some])

    threads.over(result.size, work, 4)
    return result


def _operands(x: Any, y: Any) -> list[Array] | None:
    """Return arrays of one shape as vectors, and a number as an array of no dimension; None where they are no such."""
    large = [a for a in (x, y) if type(a) is numpy.ndarray and a.size >= forms.LEAST]
    if not large:
        return None
    found = []
    for value in (x, y):
        if type(value) in (int, float):
            value = numpy.asarray(value, numpy.float32)
        plain = type(value) is numpy.ndarray and value.dtype.char == "f"
        if not plain or (value.ndim and (value.shape != large[0].shape or not value.flags.c_contiguous)):
            return None
        found.append(value.reshape(-1) if value.ndim else value)
    return found


def _write_fmod(x: Array, y: Array, result: Array, wide: Array, quotient: Array) -> bool:
    loops = loading.compiled("special_function_loops")
    if loops is not None:
        return _by_loop(loops.fmods, x, y, result)
    exact = _write_rest(numpy.trunc, x, y, result, wide, quotient)
    numpy.copysign(result, x, out=result)
    return exact


def _write_remainder(x: Array, y: Array, result: Array, wide: Array, quotient: Array) -> bool:
    loops = loading.compiled("special_function_loops")
    if loops is not None:
        return _by_loop(loops.remainders, x, y, result)
    return _write_rest(numpy.floor, x, y, result, wide, quotient)


def _by_loop(loop: Any, x: Array, y: Array, result: Array) -> bool:
    """Write remainders by a compiled loop; say whether they are exact."""
    beyond = numpy.empty(1, numpy.int64)
    loop(*[a if a.ndim else numpy.full(result.size, a) for a in (x, y)], result, beyond)
    return not beyond[0]


def _write_rest(rounded: numpy.ufunc, x: Array, y: Array, result: Array, wide: Array, quotient: Array) -> bool:
    wide[...] = x
    divisor = y.astype(float)
    numpy.divide(wide, divisor, out=quotient)
    rounded(quotient, out=quotient)
    exact = _is_below(quotient, _MOST)
    quotient *= divisor
    wide -= quotient
    result[...] = wide
    return exact and not numpy.isnan(result.max())  # where the divisor is infinite, or the dividend, NaN comes out


def _write_quotient(x: Array, y: Array, result: Array, wide: Array, quotient: Array) -> bool:
    wide[...] = x
    numpy.divide(wide, y.astype(float), out=quotient)
    numpy.floor(quotient, out=quotient)
    result[...] = quotient
    return _is_below(quotient, _MOST_ROUNDED) and bool(numpy.isfinite(y).all())


def _is_below(x: Array, most: int) -> bool:
    """Whether all numbers are smaller; NaN is not."""
    return bool(-most < x.min() and x.max() < most)
