"""The error function in single precision, and GELU: the hyperbolic tangent of one ratio of polynomials for all numbers.

They write into few arrays, so that a block of the numbers stays in the processor's cache.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, Namespace

__all__ = ["erf", "gelu", "gelu_backward"]

# artanh(erf(x)) / x is a ratio of polynomials of x² for |x| up to 4, beyond which erf(x) is rounded to 1: a
# least-squares fit of the relative error of erf(x), reweighted until its extremes are level. What is left of it is
# 4e-9; in float32 erf(x) is off by 4e-7 at most. The coefficients begin with that of x^0.
_P = tuple(map(numpy.float32, (1.12837917, 0.279806813, 0.0426465397, 2.17827995e-3)))
_Q = tuple(map(numpy.float32, (1.0, 0.156892564, 0.0236899125, 3.24923977e-4)))
_Coefficients = tuple[numpy.float32, ...]
_MOST, _BLOCK = numpy.float32(16), 1 << 16

# The same for erf(x / sqrt(2)), of which GELU is made; both are divided by the last coefficient of the divisor. For
# large x the ratio goes on growing, until a cube of the square overflows.
_HALVES = [0.5**power / (float(_Q[-1]) * 0.125) for power in range(len(_P))]
_P_OF_NORMAL = tuple(numpy.float32(float(p) * half * math.sqrt(0.5)) for p, half in zip(_P, _HALVES, strict=True))
_Q_OF_NORMAL = tuple(numpy.float32(float(q) * half) for q, half in zip(_Q, _HALVES, strict=True))
_LARGE_SQUARE = numpy.float32(1e9)

# The normal distribution function of x > 0 is 1 - density(x) * polynomial(1 / (1 + 0.2316419 x)), but for 7.5e-8:
# Hastings; formula 26.2.17 of Abramowitz, Stegun, "Handbook of mathematical functions". Its exponential is that of the
# density, which GELU's slope needs too. Here it is one of 1 / (1 / 0.2316419 + x), which takes a pass less: its numbers
# are divided by powers of that number, and a few units in the last place off, so that the slope at 0 is 1/2.
_HASTINGS_BEGIN = numpy.float32(1 / 0.2316419)
_HASTINGS = tuple(map(numpy.float32, (0.0, 1.3787724, -6.645124, 143.3274, -632.56116, 1994.5992)))
_SIGN = numpy.int32(-(1 << 31))
_DENSITY = numpy.float32(1 / math.sqrt(2 * math.pi))


def erf(xp: Namespace, x: Array) -> Array:
    """Return the error function of a float32 array.

    Examples
    --------
    >>> [round(value, 6) for value in erf(numpy, numpy.array([0.0, 0.5, 9.0], "f")).tolist()]
    [0.0, 0.5205, 1.0]
    """
    return _tanh_of_ratio(xp, x, xp.minimum(x * x, _most(x, _MOST)), _P, _Q)


def gelu(x: Array, out: Array | None = None) -> Array:
    """Return the elements of a float32 array, times the normal distribution function of each.

    Parameters
    ----------
    out : ndarray
        Where they are written.

    Examples
    --------
    >>> gelu(numpy.array([-1.0, 0.0, 1.0], "f")).round(4).tolist()
    [-0.15870000422000885, 0.0, 0.8413000106811523]
    """
    square = x * x
    if square.size and not square.max() <= _LARGE_SQUARE:  # there is a NaN, or a number so large
        numpy.minimum(square, _LARGE_SQUARE, out=square)
    result = _tanh_of_ratio(numpy, x, square, _P_OF_NORMAL, _Q_OF_NORMAL)
    result *= numpy.float32(0.5)
    result += numpy.float32(0.5)
    return numpy.multiply(result, x, out=result if out is None else out)


def gelu_backward(g: Array, x: Array, out: Array | None = None) -> Array:
    """Return the gradient of :func:`gelu`.

    Parameters
    ----------
    g : ndarray
        The incoming gradient, of the shape and dtype of `x`.
    out : ndarray
        Where the result is written.

    Examples
    --------
    >>> gelu_backward(numpy.ones(2, "f"), numpy.array([0.0, 9.0], "f")).tolist()
    [0.5, 1.0]
    """
    # The slope is 1/2 more than an odd function, which is computed at |x| and takes the sign of x.
    magnitude = numpy.abs(x)
    t = magnitude + _HASTINGS_BEGIN
    numpy.divide(1, t, out=t)
    result = _polynomial(_HASTINGS, t)
    result -= magnitude
    exponent = numpy.multiply(magnitude, magnitude, out=magnitude)
    exponent *= numpy.float32(-0.5)
    result *= numpy.exp(exponent, out=exponent)
    result *= -_DENSITY
    result += numpy.float32(0.5)
    bits = result.view(numpy.int32)
    bits ^= numpy.bitwise_and(x.view(numpy.int32), _SIGN, out=t.view(numpy.int32))
    result += numpy.float32(0.5)
    return numpy.multiply(result, g, out=result if out is None else out)


def _tanh_of_ratio(xp: Namespace, x: Array, square: Array, p: _Coefficients, q: _Coefficients) -> Array:
    ratio = _polynomial(p, square)
    ratio *= x
    ratio /= _polynomial(q, square)
    return xp.tanh(ratio, out=ratio) if ratio.ndim else xp.tanh(ratio)


def _polynomial(coefficients: _Coefficients, x: Array) -> Array:
    first, *rest, before, last = coefficients
    if last == 1:
        value = x + before
    else:
        value = x * last
        value += before
    for coefficient in reversed(rest):
        value *= x
        value += coefficient
    value *= x
    if first:
        value += first
    return value


def _most(x: Array, most: numpy.float32) -> Array:
    """Return the largest square, as often as there are numbers: beside one number NumPy takes five times as long.

    Beside another layout than its own it would decide that of the result.
    """
    if type(x) is not numpy.ndarray or x.size > _BLOCK or not x.flags.c_contiguous:
        return most
    return _block_of(most)[: x.size].reshape(x.shape)


@cache
def _block_of(number: numpy.float32) -> Array:
    block = numpy.full(_BLOCK, number)
    block.flags.writeable = False
    return block
