"""The distribution function of the normal distribution and its relatives, entropies, and ``x log(1 + y)``."""

from __future__ import annotations

import math
from typing import Any

from .registry import operator
from .samples import binary, unary
from .special import _ROOT_PI, _erfc, _erfinv, erfc_tail, special

_ROOT_TWO = math.sqrt(2)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_LOG_ROOT_TWO_PI = math.log(_ROOT_TWO_PI)


def _scaled(xp: Any, x: Any) -> Any:
    """Return ``exp(x^2) erfc(x)``; it overflows for large negative x, as it should."""
    size = xp.absolute(x)
    small = xp.minimum(size, 0.46875)
    near = xp.exp(small * small) * _erfc(xp, small)
    positive = xp.where(size <= 0.46875, near, erfc_tail(xp, xp.maximum(size, 0.46875)))
    below = 2 * xp.exp(xp.where(x < 0, x * x, 0)) - positive
    return xp.where(x < 0, below, positive)


def _log_ndtr(xp: Any, x: Any) -> Any:
    low, high = xp.minimum(x, 1), xp.maximum(x, 1)
    # exp(x^2) erfc(x) is a ratio of polynomials far out, where both factors are 0 or infinite.
    below = xp.log(_scaled(xp, xp.maximum(-low, -1) / _ROOT_TWO) / 2) - low * low / 2
    return xp.where(x < 1, below, xp.log1p(-_erfc(xp, high / _ROOT_TWO) / 2))


def _ndtri(xp: Any, p: Any) -> Any:
    """Return the inverse of the distribution function: Newton's method on its logarithm."""
    less = xp.minimum(p, 1 - p)
    inside = xp.where((less > 0) & (less <= 0.5), less, 0.25)
    target = xp.log(inside)
    x = xp.where(inside < 1e-5, -xp.sqrt(-2 * target), _ROOT_TWO * _erfinv(xp, 2 * xp.maximum(inside, 1e-5) - 1))
    for _ in range(5):
        found = _log_ndtr(xp, x)
        x = x - (found - target) * xp.exp(found + x * x / 2 + _LOG_ROOT_TWO_PI)
    x = xp.where(p > 0.5, -x, x)
    x = xp.where(p == 0, -math.inf, xp.where(p == 1, math.inf, x))
    return xp.where((p >= 0) & (p <= 1), x, math.nan)


def _entr(xp: Any, x: Any) -> Any:
    inside = xp.where(x > 0, x, 1)
    return xp.where(x > 0, -x * xp.log(inside), xp.where(x == 0, 0, xp.where(x < 0, -math.inf, x)))


operator(
    "special_erfcx(Tensor self)",
    special("erfcx", _scaled),
    promote="float",
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, result: g * (2 * self * result - 2 / _ROOT_PI)},
    doc="Return ``exp(self**2) * erfc(self)``.",
    samples=unary(),
    supports="f",
)
operator(
    "special_log_ndtr(Tensor self)",
    special("log_ndtr", _log_ndtr),
    promote="float",
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, F: g / F.special_erfcx(self * (-1 / _ROOT_TWO)) * math.sqrt(2 / math.pi)},
    doc="Return the logarithm of ``ndtr(self)``, without loss far below 0.",
    samples=unary(),
    supports="f",
)
operator(
    "special_ndtri(Tensor self)",
    special("ndtri", _ndtri),
    promote="float",
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, result, F: g * F.exp(result * result * 0.5) * _ROOT_TWO_PI},
    doc="Return the inverse of ``ndtr``.",
    samples=unary(0.1, 0.9),
    supports="f",
)
operator(
    "special_entr(Tensor self)",
    special("entr", _entr),
    promote="float",
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, F: g * (-1 - F.log(self))},
    doc="Return ``-self * log(self)``, 0 at 0 and negative infinity below.",
    samples=unary(0.2, 2.0),
    supports="f",
)


def _xlog1py(xp: Any, self: Any, other: Any) -> Any:
    product = self * xp.log1p(other)
    return xp.where((self == 0) & (other == other), 0, product).astype(product.dtype, copy=False)


def _xlog1py_self(g: Any, self: Any, other: Any, F: Any) -> Any:
    return F.where((self == 0) & (other <= -1), F.zeros_like(g), g * F.log1p(other))


operator(
    "special_xlog1py(Tensor self, Tensor other)",
    _xlog1py,
    promote="float",
    out=True,
    method=False,
    public_name=False,
    node="SpecialXlog1PyBackward0",
    derivatives={"self": _xlog1py_self, "other": lambda g, self, other: g * self / (other + 1)},
    doc="Return ``self * log1p(other)``, and 0 where `self` is 0.",
    samples=binary(0.2, 2.0, scalar=None),
    supports="f",
)
