"""Functions of one number for which single precision has too few digits, computed in double: no table, branch or call.

They are as exact as a float32 can tell: ratios of polynomials are least-squares fits of the relative error, reweighted
until its extremes are level, and off by a quarter of a float32's last place at most. NaN stays NaN.
"""

from __future__ import annotations

import math

import numpy

from . import scalar

__all__ = ["MOST_TAN", "erfc", "erfinv", "exp", "floor", "hypot", "i0", "i1", "log", "logit", "tan"]

_f8, _u8 = numpy.float64, numpy.uint64

_ZERO, _HALF, _ONE, _TWO = map(_f8, (0, 0.5, 1, 2))
_INFINITE, _NAN = _f8(math.inf), _f8(math.nan)
_ROUND = _f8(1.5 * 2**52)
_ROUND_BITS, _MANTISSA_SIZE = _u8(_ROUND.view(_u8)), _u8(52)
_LOG_TWO, _PER_LOG_TWO = _f8(math.log(2)), _f8(1 / math.log(2))
_EXPONENT = _u8(1023 + (1 << 64) - int(_ROUND_BITS))
_E0, _E1, _E2, _E3 = map(_f8, (1.000000000556, 1.000000036433, 0.4999999205532, 0.16666419672))
_E4, _E5, _E6 = map(_f8, (0.04166822881711, 0.008374857793196, 0.001383678873489))


