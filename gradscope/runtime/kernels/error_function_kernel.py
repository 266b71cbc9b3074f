"""The error function in single precision: the hyperbolic tangent of one ratio of polynomials for all numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, Namespace

__all__ = ["erf"]

# artanh(erf(x)) / x is a ratio of polynomials of x² for |x| up to 4, beyond which erf(x) is rounded to 1: a
# least-squares fit of the relative error of erf(x), reweighted until its extremes are level. What is left of it is
# 4e-9; in float32 erf(x) is off by 4e-7 at most. The coefficients begin with that of x^0.
_P = tuple(map(numpy.float32, (1.12837917, 0.279806813, 0.0426465397, 2.17827995e-3)))
_Q = tuple(map(numpy.float32, (1.0, 0.156892564, 0.0236899125, 3.24923977e-4)))
_MOST, _BLOCK = numpy.float32(16), 1 << 16


def erf(xp: Namespace, x: Array) -> Array:
    """Return the error function of a float32 array.

    Examples
    --------
    >>> [round(value, 6) for value in erf(numpy, numpy.array([0.0, 0.5, 9.0], "f")).tolist()]
    [0.0, 0.5205, 1.0]
    """
    square = xp.minimum(x * x, _most(x))
    ratio = _polynomial(_P, square)
    ratio *= x
    ratio /= _polynomial(_Q, square)
    return xp.tanh(ratio)


def _polynomial(coefficients: tuple[numpy.float32, ...], x: Array) -> Array:
    *rest, value = coefficients
    value = x * value
    for coefficient in reversed(rest[1:]):
        value += coefficient
        value *= x
    value += rest[0]
    return value


def _most(x: Array) -> Array:
    """Return the largest square, as often as there are numbers: beside one number NumPy takes five times as long.

    Beside another layout than its own it would decide that of the result.
    """
    if type(x) is not numpy.ndarray or x.size > _BLOCK or not x.flags.c_contiguous:
        return _MOST
    return _block_of_most()[: x.size].reshape(x.shape)


@cache
def _block_of_most() -> Array:
    block = numpy.full(_BLOCK, _MOST)
    block.flags.writeable = False
    return block
