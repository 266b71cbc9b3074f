"""The statistics of a tensor in a recording; the NumPy form is in `inspect.recording.recorder`."""

from __future__ import annotations

import numpy
from numba import types

from ..jit import IN1, OUT1, i8, kernel
from ..jit.scalars import float_of_order, order_of

_f8, _i4 = numpy.float64, numpy.int32
_HIGHEST, _LOWEST = _i4(0x7FFFFFFF), _i4(-0x80000000)


@kernel(IN1, OUT1, types.Array(types.float64, 1, "C"), types.Array(i8, 1, "C"))
def moments_and_exponents(x, extremes, sums, counts):
    """Write least and largest; the sum and that of squares; and how many elements have each of 256 exponents."""
    low, high = _HIGHEST, _LOWEST
    for i in range(x.size):
        key = order_of(x[i])
        low = key if key < low else low
        high = key if key > high else high
    extremes[0], extremes[1] = float_of_order(low), float_of_order(high)
    total, squares = 0.0, 0.0
    for i in range(x.size):
        value = _f8(x[i])
        total += value
        squares += value * value
    sums[0], sums[1] = total, squares
    bits = x.view(_i4)
    # Neighbours mostly have the same exponent: four tables need not wait for each other.
    tables = numpy.zeros(4 * 256, numpy.int64)
    whole = x.size // 4 * 4
    for i in range(0, whole, 4):
        tables[(bits[i] >> 23) & 255] += 1
        tables[256 + ((bits[i + 1] >> 23) & 255)] += 1
        tables[512 + ((bits[i + 2] >> 23) & 255)] += 1
        tables[768 + ((bits[i + 3] >> 23) & 255)] += 1
    for i in range(whole, x.size):
        tables[(bits[i] >> 23) & 255] += 1
    for place in range(256):
        counts[place] = tables[place] + tables[256 + place] + tables[512 + place] + tables[768 + place]
