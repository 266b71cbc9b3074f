"""Functions of one float32, made of what processors do for many numbers at once: no table, no branch, no call.

Ratios of polynomials are least-squares fits of the relative error, reweighted until its extremes are level; they are
off by 4e-7 at most, three units in the last place. NaN stays NaN.
"""

from __future__ import annotations

import math

import numpy

from . import scalar

__all__ = [
    "acos", "asin", "atan", "atan2", "atanh", "cosh", "erf", "exp", "exp2", "expm1", "gradual_exp", "largest", "log",
    "log10", "log1p", "log1p_of_share", "log2", "logaddexp", "sigmoid", "sinh", "tanh", "tanh_of_softplus",
]  # fmt: skip

_f4, _i4 = numpy.float32, numpy.int32

_ZERO, _HALF, _ONE, _TWO = _f4(0), _f4(0.5), _f4(1), _f4(2)
_PER_LOG_TWO = _f4(1 / math.log(2))
# log(2) in two parts, of which the first has few digits, so that a multiple of it is exact.
_LOG_TWO_HIGH, _LOG_TWO_LOW = _f4(0.693359375), _f4(math.log(2) - 0.693359375)
_E3, _E4, _E5 = map(_f4, (1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3))
_E6, _E7 = map(_f4, (1.3981999507e-3, 1.9875691500e-4))
_ROUND = _f4(1.5 * 2**23)
_EXPONENT = _i4(126 - 0x4B400000)  # of the bits of _ROUND, and of 2^-1 in a float's exponent
_LEAST_EXP, _MOST_EXP = _f4(-87.33654), _f4(88.72284)
_INFINITE = _f4(math.inf)


@scalar
def exp(x):
    """Return e to the power x; less than the smallest normal number is 0.

    With n the nearest integer to x / log(2), it is 2^n times the exponential of the rest, of which the polynomial is
    that of S. L. Moshier's Cephes library (``expf``).
    """
    # Beside so large a number there is no room for a fraction: the last bits are those of n.
    shifted = _f4(x * _PER_LOG_TWO + _ROUND)
    n = shifted - _ROUND
    p = _exp_of_rest(x - n * _LOG_TWO_HIGH - n * _LOG_TWO_LOW)
    # 2^n by its bits; one factor of 2 apart, for 2^128 has none.
    power = _i4(_i4(shifted.view(_i4) + _EXPONENT) << _i4(23)).view(_f4)
    result = p * _TWO * power
    result = _ZERO if x < _LEAST_EXP else result
    return _INFINITE if x > _MOST_EXP else result


