"""Special functions and remainders in one pass over memory: SciPy and C compute one number after the other."""

from __future__ import annotations

import numpy
from numba import types

from .jit import IN1, OUT1, doubles, i8, kernel, of_each, scalar, with_functions

erfcs = of_each("erfcs", doubles.erfc)
erfinvs = of_each("erfinvs", doubles.erfinv)
i0s = of_each("i0s", doubles.i0)
i1s = of_each("i1s", doubles.i1)

_f4, _f8, _i4 = numpy.float32, numpy.float64, numpy.int32
_SIGN, _MAGNITUDE = _i4(-0x80000000), _i4(0x7FFFFFFF)


@scalar
def _towards_zero(quotient):
    down = doubles.floor(abs(quotient))
    return -down if quotient < _f8(0) else down


@scalar
def _signed_as(rest, x):
    return _i4(_i4(_f4(rest).view(_i4) & _MAGNITUDE) | _i4(_f4(x).view(_i4) & _SIGN)).view(_f4)


@scalar
def _as_it_is(rest, x):
    return _f4(rest)


_rounded, _signed = doubles.floor, _as_it_is  # the functions that each kernel has its own of


def _write_rests(x, y, result, beyond):
    count = 0
    for i in range(x.size):
        dividend, divisor = _f8(x[i]), _f8(y[i])
        quotient = _rounded(dividend / divisor)
        rest = dividend - quotient * divisor
        count += 0 if (abs(quotient) < _MOST) & (rest == rest) else 1
        result[i] = _signed(rest, x[i])
    beyond[0] = count


_MOST = _f8(1 << 28)  # as in `kernels.division`, which says why
_REMAINDER = kernel(IN1, IN1, OUT1, types.Array(i8, 1, "C"))
fmods = _REMAINDER(with_functions("fmods", _write_rests, _rounded=_towards_zero, _signed=_signed_as))
remainders = _REMAINDER(with_functions("remainders", _write_rests, _rounded=doubles.floor, _signed=_as_it_is))
