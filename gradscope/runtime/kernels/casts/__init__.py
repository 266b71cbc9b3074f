"""Conversions between dtypes; of half precision by the bits, which NumPy turns into single one after the other.

- :mod:`~.half_arithmetic`: ufuncs of large arrays of half precision
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from ...memory import bfloat16
from .. import forms, loading, threads
from ..copies import converted

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array, DType

__all__ = ["cast", "write_half", "write_single"]

_HALF, _SINGLE, _WORD = numpy.dtype(numpy.float16), numpy.dtype(numpy.float32), numpy.dtype(numpy.int32)
_BLOCK = 1 << 15
_EXPONENT, _INFINITE = numpy.int32(0x7F800000), numpy.int32(0x7F800000)
_BEYOND, _LEAST_NORMAL = numpy.int32(0x47800000), numpy.int32(0x38800000)  # the bits of 2^16 and of 2^-14
_BITS_LOST, _MAGNITUDE, _SIGN = numpy.int32(13 << 23), numpy.int32(0x7FFFFFFF), numpy.int32(0x8000)
_SPREAD = numpy.int32(-0x70002000)  # the bits of half precision at their places in single: not the copies of the sign
_SCALE, _LARGEST_SCALED = numpy.float32(2.0**112), 2.0**16


def cast(array: Array, kind: DType) -> Array:
    """Return a bare array in the dtype `kind`, which may be bfloat16, unlike ``array.astype(kind)``.

    Examples
    --------
    >>> cast(numpy.array([1.0, 2.5]), numpy.dtype("float16"))
    array([1. , 2.5], dtype=float16)
    """
    if isinstance(array, numpy.ndarray) and array.size >= forms.FEW:
        if not any(array.strides):  # an expanded number, as the gradient of a sum is
            one = cast(array[(0,) * array.ndim + (...,)], kind)
            result = numpy.empty_like(one, shape=array.shape)
            result[...] = one
            return result
        write = _WRITERS.get((array.dtype, kind))
        if write is not None and array.flags.c_contiguous:
            result = numpy.empty(array.shape, kind)
            given, to = array.reshape(-1), result.reshape(-1)
            threads.over(array.size, lambda part: write(given[part], to[part]))
            return result
    if kind.char == bfloat16.CHAR and type(array) is numpy.ndarray:
        return bfloat16.rounded(array)
    return converted(array, kind)


def write_half(x: Array, result: Array) -> None:
    """Write a vector of single precision to one of half."""
    loops = loading.compiled("half_precision_loops")
    if loops is not None:
        loops.to_half(x, result.view(numpy.uint16))
        return
    exponent, mantissa = numpy.empty((2, _BLOCK), _WORD)
    for some in threads.blocks(slice(0, x.size), _BLOCK):
        size = some.stop - some.start
        _write_half_block(x[some], result[some], exponent[:size], mantissa[:size])


def _write_half_block(x: Array, result: Array, exponent: Array, mantissa: Array) -> None:
    bits, to = x.view(_WORD), result.view(numpy.uint16)
    numpy.bitwise_and(bits, _MAGNITUDE, out=mantissa)
    if mantissa.max() > _INFINITE:  # there is a NaN
        result[...] = x
        return
    numpy.minimum(mantissa, _BEYOND, out=mantissa)
    numpy.maximum(mantissa, _LEAST_NORMAL, out=exponent)
    exponent &= _EXPONENT
    # Beside so large a power of two there is room for the bits of half precision alone.
    exponent += _BITS_LOST
    within = mantissa.view(_SINGLE)
    within += exponent.view(_SINGLE)
    mantissa -= exponent
    exponent -= _LEAST_NORMAL + _BITS_LOST
    exponent >>= 13
    mantissa += exponent
    numpy.right_shift(bits, 16, out=exponent)
    exponent &= _SIGN
    mantissa |= exponent
    to[...] = mantissa


def write_single(x: Array, result: Array) -> None:
    """Write a vector of half precision to one of single."""
    loops = loading.compiled("half_precision_loops")
    if loops is not None:
        loops.to_single(x.view(numpy.uint16), result)
        return
    bits, words = x.view(numpy.int16), result.view(_WORD)
    for some in threads.blocks(slice(0, x.size), _BLOCK):
        word, number = words[some], result[some]
        word[...] = bits[some]
        word <<= 13
        word &= _SPREAD
        number *= _SCALE
        if max(number.max(), -number.min()) >= _LARGEST_SCALED:  # of infinity and NaN
            number[...] = x[some]


_WRITERS = {(_SINGLE, _HALF): write_half, (_HALF, _SINGLE): write_single}
