"""Half precision to single and back, of one number: by the processor's instructions where it has them, or by bits."""

from __future__ import annotations

from typing import Any

import numpy
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from . import scalar

__all__ = ["half_of", "single_of"]

_f4, _i4 = numpy.float32, numpy.int32

_MAGNITUDE, _EXPONENT, _SIGN = _i4(0x7FFFFFFF), _i4(0x7F800000), _i4(0x8000)
_INFINITE, _QUIET, _PAYLOAD = _i4(0x7F800000), _i4(0x7E00), _i4(0x3FF)
_BEYOND, _LEAST_NORMAL = _i4(0x47800000), _i4(0x38800000)  # the bits of 2^16 and of 2^-14
_SHIFT, _BITS_LOST = _i4(13), _i4(13 << 23)
_REST, _HALF_INFINITE, _HIDDEN, _BIAS = _i4(0x7FFF), _i4(0x7C00), _i4(0x400), _i4(112 << 23)
_LEAST = _f4(2.0**-24)  # the smallest number of half precision


@scalar
def half_by_bits(x):
    """Return the bits of the half that is nearest to a number."""
    bits = _f4(x).view(_i4)
    magnitude = _i4(bits & _MAGNITUDE)
    within = _i4(_BEYOND if magnitude > _BEYOND else magnitude)
    exponent = _i4(_i4(_LEAST_NORMAL if within < _LEAST_NORMAL else within) & _EXPONENT)
    # Beside so large a power of two there is room for the bits of half precision alone.
    power = _i4(exponent + _BITS_LOST)
    mantissa = _i4(_f4(_i4(within).view(_f4) + _i4(power).view(_f4)).view(_i4) - power)
    half = _i4(_i4(_i4(exponent - _LEAST_NORMAL) >> _SHIFT) + mantissa)
    nan = _i4(_QUIET | _i4(_i4(magnitude >> _SHIFT) & _PAYLOAD))
    half = _i4(nan if magnitude > _INFINITE else half)
    return _i4(half | _i4(_i4(bits >> _i4(16)) & _SIGN))


@scalar
def single_by_bits(bits):
    """Return the number of a half's bits."""
    word = _i4(bits)
    rest = _i4(word & _REST)
    wide = _i4(_i4(rest << _SHIFT) + _BIAS)
    wide = _i4(_i4(wide + _BIAS) if rest >= _HALF_INFINITE else wide)
    wide = _i4(_f4(_f4(rest) * _LEAST).view(_i4) if rest < _HIDDEN else wide)
    return _i4(wide | _i4(_i4(word & _SIGN) << _i4(16))).view(_f4)


@intrinsic
def _half_by_instruction(context, x):
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), code


@intrinsic
def _single_by_instruction(context, bits):
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), code


# Elsewhere the compiler would call a function that there may be none of.
_HAS_INSTRUCTIONS = "+f16c" in cpu_target.target_context.codegen().magic_tuple()[2]
half_of = _half_by_instruction if _HAS_INSTRUCTIONS else half_by_bits
single_of = _single_by_instruction if _HAS_INSTRUCTIONS else single_by_bits
