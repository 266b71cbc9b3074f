"""Half precision to single and back, by the bits; the NumPy form is in `casts`."""

from __future__ import annotations

import numpy
from numba import types

from .jit import IN1, OUT1, kernel

_f4, _i4, _u2 = numpy.float32, numpy.int32, numpy.uint16

_MAGNITUDE, _EXPONENT, _SIGN = _i4(0x7FFFFFFF), _i4(0x7F800000), _i4(0x8000)
_INFINITE, _QUIET, _PAYLOAD = _i4(0x7F800000), _i4(0x7E00), _i4(0x3FF)
_BEYOND, _LEAST_NORMAL = _i4(0x47800000), _i4(0x38800000)  # the bits of 2^16 and of 2^-14
_SHIFT, _BITS_LOST = _i4(13), _i4(13 << 23)
_REST, _HALF_INFINITE, _HIDDEN, _BIAS = _i4(0x7FFF), _i4(0x7C00), _i4(0x400), _i4(112 << 23)
_LEAST = _f4(2.0**-24)  # the smallest number of half precision


@kernel(IN1, types.Array(types.uint16, 1, "C"))
def to_half(x, result):
    for i in range(x.size):
        bits = _f4(x[i]).view(_i4)
        magnitude = _i4(bits & _MAGNITUDE)
        within = _i4(_BEYOND if magnitude > _BEYOND else magnitude)
        exponent = _i4(_i4(_LEAST_NORMAL if within < _LEAST_NORMAL else within) & _EXPONENT)
        # Beside so large a power of two there is room for the bits of half precision alone.
        power = _i4(exponent + _BITS_LOST)
        mantissa = _i4(_f4(_i4(within).view(_f4) + _i4(power).view(_f4)).view(_i4) - power)
        half = _i4(_i4(_i4(exponent - _LEAST_NORMAL) >> _SHIFT) + mantissa)
        nan = _i4(_QUIET | _i4(_i4(magnitude >> _SHIFT) & _PAYLOAD))
        half = _i4(nan if magnitude > _INFINITE else half)
        result[i] = _i4(half | _i4(_i4(bits >> _i4(16)) & _SIGN))


@kernel(types.Array(types.uint16, 1, "C", readonly=True), OUT1)
def to_single(bits, result):
    for i in range(bits.size):
        word = _i4(bits[i])
        rest = _i4(word & _REST)
        wide = _i4(_i4(rest << _SHIFT) + _BIAS)
        wide = _i4(_i4(wide + _BIAS) if rest >= _HALF_INFINITE else wide)
        wide = _i4(_f4(_f4(rest) * _LEAST).view(_i4) if rest < _HIDDEN else wide)
        result[i] = _i4(wide | _i4(_i4(word & _SIGN) << _i4(16))).view(_f4)
