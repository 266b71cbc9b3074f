"""The gamma function: its logarithm, the derivatives of that, the incomplete ones, and Hurwitz' zeta function.

The formulas are those of Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), chapters 6 and 23.
"""

from __future__ import annotations

import math

import numpy

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Gradient, Namespace
from ..declaration.references import from_library
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..declaration.samples import unary
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import in_dtype_of
from .error_function import native, refuse, special

# --- forwards on arrays -----------------------------------------------------------------------------------------------

_TINY = 1e-30
"""Below, log gamma(x) is -log(x) to the last digit."""


def _lgamma(xp: Namespace, self: Array) -> Array:
    refuse_kinds("lgamma_vml_cpu", self, "biuc")
    size = abs(self)
    # SciPy has infinity at denormal numbers, and the other sign at negative infinity.
    return xp.where((size < _TINY) | (size == math.inf), abs(xp.log(size)), native("gammaln", self))


digamma_of = special("digamma")

# B(2k) / (2k)!, from k = 1: the coefficients of the Euler-Maclaurin sum.
_EULER_MACLAURIN = tuple(
    b / math.factorial(2 * k)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798), 1)
)


_FEW_FACTORS = 8


def _inverse_power(x: Array, s: int) -> Array:
    """Return ``x ** -s``; products take a tenth of the time of a power with AVX2."""
    if s > _FEW_FACTORS:
        return x ** float(-s)
    inverse = 1 / x
    result = inverse
    for _ in range(s - 1):
        result = result * inverse
    return result


def _hurwitz_zeta(xp: Namespace, s: int, q: Array) -> Array:
    """Return the sum of ``(q + i) ** -s`` over i = 0, 1, 2, ..., for q > 0 and s > 1."""
    total = _inverse_power(q, s)
    for i in range(1, 10):
        total += _inverse_power(q + i, s)
    a = q + 10
    power = _inverse_power(a, s)
    total += a * power / (s - 1) + power / 2
    inverse = 1 / a
    power *= inverse
    inverse *= inverse
    rising = float(s)
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        total += power * (coefficient * rising)
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power *= inverse
    return xp.where(q == math.inf, 0, total)


def _cotangent_derivative(n: int) -> list[float]:
    """Return the polynomial P, lowest power first, for which the `n`-th derivative of cot is P(cot)."""
    polynomial = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return polynomial


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    """Return the value of a polynomial, its coefficients given from the highest power down."""
    result = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        result *= x
        result += c
    return result


_BLOCK = 1 << 15
"""Elements treated at once, so that the temporaries stay in the cache."""


def _blockwise(xp: Namespace, function: Formula, x: Array) -> Array:
    """Return ``function(xp, x)``, computed in single precision at least and a part at a time."""
    kind = x.dtype
    wide = x.astype(xp.float32) if kind.itemsize < 4 else x
    if wide.size <= _BLOCK:
        return function(xp, wide).astype(kind, copy=False)
    flat = wide.reshape(-1)
    result = xp.empty(flat.shape, dtype=kind)
    for start in range(0, flat.shape[0], _BLOCK):
        result[start : start + _BLOCK] = function(xp, flat[start : start + _BLOCK])
    return result.reshape(x.shape)


def _polygamma(xp: Namespace, self: Array, n: int) -> Array:
    """Return the `n`-th derivative of digamma."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n.\nn is {n}.")
    if n == 0:
        return digamma_of(xp, self)

    def derivative(xp: Namespace, x: Array) -> Array:
        # Reflection for x < 0, from digamma(1 - x) - digamma(x) = pi cot(pi x).
        negative = x < 0
        y = xp.where(negative, 1 - x, xp.where(x == 0, 1, x))
        result = _hurwitz_zeta(xp, n + 1, y) * (math.factorial(n) * (1.0 if n % 2 else -1.0))
        if xp is numpy and x.size and x.min() > 0:
            return result
        away = x - xp.rint(x)
        pole = (x <= 0) & (x == xp.rint(x))
        cotangent = 1 / xp.tan(math.pi * xp.where(away == 0, 0.5, away))
        turned = _horner(tuple(reversed(_cotangent_derivative(n))), cotangent) * math.pi ** (n + 1)
        result = xp.where(negative, (-1.0) ** n * result - turned, result)
        return xp.where(pole, math.inf if n % 2 else -math.inf, result)

    refuse_kinds("polygamma_vml_cpu", self, "biuc")
    return _blockwise(xp, derivative, self)


# --- operators --------------------------------------------------------------------------------------------------------

operator(
    "lgamma(Tensor self)",
    _lgamma,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.gammaln",),
    derivatives={"self": lambda g, self, F: g * F.digamma(self)},
    doc="Return the logarithm of the absolute value of the gamma function.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.gammaln",
    differs=(
        (lambda x: x == -math.inf, "SciPy has negative infinity there, as no neighbour is"),
        (lambda x: (x != 0) & (abs(x) < 1e-307), "SciPy has infinity at denormal numbers"),
    ),
    supports="f",
)
operator(
    "digamma(Tensor self)",
    digamma_of,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.digamma", "special.psi"),
    derivatives={"self": lambda g, self, F: g * F.polygamma(1, self)},
    doc="Return the derivative of lgamma.",
    samples=unary(0.2, 4.0),
    reference="scipy.special.digamma",
    supports="f",
)
operator(
    "polygamma.order(Tensor self, int order)",
    _polygamma,
    promote="float",
    inplace=True,
    out=True,
    method=False,
    derivatives={"self": lambda g, self, order, F: g * F.polygamma(order + 1, self)},
    node="PolygammaBackward0",
    inplace_node="PolygammaBackward1",
    doc="Return the derivative of digamma of some order.",
    samples=lambda make: [
        ((make(*shape, low=0.5, high=4.0), n), {}) for shape in ((2, 3), (), (0, 2)) for n in (0, 1, 3)
    ],
    reference=lambda self, n: from_library("scipy.special.polygamma")(n, self),
    differs=((lambda self, n: numpy.abs(self) > 1e37, "a power on the way to a denormal result is 0"),),
    supports="f",
)


@public(method=False, alias=("special.polygamma",), arrays=lambda xp, n, self: _polygamma(xp, self, n))
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the `n`-th derivative of digamma.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.polygamma(1, gs.tensor(1.0))
    tensor(1.6449)
    """
    return OPERATORS["polygamma.order"].function(input, n, out=out)