@scalar
def _exp_of_rest(r):
    p = ((((_E7 * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _HALF
    return p * r * r + r + _ONE


_LEAST_GRADUAL = _f4(-104)  # below it, exp(x) is rounded to 0
_ZERO_BITS, _BIAS = _i4(0x4B400000), _i4(127)


@scalar
def gradual_exp(x):
    """Return e to the power x, as :func:`exp` does, less than the smallest normal number too (gradual underflow)."""
    within = _LEAST_GRADUAL if x < _LEAST_GRADUAL else x
    within = _MOST_EXP if within > _MOST_EXP else within
    shifted = _f4(within * _PER_LOG_TWO + _ROUND)
    n = shifted - _ROUND
    p = _exp_of_rest(within - n * _LOG_TWO_HIGH - n * _LOG_TWO_LOW)
    return _INFINITE if x > _MOST_EXP else _times_power(p, shifted)


@scalar
def _times_power(p, shifted):
    """Return p times 2^n, of which the last bits of `shifted` are n: in two factors that are normal numbers."""
    whole = _i4(_f4(shifted).view(_i4) - _ZERO_BITS)
    half = _i4(whole >> _i4(1))
    first = _i4(_i4(half + _BIAS) << _i4(23)).view(_f4)
    second = _i4(_i4(_i4(whole - half) + _BIAS) << _i4(23)).view(_f4)
    return p * first * second


_LEAST_EXPM1 = _f4(-18)  # below it, exp(x) - 1 is rounded to -1


@scalar
def expm1(x):
    """Return exp(x) - 1, as :func:`exp` does: 2^n - 1 is exact."""
    x = _LEAST_EXPM1 if x < _LEAST_EXPM1 else x
    shifted = _f4(x * _PER_LOG_TWO + _ROUND)
    n = shifted - _ROUND
    r = x - n * _LOG_TWO_HIGH - n * _LOG_TWO_LOW
    p = ((((_E7 * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _HALF
    p = p * r * r + r
    power = _i4(_i4(shifted.view(_i4) + _EXPONENT) << _i4(23)).view(_f4)
    result = (p * power + (power - _HALF)) * _TWO
    result = x if x == _ZERO else result
    return _INFINITE if x > _MOST_EXP else result


_LEAST_EXP2, _MOST_EXP2 = _f4(-151), _f4(128)
_LOG_TWO = _f4(math.log(2))


@scalar
def exp2(x):
    """Return 2 to the power x, less than the smallest normal number too."""
    within = _LEAST_EXP2 if x < _LEAST_EXP2 else x
    within = _MOST_EXP2 if within > _MOST_EXP2 else within
    shifted = _f4(within + _ROUND)
    p = _exp_of_rest((within - (shifted - _ROUND)) * _LOG_TWO)
    return _INFINITE if x >= _MOST_EXP2 else _times_power(p, shifted)


_L0, _L1, _L2, _L3, _L4 = map(_f4, (2.0, 0.66666316, 0.40024854, 0.27961419, 0.28174657))


@scalar
def log1p_of_share(y):
    """Return log(1 + y) of a number from 0 to 1: twice the artanh of y / (2 + y), a polynomial of its square."""
    s = y / (_TWO + y)
    t = s * s
    return s * ((((_L4 * t + _L3) * t + _L2) * t + _L1) * t + _L0)


@scalar
def sigmoid(x):
    """Return 1 / (1 + exp(-x))."""
    return _ONE / (_ONE + exp(-x))


_MOST_TANH = _f4(9.02)  # beyond it, tanh(x) is rounded to 1
_SMALL_TANH = _f4(0.625)
_T1, _T2, _T3, _T4, _T5 = map(
    _f4, (-0.333332819422, 0.133314422036, -0.0537397155531, 0.0206390887954, -5.70498872745e-3)
)


@scalar
def tanh(x):
    """Return the hyperbolic tangent: of a small number a polynomial, else 1 - 2 / (exp(2x) + 1).

    The polynomial is that of S. L. Moshier's Cephes library (``tanhf``).
    """
    size = _MOST_TANH if abs(x) > _MOST_TANH else abs(x)
    large = _ONE - _TWO / (exp(size + size) + _ONE)
    large = -large if x < _ZERO else large
    t = x * x
    small = x * (((((_T5 * t + _T4) * t + _T3) * t + _T2) * t + _T1) * t + _ONE)
    return small if abs(x) < _SMALL_TANH else large


_MOST_SOFTPLUS = _f4(20)  # beyond it, tanh(softplus(x)) is rounded to 1


@scalar
def tanh_of_softplus(x):
    """Return tanh(log(1 + w)) of w = exp(x): n / (n + 2), of n = w * (w + 2)."""
    w = exp(_MOST_SOFTPLUS if x > _MOST_SOFTPLUS else x)
    n = w * (w + _TWO)
    return n / (n + _TWO)


_MOST_ERF = _f4(4)  # beyond it, erf(x) is rounded to 1
_P0, _P1, _P2 = map(_f4, (1.128379139, 0.1935456342, 0.05310182572))
_P3, _P4, _P5 = map(_f4, (3.883368941e-3, 2.845665215e-4, 1.986779167e-6))
_Q0, _Q1, _Q2 = map(_f4, (1.0, 0.5048579078, 0.11535024))
_Q3, _Q4, _Q5 = map(_f4, (0.01520730206, 1.185577246e-3, 3.742017352e-5))


@scalar
def erf(x):
    """Return the error function, x times a ratio of polynomials of its square."""
    x = _MOST_ERF if x > _MOST_ERF else x
    x = -_MOST_ERF if x < -_MOST_ERF else x
    t = x * x
    p = ((((_P5 * t + _P4) * t + _P3) * t + _P2) * t + _P1) * t + _P0
    q = ((((_Q5 * t + _Q4) * t + _Q3) * t + _Q2) * t + _Q1) * t + _Q0
    p = x * p / q
    p = _ONE if p > _ONE else p
    return -_ONE if p < -_ONE else p


_MAGNITUDE = _i4(0x7FFFFFFF)
_LEAST_KEY = _i4(-0x80000000)


@scalar
def order_of(x):
    """Return an integer in whose order floats are: processors find the largest of many integers, NaN or not."""
    bits = _f4(x).view(_i4)
    return _i4(bits ^ (_i4(bits >> _i4(31)) & _MAGNITUDE))


@scalar
def float_of_order(key):
    """Return the number of which this is the :func:`order_of`."""
    return _i4(key ^ (_i4(key >> _i4(31)) & _MAGNITUDE)).view(_f4)


@scalar
def largest(row):
    """Return the largest number of a row; NaN of either sign may stand for it."""
    most = _LEAST_KEY
    for j in range(row.size):
        key = order_of(row[j])
        most = key if key > most else most
    return float_of_order(most)


# --- logarithms, hyperbolic and inverse functions: the polynomials are those of Cephes, too ---------------------------

_QUARTER = _f4(0.25)
_LEAST_NORMAL, _SUBNORMAL_SCALE, _SUBNORMAL_SHIFT = _f4(2.0**-126), _f4(2.0**23), _f4(23)
_ROOT_HALF_BITS, _MANTISSA = _i4(0x3F3504F3), _i4(0x007FFFFF)
_MOST_FLOAT = _f4(numpy.finfo("f").max)
_NAN = _f4(math.nan)
_M0, _M1, _M2 = map(_f4, (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1))
_M3, _M4, _M5 = map(_f4, (-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1))
_M6, _M7, _M8 = map(_f4, (1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2))


@scalar
def _parts_of_log(x):
    """Return a number's exponent, its mantissa less 1, and what the logarithm of the mantissa has beyond that."""
    small = x < _LEAST_NORMAL
    scaled = x * _SUBNORMAL_SCALE if small else x
    bits = _i4(_f4(scaled).view(_i4) - _ROOT_HALF_BITS)
    e = _f4(_i4(bits >> _i4(23)))
    e = e - _SUBNORMAL_SHIFT if small else e
    r = _i4(_i4(bits & _MANTISSA) + _ROOT_HALF_BITS).view(_f4) - _ONE
    z = r * r
    p = ((((((((_M8 * r + _M7) * r + _M6) * r + _M5) * r + _M4) * r + _M3) * r + _M2) * r + _M1) * r + _M0) * r * z
    return e, r, p - _HALF * z


@scalar
def _logarithm(x, result):
    """Return a logarithm: a result, or what it is at the ends."""
    result = x if x > _MOST_FLOAT else result
    result = -_INFINITE if x == _ZERO else result
    return result if x >= _ZERO else _NAN


@scalar
def log(x):
    """Return the natural logarithm."""
    e, r, beyond = _parts_of_log(x)
    return _logarithm(x, (e * _LOG_TWO_LOW + beyond + r) + e * _LOG_TWO_HIGH)


# Logarithms to base 10 of 2 and of e, each in two parts, of which the first has few digits.
_TWO_HIGH, _TWO_LOW = _f4(3.0078125e-1), _f4(math.log10(2) - 3.0078125e-1)
_E_HIGH, _E_LOW = _f4(4.3359375e-1), _f4(math.log10(math.e) - 4.3359375e-1)


@scalar
def log10(x):
    """Return the logarithm to base 10."""
    e, r, beyond = _parts_of_log(x)
    return _logarithm(x, ((r + beyond) * _E_LOW + beyond * _E_HIGH + r * _E_HIGH + e * _TWO_LOW) + e * _TWO_HIGH)


_TO_TWO_HIGH, _TO_TWO_LOW = _f4(1.4423828125), _f4(1 / math.log(2) - 1.4423828125)  # likewise


@scalar
def log2(x):
    """Return the logarithm to base 2."""
    e, r, beyond = _parts_of_log(x)
    return _logarithm(x, ((r + beyond) * _TO_TWO_LOW + beyond * _TO_TWO_HIGH + r * _TO_TWO_HIGH) + e)


@scalar
def logaddexp(x, y):
    """Return log(exp(x) + exp(y)): the larger one and what the other has beyond it."""
    high, low = x if x > y else y, y if x > y else x
    apart = _ZERO if low == high else low - high  # two infinities are not NaN apart
    result = high + log1p_of_share(exp(apart))
    return x + y if (x != x) | (y != y) else result


@scalar
def log1p(x):
    """Return log(1 + x): what 1 + x has lost of x is added to its logarithm."""
    u = _ONE + x
    result = log(u) + (x - (u - _ONE)) / u
    result = x if (x == _ZERO) | (x > _MOST_FLOAT) else result
    return -_INFINITE if x == -_ONE else result


@scalar
def atanh(x):
    """Return the inverse hyperbolic tangent."""
    size = abs(x)
    twice = size + size
    result = _HALF * log1p(twice + twice * size / (_ONE - size))
    result = _INFINITE if size == _ONE else result
    result = _NAN if size > _ONE else result
    result = -result if x < _ZERO else result
    return x if x == _ZERO else result


_MOST_HALF_EXP = _f4(89.9)  # half of its exponential is more than a float32 holds, too
_SH0, _SH1, _SH2 = map(_f4, (1.66667160211e-1, 8.33028376239e-3, 2.03721912945e-4))


@scalar
def _half_exp(x):
    """Return half of e to the power x, from 0 on: it is finite where that is not."""
    within = _MOST_HALF_EXP if x > _MOST_HALF_EXP else x
    shifted = _f4(within * _PER_LOG_TWO + _ROUND)
    n = shifted - _ROUND
    p = _exp_of_rest(within - n * _LOG_TWO_HIGH - n * _LOG_TWO_LOW)
    power = _i4(_i4(shifted.view(_i4) + _i4(_EXPONENT - _i4(1))) << _i4(23)).view(_f4)  # 2^(n - 2)
    result = p * _TWO * power
    return x if x != x else result


@scalar
def sinh(x):
    """Return the hyperbolic sine."""
    half = _half_exp(abs(x))
    large = half - _QUARTER / half
    large = -large if x < _ZERO else large
    t = x * x
    small = ((_SH2 * t + _SH1) * t + _SH0) * t * x + x
    return small if abs(x) < _ONE else large


@scalar
def cosh(x):
    """Return the hyperbolic cosine."""
    half = _half_exp(abs(x))
    return half + _QUARTER / half


_HALF_PI, _PI, _QUARTER_PI = map(_f4, (math.pi / 2, math.pi, math.pi / 4))
# What these lack.
_HALF_PI_LOW = _f4(math.pi / 2 - float(_HALF_PI))
_PI_LOW, _QUARTER_PI_LOW = _TWO * _HALF_PI_LOW, _HALF * _HALF_PI_LOW
_AS0, _AS1, _AS2 = map(_f4, (1.6666752422e-1, 7.4953002686e-2, 4.5470025998e-2))
_AS3, _AS4 = map(_f4, (2.4181311049e-2, 4.2163199048e-2))


@scalar
def _asin_of_size(size):
    """Return the arc sine of a number up to 1/2; of a larger one, of the root of half of what it lacks to 1."""
    t = _HALF * (_ONE - size) if size > _HALF else size * size
    s = _f4(math.sqrt(t)) if size > _HALF else size
    return ((((_AS4 * t + _AS3) * t + _AS2) * t + _AS1) * t + _AS0) * t * s + s


@scalar
def asin(x):
    """Return the arc sine."""
    size = abs(x)
    angle = _asin_of_size(size)
    result = _HALF_PI - (angle + angle - _HALF_PI_LOW) if size > _HALF else angle
    result = _NAN if size > _ONE else result
    result = -result if x < _ZERO else result
    return x if x == _ZERO else result


@scalar
def acos(x):
    """Return the arc cosine."""
    size = abs(x)
    angle = _asin_of_size(size)
    twice = angle + angle
    beyond = _PI - (twice - _PI_LOW) if x < _ZERO else twice
    angle = -angle if x < _ZERO else angle
    within = _HALF_PI - (angle - _HALF_PI_LOW)
    result = beyond if size > _HALF else within
    return _NAN if size > _ONE else result


_AT0, _AT1, _AT2, _AT3 = map(_f4, (-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2))
_TAN_OF_EIGHTH, _TAN_OF_THREE_EIGHTHS = _f4(0.4142135623730950), _f4(2.414213562373095)


@scalar
def atan(x):
    """Return the arc tangent: that of a quarter or half of pi, and of the rest."""
    size = abs(x)
    high, middle = size > _TAN_OF_THREE_EIGHTHS, size > _TAN_OF_EIGHTH
    begin, low = _QUARTER_PI if middle else _ZERO, _QUARTER_PI_LOW if middle else _ZERO
    begin, low = _HALF_PI if high else begin, _HALF_PI_LOW if high else low
    rest = (size - _ONE) / (size + _ONE) if middle else size
    rest = -_ONE / size if high else rest
    t = rest * rest
    result = begin + ((((_AT3 * t + _AT2) * t + _AT1) * t + _AT0) * t * rest + low + rest)
    result = -result if x < _ZERO else result
    return x if x == _ZERO else result


_SIGN_BIT = _i4(-0x80000000)


@scalar
def atan2(y, x):
    """Return the angle of the point (x, y)."""
    size_x, size_y = abs(x), abs(y)
    steep = size_y > size_x
    low, high = size_x if steep else size_y, size_y if steep else size_x
    ratio = low / high
    ratio = _ZERO if high == _ZERO else ratio
    ratio = _ONE if low > _MOST_FLOAT else ratio  # both are infinite
    angle = atan(ratio)
    angle = _HALF_PI - (angle - _HALF_PI_LOW) if steep else angle
    angle = _PI - (angle - _PI_LOW) if _f4(x).view(_i4) < _i4(0) else angle
    angle = _i4(_f4(angle).view(_i4) | _i4(_f4(y).view(_i4) & _SIGN_BIT)).view(_f4)
    return x + y if (x != x) | (y != y) else angle