@scalar
def exp(x):
    """Return e to the power x, from -700 to 700."""
    # Beside so large a number there is no room for a fraction: the last bits are those of n.
    shifted = x * _PER_LOG_TWO + _ROUND
    r = x - (shifted - _ROUND) * _LOG_TWO
    p = (((((_E6 * r + _E5) * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r + _E0
    return p * _u8(_u8(_f8(shifted).view(_u8) + _EXPONENT) << _MANTISSA_SIZE).view(_f8)


@scalar
def floor(x):
    """Return a number below 2^51 in size rounded down."""
    nearest = (x + _ROUND) - _ROUND
    return nearest - _ONE if nearest > x else nearest


_ROOT_HALF_BITS = _u8(_f8(math.sqrt(0.5)).view(_u8))
_FROM_ROOT_HALF = _u8(int(_ONE.view(_u8)) - int(_ROOT_HALF_BITS))
_MANTISSA = _u8((1 << 52) - 1)
_INTEGER_BITS, _INTEGER_BIAS = _u8(_f8(2.0**52).view(_u8)), _f8(2.0**52 + 1023)
_L0, _L1, _L2, _L3 = map(_f8, (1.999999998612, 0.6666681656678, 0.3997473469066, 0.2992711534029))


@scalar
def log(x):
    """Return the natural logarithm; 0 and infinity have theirs, and negative numbers NaN."""
    bits = _u8(_f8(x).view(_u8) + _FROM_ROOT_HALF)
    e = _u8(_u8(bits >> _MANTISSA_SIZE) | _INTEGER_BITS).view(_f8) - _INTEGER_BIAS
    m = _u8(_u8(bits & _MANTISSA) + _ROOT_HALF_BITS).view(_f8)
    s = (m - _ONE) / (m + _ONE)
    t = s * s
    result = e * _LOG_TWO + s * (((_L3 * t + _L2) * t + _L1) * t + _L0)
    result = x if x == _INFINITE else result
    result = -_INFINITE if x == _ZERO else result
    return result if x >= _ZERO else _NAN


@scalar
def logit(x):
    """Return log(x / (1 - x))."""
    return log(x / (_ONE - x))


@scalar
def hypot(x, y):
    """Return the root of the sum of two squares of float32 numbers, which double precision can hold."""
    x, y = _f8(x), _f8(y)
    result = _f8(math.sqrt(x * x + y * y))
    return _INFINITE if (abs(x) == _INFINITE) | (abs(y) == _INFINITE) else result


MOST_TAN = 2.0**20
"""Beyond it, multiples of pi / 2 are not subtracted exactly enough."""
_PER_HALF_PI = _f8(2 / math.pi)
# pi / 2 in two parts, of which the first has few digits, so that a multiple of it is exact.
_HALF_PI_HIGH, _HALF_PI_LOW = _f8.fromhex("0x1.921fb544p+0"), _f8.fromhex("0x1.0b4611a626331p-34")
_T0, _T1, _T2 = map(_f8, (1.000000000022, -0.1113614642004, 0.001075156378963))
_U1, _U2 = map(_f8, (-0.4446947958712, 0.01597340171543))


@scalar
def tan(x):
    """Return the tangent of a number up to `MOST_TAN`: of what is left of multiples of pi / 2."""
    shifted = x * _PER_HALF_PI + _ROUND
    n = shifted - _ROUND
    r = x - n * _HALF_PI_HIGH - n * _HALF_PI_LOW
    t = r * r
    p = ((_T2 * t + _T1) * t + _T0) * r
    q = (_U2 * t + _U1) * t + _ONE
    odd = _u8(_f8(shifted).view(_u8) & _u8(1)) == _u8(1)
    return (-q if odd else p) / (p if odd else q)


_MOST_ERFC = _f8(10.3)  # beyond it, erfc(x) is rounded to 0
_C0, _C1, _C2 = map(_f8, (1.000000005962, 1.240066119115, 0.733340063309))
_C3, _C4 = map(_f8, (0.2300469282468, 0.03297059118753))
_D1, _D2, _D3 = map(_f8, (2.368445885727, 2.405835406583, 1.328609335442))
_D4, _D5 = map(_f8, (0.4077731693142, 0.0584381803028))


@scalar
def erfc(x):
    """Return 1 - erf(x): exp(-x * x) times a ratio of polynomials, of the size of x."""
    x = _f8(x)
    size = abs(x)
    size = _MOST_ERFC if size > _MOST_ERFC else size
    p = (((_C4 * size + _C3) * size + _C2) * size + _C1) * size + _C0
    q = ((((_D5 * size + _D4) * size + _D3) * size + _D2) * size + _D1) * size + _ONE
    result = exp(-size * size) * p / q
    return _TWO - result if x < _ZERO else result


_V0, _V1, _V2 = map(_f8, (0.8862269232145, 0.3136804450737, 0.06298416340467))
_V3, _V4 = map(_f8, (0.008536643956452, 0.0007569502303163))
_V5, _V6 = map(_f8, (3.657209380044e-05, 9.520243267258e-08))
_W1, _W2, _W3 = map(_f8, (0.09215101579613, 0.03391326143768, 0.002187418334881))
_W4, _W5 = map(_f8, (0.0002273749610053, 3.002831747623e-06))


@scalar
def erfinv(x):
    """Return the inverse of the error function: x times a ratio of polynomials of -log(1 - x * x)."""
    x = _f8(x)
    w = -log((_ONE - x) * (_ONE + x))
    p = (((((_V6 * w + _V5) * w + _V4) * w + _V3) * w + _V2) * w + _V1) * w + _V0
    q = ((((_W5 * w + _W4) * w + _W3) * w + _W2) * w + _W1) * w + _ONE
    result = x * p / q
    return x * _INFINITE if abs(x) == _ONE else result


_NEAR, _MOST_BESSEL = _f8(8), _f8(95)  # beyond the second, they are more than a float32 holds; of infinity NaN
_B0, _B1, _B2 = map(_f8, (0.9999999911228, 0.2500000559601, 0.01562494926182))
_B3, _B4, _B5 = map(_f8, (0.000434043821555, 6.779313809616e-06, 6.80049663149e-08))
_B6, _B7 = map(_f8, (4.623520980809e-10, 2.634186806193e-12))
_B8, _B9 = map(_f8, (5.815639432389e-15, 5.716075487442e-17))
_F0, _F1, _F2 = map(_f8, (0.3989422769628, 0.04986958778467, 0.02789871475304))
_F3, _F4, _F5 = map(_f8, (0.03378670834883, -0.01386306729486, 0.3880020042457))
_G0, _G1, _G2 = map(_f8, (0.4999999989691, 0.06250000521503, 0.002604162677354))
_G3, _G4, _G5 = map(_f8, (5.425457656575e-05, 6.780216022385e-07, 5.66210596103e-09))
_G6, _G7 = map(_f8, (3.318283117451e-11, 1.617822635991e-13))
_G8, _G9 = map(_f8, (3.504555072521e-16, 2.750443760283e-18))
_H0, _H1, _H2 = map(_f8, (0.3989422844321, -0.1496054485122, -0.04657572525341))
_H3, _H4, _H5 = map(_f8, (-0.04615700634511, 0.009703524635632, -0.4523898175525))


@scalar
def _size_of_bessel(x):
    """Return the size of an argument, as far as it matters."""
    size = _MOST_BESSEL if abs(x) > _MOST_BESSEL else abs(x)
    return _NAN if abs(x) == _INFINITE else size


@scalar
def i0(x):
    """Return the modified Bessel function of order 0: near 0 a polynomial of the square, else of 1 / x."""
    size = _size_of_bessel(_f8(x))
    y = size * size
    near = ((((_B9 * y + _B8) * y + _B7) * y + _B6) * y + _B5) * y + _B4
    near = (((near * y + _B3) * y + _B2) * y + _B1) * y + _B0
    far = _NEAR if size < _NEAR else size
    u = _ONE / far
    p = ((((_F5 * u + _F4) * u + _F3) * u + _F2) * u + _F1) * u + _F0
    large = exp(far) * p * _f8(math.sqrt(u))
    return large if size > _NEAR else near


@scalar
def i1(x):
    """Return the modified Bessel function of order 1, in the same way."""
    x = _f8(x)
    size = _size_of_bessel(x)
    y = size * size
    near = ((((_G9 * y + _G8) * y + _G7) * y + _G6) * y + _G5) * y + _G4
    near = ((((near * y + _G3) * y + _G2) * y + _G1) * y + _G0) * size
    far = _NEAR if size < _NEAR else size
    u = _ONE / far
    p = ((((_H5 * u + _H4) * u + _H3) * u + _H2) * u + _H1) * u + _H0
    large = exp(far) * p * _f8(math.sqrt(u))
    result = large if size > _NEAR else near
    return -result if x < _ZERO else result