@public(method="polygamma", function_too=False)
def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """Return the `n`-th derivative of digamma.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return polygamma(n, self)


METHODS["polygamma_"] = OPERATORS["polygamma.order"].inplace_function  # type: ignore[assignment]


def _mvlgamma(xp: Namespace, self: Array, p: int) -> Array:
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1\nIt is {p}.")
    total = sum(_lgamma(xp, self - 0.5 * i) for i in range(p))
    return total + (p * (p - 1) * 0.25 * math.log(math.pi))


def _mvlgamma_reference(self: Array, p: int) -> Array:
    terms = [from_library("scipy.special.gammaln")(self - j / 2) for j in range(p)]
    return p * (p - 1) / 4 * math.log(math.pi) + sum(terms)


operator(
    "mvlgamma(Tensor self, int p)",
    _mvlgamma,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.multigammaln",),
    derivatives={"self": lambda g, self, p, F: g * sum(F.digamma(self - 0.5 * i) for i in range(p))},
    doc="Return the logarithm of the multivariate gamma function of dimension `p`.",
    samples=lambda make: [((make(*shape, low=1.5, high=4.0), 3), {}) for shape in ((2, 3), (), (0, 2))],
    reference=_mvlgamma_reference,
    differs=((lambda self, p: self == -math.inf, "PyTorch says inf, where there is no limit"),),
    supports="f",
)

# --- incomplete gamma functions ---------------------------------------------------------------------------------------


def _refused(what: str) -> Formula:
    def refuse_derivative(g: Gradient) -> Gradient:
        raise NotImplementedError(
            f"the derivative for '{what}' is not implemented.\nCut the graph there: use detach()."
        )

    return refuse_derivative


def _ordered(low: float, high: float) -> Formula:
    """Return samples of orders in (`low`, `high`), by which there is no derivative, and of arguments."""
    shapes = (((3, 4), (3, 4)), ((2, 1), (1, 3)), ((), (2,)), ((0, 2), (1, 2)), ((), ()))
    return lambda make: [((make(*a, low=low, high=high).detach(), make(*b, low=0.5, high=3.0)), {}) for a, b in shapes]


def _incomplete(name: str, native_name: str) -> Formula:
    def forward(xp: Namespace, self: Array, other: Array) -> Array:
        refuse_kinds(f"{name}_cpu", self, "biuc")
        return native(native_name, self, other)

    return forward


def _igamma_other(g: Gradient, self: Array, other: Array, F: Namespace) -> Gradient:
    # DLMF 8.8.13, with the power and the gamma function brought together before they overflow.
    return g * F.exp((self - 1) * F.log(other) - other - F.lgamma(self))


operator(
    "igamma(Tensor self, Tensor other)",
    _incomplete("igamma", "gammainc"),
    promote="numeric",
    numbers=None,
    inplace=True,
    out=True,
    alias=("special.gammainc",),
    derivatives={"self": _refused("igamma: input"), "other": _igamma_other},
    doc="Return the regularized lower incomplete gamma function of order `self`, by which there is no derivative.",
    samples=_ordered(0.5, 3.0),
    reference="scipy.special.gammainc",
    supports="f",
)
operator(
    "igammac(Tensor self, Tensor other)",
    _incomplete("igammac", "gammaincc"),
    promote="numeric",
    numbers=None,
    inplace=True,
    out=True,
    alias=("special.gammaincc",),
    derivatives={
        "self": _refused("igammac: input"),
        "other": lambda g, self, other, F: -_igamma_other(g, self, other, F),
    },
    doc="Return ``1 - igamma(self, other)`` without loss.",
    samples=_ordered(0.5, 3.0),
    reference="scipy.special.gammaincc",
    supports="f",
)

# --- Hurwitz' zeta function -------------------------------------------------------------------------------------------


def _zeta(xp: Namespace, self: Array, other: Array) -> Array:
    refuse("zeta_cpu", self, "biuce")
    return native("zeta", self, other)


operator(
    "special_zeta(Tensor self, Tensor other)",
    _zeta,
    promote="float",
    out=True,
    numbers="either",
    derivatives={
        "self": _refused("zeta"),
        "other": lambda g, self, other, F: -g * self * F.special_zeta(in_dtype_of(self, g) + 1, other),
    },
    doc="Return Hurwitz' zeta function: the sum of ``(k + other) ** -self`` over k = 0, 1, 2, ...",
    samples=_ordered(1.5, 4.0),
    reference="scipy.special.zeta",
    supports="f",
)
