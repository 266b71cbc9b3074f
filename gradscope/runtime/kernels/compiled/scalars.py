"""Functions of one float32, made of what processors do for many numbers at once: no table, no branch, no call.

Ratios of polynomials are least-squares fits of the relative error, reweighted until its extremes are level; they are
off by 4e-7 at most, three units in the last place. NaN stays NaN.
"""

from __future__ import annotations

import math

import numpy

from .jit import scalar

__all__ = ["erf", "exp", "expm1", "gradual_exp", "largest", "log1p_of_share", "sigmoid", "tanh", "tanh_of_softplus"]

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
    # 2^n in two factors that are normal numbers.
    whole = _i4(shifted.view(_i4) - _ZERO_BITS)
    half = _i4(whole >> _i4(1))
    first = _i4(_i4(half + _BIAS) << _i4(23)).view(_f4)
    second = _i4(_i4(_i4(whole - half) + _BIAS) << _i4(23)).view(_f4)
    result = p * first * second
    return _INFINITE if x > _MOST_EXP else result


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
    return _INFINITE if x > _MOST_EXP else result


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
