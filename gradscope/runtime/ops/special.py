"""Special functions: the error function and its relatives, and Bessel functions.

References
----------
W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969), 631-637;
the coefficients are those of his program CALERF.
"""

from __future__ import annotations

import math
from typing import Any

from .. import device
from .arrays import is_half, single
from .errors import refuse_kinds
from .registry import operator
from .samples import unary

# --- Cody's approximations --------------------------------------------------------------------------------------------

# Highest power first. erf(x) = x A(x^2) / B(x^2) for |x| <= 0.46875.
_A = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3)
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
# erfc(x) = exp(-x^2) C(x) / D(x) for 0.46875 <= x <= 4.
_C = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_D = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
# erfc(x) = exp(-x^2) / x (1 / sqrt(pi) - P(1 / x^2) / (x^2 Q(1 / x^2))) for x >= 4.
_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_Q = (
    1.0,
    2.56852019228982242,
    1.87295284992346725,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_ROOT_PI = math.sqrt(math.pi)


def horner(coefficients: tuple[float, ...], x: Any) -> Any:
    """Return the value of a polynomial, its coefficients given from the highest power down."""
    result = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        result *= x
        result += c
    return result


def _near(x: Any) -> Any:
    """Return erf(x) for |x| <= 0.46875."""
    square = x * x
    return x * horner(_A, square) / horner(_B, square)


def erfc_tail(xp: Any, y: Any) -> Any:
    """Return ``exp(y^2) erfc(y)`` for y >= 0.46875."""
    near = xp.minimum(y, 4)
    middle = horner(_C, near) / horner(_D, near)
    inverse = 1 / xp.maximum(y, 4) ** 2
    far = (1 / _ROOT_PI - inverse * horner(_P, inverse) / horner(_Q, inverse)) / y
    return xp.where(y <= 4, middle, far)


def _tail(xp: Any, y: Any) -> Any:
    """Return erfc(y) for y >= 0.46875; beyond 28 it is 0."""
    y = xp.minimum(y, 28)
    # exp(-y^2) with y split into a short part, whose square is exact, and the rest.
    short = xp.trunc(y * 16) / 16
    return erfc_tail(xp, y) * xp.exp(-short * short) * xp.exp(-(y - short) * (y + short))


BLOCK = 1 << 15
"""Elements treated at once, so that the temporaries stay in the cache."""


def blockwise(xp: Any, function: Any, x: Any, name: str) -> Any:
    """Return ``function(xp, x)``, computed in single precision at least and a part at a time."""
    kind = x.dtype
    refuse_kinds(f"{name}_vml_cpu", x, "biuc")
    wide = x.astype(xp.float32) if kind.itemsize < 4 else x
    if wide.size <= BLOCK:
        return function(xp, wide).astype(kind, copy=False)
    flat = wide.reshape(-1)
    result = xp.empty(flat.shape, dtype=kind)
    for start in range(0, flat.shape[0], BLOCK):
        result[start : start + BLOCK] = function(xp, flat[start : start + BLOCK])
    return result.reshape(x.shape)


def _erf(xp: Any, x: Any) -> Any:
    size = xp.absolute(x)
    near = _near(xp.minimum(xp.maximum(x, -0.5), 0.5))
    return xp.where(size <= 0.46875, near, xp.copysign(1 - _tail(xp, xp.maximum(size, 0.46875)), x))


def _erfc(xp: Any, x: Any) -> Any:
    near = _near(xp.minimum(xp.maximum(x, -0.5), 0.5))
    tail = _tail(xp, xp.maximum(xp.absolute(x), 0.46875))
    return xp.where(xp.absolute(x) <= 0.46875, 1 - near, xp.where(x < 0, 2 - tail, tail))


def _erfinv(xp: Any, y: Any) -> Any:
    """Return the inverse of erf: M. Giles' approximation (2010), then Newton's method on erfc."""
    size = xp.absolute(y)
    rest = xp.where(size < 1, 1 - size, 1)
    w = -xp.log(rest * (1 + xp.minimum(size, 1)))
    small, large = w - 2.5, xp.sqrt(xp.maximum(w, 5)) - 3
    x = xp.where(w < 5, horner(_GILES_SMALL, small), horner(_GILES_LARGE, large)) * xp.minimum(size, 1)
    # Giles' second polynomial ends at w = 16; beyond, the leading terms of erfc's asymptotic expansion.
    t = xp.maximum(w, 16) + math.log(2)
    x = xp.where(w < 16, x, xp.sqrt(t - 0.5 * xp.log(math.pi * t)))
    for _ in range(2):
        # Close to 1 the error is measured on the complement, which is exact there.
        error = xp.where(size < 0.5, _erf(xp, x) - size, rest - _erfc(xp, x))
        step = error * (_ROOT_PI / 2) * xp.exp(x * x)
        x = x - step / (1 + x * step)
    return xp.where(size < 1, xp.copysign(x, y), xp.where(size == 1, xp.copysign(math.inf, y), math.nan))


_GILES_SMALL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_GILES_LARGE = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


# --- modified Bessel functions ----------------------------------------------------------------------------------------


def _cosines(count: int) -> tuple[float, ...]:
    """Return the cosines in the middles of `count` equal parts of a quarter of the circle."""
    return tuple(math.cos(math.pi * (k + 0.5) / (2 * count)) for k in range(count))


_FEW, _MANY = _cosines(8), _cosines(64)


def _i0(xp: Any, x: Any) -> Any:
    return _bessel(xp, xp.absolute(x), xp.cosh, 0)


def _i1(xp: Any, x: Any) -> Any:
    return xp.copysign(_bessel(xp, xp.absolute(x), xp.sinh, 1), x)


def _bessel(xp: Any, x: Any, function: Any, order: int) -> Any:
    """Return the mean of ``function(x cos t) * cos(t) ** order`` for x >= 0: Abramowitz and Stegun 9.6.16 and 9.6.19.

    Of a periodic function the midpoint rule is exact to the last digits; 64 points are enough up to where the result
    overflows. There, functions are exponentials from which half of the exponent is kept apart.
    """
    low, high = xp.minimum(x, 1), xp.maximum(x, 1)
    near = sum(function(low * c) * (c**order / len(_FEW)) for c in _FEW)
    half = high / 2
    parts = ((xp.exp(high * c - half), xp.exp(-high * c - half), c**order / (2 * len(_MANY))) for c in _MANY)
    far = sum((rising + falling if order == 0 else rising - falling) * weight for rising, falling, weight in parts)
    return xp.where(x == math.inf, x, xp.where(x <= 1, near, far * xp.exp(half)))


# --- operators --------------------------------------------------------------------------------------------------------


def special(name: str, own: Any, native_name: str | None = None) -> Any:
    """Return the forward of a special function: the array module's, where it has it, or else `own`."""

    def forward(xp: Any, self: Any) -> Any:
        native = device.special_function(self, native_name or name)
        if native is None:
            return blockwise(xp, own, self, name)
        refuse_kinds(f"{name}_cuda", self, "biuc")
        # Of half precision CuPy has none, or one whose results are double.
        return native(single(self)).astype(self.dtype) if is_half(self) else native(self)

    return forward


erf_forward = special("erf", _erf)

operator(
    "erf(Tensor self)",
    erf_forward,
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.exp(-(self * self)) * (2 / _ROOT_PI)},
    doc="Return the error function.",
    samples=unary(),
    supports="f",
)
operator(
    "erfc(Tensor self)",
    special("erfc", _erfc),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.exp(-(self * self)) * (-2 / _ROOT_PI)},
    doc="Return ``1 - erf(self)`` without loss.",
    samples=unary(),
    supports="f",
)
operator(
    "erfinv(Tensor self)",
    special("erfinv", _erfinv),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result, F: g * F.exp(result * result) * (_ROOT_PI / 2)},
    doc="Return the inverse of the error function.",
    samples=unary(-0.9, 0.9),
    supports="f",
)
operator(
    "i0(Tensor self)",
    special("i0", _i0),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.special_i1(self)},
    doc="Return the modified Bessel function of the first kind of order 0.",
    samples=unary(0.2, 4.0),
    supports="f",
)


def _i1_self(g: Any, self: Any, result: Any, F: Any) -> Any:
    zero = self == 0
    ratio = F.where(zero, F.zeros_like(self) + 0.5, result / F.where(zero, F.ones_like(self), self))
    return g * (F.i0(self) - ratio)


operator(
    "special_i1(Tensor self)",
    special("i1", _i1),
    promote="float",
    method=False,
    public_name=False,
    derivatives={"self": _i1_self},
    doc="Return the modified Bessel function of the first kind of order 1: the derivative of i0.",
    samples=unary(0.2, 4.0),
    supports="f",
)
