"""The gamma function: its logarithm, and the derivatives of that.

References
----------
S. L. Moshier, *Methods and Programs for Mathematical Functions* (1989), the Cephes library: the coefficients of
``lgam``, ``psi`` and ``zeta``. The formulas are those of Abramowitz and Stegun, chapters 6 and 23.
"""

from __future__ import annotations

import math
from typing import Any

from .registry import METHODS, OPERATORS, operator, public
from .samples import unary
from .special import blockwise, horner, special

# --- forwards on arrays -----------------------------------------------------------------------------------------------

# Highest power first. log gamma(2 + y) = y B(y) / C(y) for 0 <= y <= 1.
_B = (
    -1.37825152569120859100e3,
    -3.88016315134637840924e4,
    -3.31612992738871184744e5,
    -1.16237097492762307383e6,
    -1.72173700820839662146e6,
    -8.53555664245765465627e5,
)
_C = (
    1.0,
    -3.51815701436523470549e2,
    -1.70642106651881159223e4,
    -2.20528590553854454839e5,
    -1.13933444367982507207e6,
    -2.53252307177582951285e6,
    -2.01889141433532773231e6,
)
# What Stirling's series adds for x >= 13, in powers of 1 / x^2, times 1 / x.
_STIRLING = (
    8.11614167470508450300e-4,
    -5.95061904284301438324e-4,
    7.93650340457716943945e-4,
    -2.77777777730099687205e-3,
    8.33333333333331927722e-2,
)
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _beyond_two(y: Any) -> Any:
    """Return ``log gamma(2 + y)`` for 0 <= y <= 1."""
    return y * horner(_B, y) / horner(_C, y)


def _log_gamma_positive(xp: Any, x: Any) -> Any:
    """Return ``log gamma(x)`` for x > 0."""
    # From 3 to 13 it is brought below 3 by gamma(x) = (x - 1) gamma(x - 1).
    inside, product = xp.minimum(x, 13), xp.ones_like(x)
    for _ in range(10):
        more = inside >= 3
        inside = xp.where(more, inside - 1, inside)
        product = xp.where(more, product * inside, product)
    low = xp.minimum(inside, 1)
    middle = xp.minimum(xp.maximum(inside, 1), 2)
    high = xp.maximum(inside, 2)
    # Logarithms of 1 + y keep what is left close to the zeros at 1 and 2.
    below_one = -xp.log(low) - xp.log1p(low) + _beyond_two(low)
    below_two = -xp.log1p(middle - 1) + _beyond_two(middle - 1)
    below_three = xp.log(product) + _beyond_two(high - 2)
    near = xp.where(inside < 1, below_one, xp.where(inside < 2, below_two, below_three))
    far = xp.maximum(x, 13)
    rest = horner(_STIRLING, 1 / (far * far)) / far
    return xp.where(x < 13, near, (far - 0.5) * xp.log(far) - far + _HALF_LOG_TWO_PI + rest)


def _lgamma(xp: Any, x: Any) -> Any:
    size = xp.absolute(x)
    positive = _log_gamma_positive(xp, xp.where(size == 0, 1, size))
    # Reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x)). The distance from the nearest integer is exact.
    sine = xp.absolute(xp.sin(math.pi * (x - xp.rint(x))))
    pole = (x <= 0) & (sine == 0)
    reflected = math.log(math.pi) - xp.log(xp.where(pole, 1, sine)) - xp.log(xp.where(pole, 1, size)) - positive
    result = xp.where(pole, math.inf, xp.where(x < 0, reflected, positive))
    return xp.where(size == math.inf, math.inf, result)


# Bernoulli numbers B(2k) / 2k, highest first: digamma(x) = log x - 1 / 2x - sum of these over x^2k.
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def _digamma(xp: Any, x: Any) -> Any:
    # Reflection for x < 0: digamma(x) = digamma(1 - x) - pi / tan(pi x).
    negative = x < 0
    y = xp.where(negative, 1 - x, x)
    below = xp.zeros_like(y)
    for _ in range(10):
        more = (y < 10) & (y > 0)
        below = xp.where(more, below + 1 / xp.where(more, y, 1), below)
        y = xp.where(more, y + 1, y)
    far = xp.maximum(y, 10)
    square = 1 / (far * far)
    result = xp.log(far) - 0.5 / far - square * horner(_DIGAMMA, square) - below
    away = x - xp.rint(x)
    tangent = xp.tan(math.pi * xp.where(away == 0, 0.5, away))
    result = xp.where(negative, xp.where(away == 0, math.nan, result - math.pi / tangent), result)
    return xp.where(x == 0, xp.copysign(math.inf, -x), result)


# B(2k) / (2k)!, from k = 1: the coefficients of the Euler-Maclaurin sum.
_EULER_MACLAURIN = tuple(
    b / math.factorial(2 * k)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798), 1)
)


def _hurwitz_zeta(xp: Any, s: int, q: Any) -> Any:
    """Return the sum of ``(q + i) ** -s`` over i = 0, 1, 2, ..., for q > 0 and s > 1."""
    total = q ** float(-s)
    for i in range(1, 10):
        total = total + (q + i) ** float(-s)
    a = q + 10
    power = a ** float(-s)
    total = total + a * power / (s - 1) + power / 2
    rising = float(s)
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        power = power / a
        total = total + power * (coefficient * rising)
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power = power / a
    return xp.where(q == math.inf, 0, total)


def _cotangent_derivative(n: int) -> list[float]:
    """Return the polynomial P, lowest power first, for which the `n`-th derivative of cot is P(cot)."""
    polynomial = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return polynomial


def _polygamma(xp: Any, self: Any, n: int) -> Any:
    """Return the `n`-th derivative of digamma."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n.\nn is {n}.")
    if n == 0:
        return digamma_of(xp, self)

    def derivative(xp: Any, x: Any) -> Any:
        # Reflection for x < 0, from digamma(1 - x) - digamma(x) = pi cot(pi x).
        negative = x < 0
        y = xp.where(negative, 1 - x, xp.where(x == 0, 1, x))
        result = _hurwitz_zeta(xp, n + 1, y) * (math.factorial(n) * (1.0 if n % 2 else -1.0))
        away = x - xp.rint(x)
        pole = (x <= 0) & (away == 0)
        cotangent = 1 / xp.tan(math.pi * xp.where(away == 0, 0.5, away))
        turned = horner(tuple(reversed(_cotangent_derivative(n))), cotangent) * math.pi ** (n + 1)
        result = xp.where(negative, (-1.0) ** n * result - turned, result)
        return xp.where(pole, math.inf if n % 2 else -math.inf, result)

    return blockwise(xp, derivative, self, "polygamma")


# --- operators --------------------------------------------------------------------------------------------------------

digamma_of = special("digamma", _digamma)
_log_gamma_of = special("lgamma", _lgamma, "gammaln")

operator(
    "lgamma(Tensor self)",
    _log_gamma_of,
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.digamma(self)},
    doc="Return the logarithm of the absolute value of the gamma function.",
    samples=unary(0.2, 4.0),
    supports="f",
)
operator(
    "digamma(Tensor self)",
    digamma_of,
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * F.polygamma(1, self)},
    doc="Return the derivative of lgamma.",
    samples=unary(0.2, 4.0),
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
    supports="f",
)


@public(method=False, arrays=lambda xp, n, self: _polygamma(xp, self, n))
def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """Return the `n`-th derivative of digamma.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.polygamma(1, gs.tensor(1.0))
    tensor(1.6449)
    """
    return OPERATORS["polygamma.order"].function(input, n, out=out)


@public(method="polygamma", function_too=False)
def _polygamma_method(self: Any, n: int) -> Any:
    """Return the `n`-th derivative of digamma."""
    return polygamma(n, self)


METHODS["polygamma_"] = OPERATORS["polygamma.order"].inplace_function  # type: ignore[assignment]


def _mvlgamma(xp: Any, self: Any, p: int) -> Any:
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1\nIt is {p}.")
    total = sum(_log_gamma_of(xp, self - 0.5 * i) for i in range(p))
    return total + (p * (p - 1) * 0.25 * math.log(math.pi))


operator(
    "mvlgamma(Tensor self, int p)",
    _mvlgamma,
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, p, F: g * sum(F.digamma(self - 0.5 * i) for i in range(p))},
    doc="Return the logarithm of the multivariate gamma function of dimension `p`.",
    samples=lambda make: [((make(*shape, low=1.5, high=4.0), 3), {}) for shape in ((2, 3), (), (0, 2))],
    supports="f",
)
