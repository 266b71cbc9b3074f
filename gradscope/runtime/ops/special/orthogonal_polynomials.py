"""Orthogonal polynomials, without derivatives, as in PyTorch.

A degree counts without its fraction; the polynomial of a negative one is 0. The recurrences are those of the *Digital
Library of Mathematical Functions*, table 18.9.1; Chebyshev polynomials of a degree above 64 come from their definition
by trigonometric functions, table 18.5.1.
"""

from __future__ import annotations

import math

import numpy

from ...memory import device
from ..declaration.annotations import Array, Cases, Formula, Make, Namespace
from ..declaration.references import from_library
from ..declaration.registry import operator
from .error_function import refuse

# --- recurrences ------------------------------------------------------------------------------------------------------


def _recurrence(xp: Namespace, n: Array, top: int, first: Array, following: Formula) -> Array:
    """Return the polynomial of degree `n` of each element: 1, `first`, and what follows, up to the degree `top`.

    ``following(k, last, before)`` is the polynomial of degree k + 1, given those of degree k and k - 1.
    """
    before, last = xp.ones_like(first), first
    found = xp.where(n < 0, 0, xp.where(n == 0, before, last))
    for k in range(1, top):
        before, last = last, following(k, last, before)
        found = xp.where(n > k, last, found)
    return found.astype(first.dtype, copy=False)


def _degree(xp: Namespace, n: Array) -> Array:
    """Return degrees without their fractions; those that no integer can be, -1."""
    return xp.trunc(xp.where(abs(n) < 2.0**63, n, -1))


def _highest(n: Array) -> int:
    """Return the highest degree; it is asked of the device once."""
    return int(device.to_host(n.max())) if n.size else 0


# --- Chebyshev polynomials --------------------------------------------------------------------------------------------

_EXACT = 64
"""Up to this degree the recurrence is taken, which is exact at zeros and grows no error worth the name."""


def _chebyshev(first: Formula, inside: Formula, outside: Formula) -> Formula:
    """Return ``polynomial(xp, x, n)``.

    `first` is the polynomial of degree 1; ``inside(xp, angle, n)`` the one of the cosine of an angle, ``outside(xp, t,
    n, negative)`` the one of the hyperbolic cosine of t > 0, or of its negative but for the sign.
    """

    def polynomial(xp: Namespace, x: Array, n: Array) -> Array:
        top = _highest(n)
        low = _recurrence(xp, n, min(top, _EXACT), first(x), lambda k, last, before: 2 * x * last - before)
        if top <= _EXACT:
            return low
        size = abs(x)
        within = inside(xp, xp.arccos(xp.where(size < 1, x, 0)), n)
        beyond = outside(xp, xp.arccosh(xp.where(size > 1, size, 2)), n, x < 0)
        beyond = xp.where((x < 0) & (n % 2 == 1), -beyond, beyond)
        return xp.where(
            n <= _EXACT, low, xp.where(size < 1, within, xp.where(size > 1, beyond, _at_one(xp, first, x, n)))
        )

    return polynomial


def _at_one(xp: Namespace, first: Formula, x: Array, n: Array) -> Array:
    """Return the polynomial of degree `n` at x = 1 or -1, where it grows by the same number from degree to degree."""
    value = first(x) * x
    size = 1 + n * (value - 1)
    return xp.where((x < 0) & (n % 2 == 1), -size, size)


def _half_sum(sign: int) -> Formula:
    """Return the form of ``cosh((n + 1/2) t) / cosh(t / 2)`` (sign 1) or that of sinh (-1), which overflows last."""

    def ratio(xp: Namespace, t: Array, n: Array) -> Array:
        return xp.exp(n * t) * (1 + sign * xp.exp(-(2 * n + 1) * t)) / (1 + sign * xp.exp(-t))

    return ratio


_COSINES, _SINES = _half_sum(1), _half_sum(-1)

_CHEBYSHEV = {
    "t": _chebyshev(
        lambda x: x,
        lambda xp, angle, n: xp.cos(n * angle),
        lambda xp, t, n, negative: xp.exp(n * t - math.log(2)) + xp.exp(-n * t) / 2,
    ),
    "u": _chebyshev(
        lambda x: 2 * x,
        lambda xp, angle, n: xp.sin((n + 1) * angle) / xp.sin(angle),
        lambda xp, t, n, negative: xp.exp(n * t) * (1 - xp.exp(-2 * (n + 1) * t)) / (1 - xp.exp(-2 * t)),
    ),
    "v": _chebyshev(
        lambda x: 2 * x - 1,
        lambda xp, angle, n: xp.cos((n + 0.5) * angle) / xp.cos(angle / 2),
        lambda xp, t, n, negative: xp.where(negative, _SINES(xp, t, n), _COSINES(xp, t, n)),
    ),
    "w": _chebyshev(
        lambda x: 2 * x + 1,
        lambda xp, angle, n: xp.sin((n + 0.5) * angle) / xp.sin(angle / 2),
        lambda xp, t, n, negative: xp.where(negative, _COSINES(xp, t, n), _SINES(xp, t, n)),
    ),
}

# --- the others -------------------------------------------------------------------------------------------------------


_LAST_HERMITE = 512
"""Beyond this degree PyTorch's are NaN."""


def _hermite(factor: int) -> Formula:
    """Return the Hermite polynomials of the weight ``exp(-x**2)`` (2), or of ``exp(-x**2 / 2)`` (1)."""

    def polynomial(xp: Namespace, x: Array, n: Array) -> Array:
        top = min(_highest(n), _LAST_HERMITE)
        found = _recurrence(xp, n, top, factor * x, lambda k, last, before: factor * (x * last - k * before))
        return xp.where(n > _LAST_HERMITE, math.nan, found)

    return polynomial


def _laguerre(xp: Namespace, x: Array, n: Array) -> Array:
    return _recurrence(
        xp, n, _highest(n), 1 - x, lambda k, last, before: ((2 * k + (1 - x)) * last - k * before) / (k + 1)
    )


def _legendre(xp: Namespace, x: Array, n: Array) -> Array:
    return _recurrence(xp, n, _highest(n), x, lambda k, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1))


# --- operators --------------------------------------------------------------------------------------------------------

_KINDS = ("first", "second", "third", "fourth")
_POLYNOMIALS: dict[str, tuple[Formula, str]] = {
    **{
        f"chebyshev_polynomial_{letter}": (form, f"the Chebyshev polynomial of the {kind} kind")
        for (letter, form), kind in zip(_CHEBYSHEV.items(), _KINDS, strict=True)
    },
    "hermite_polynomial_h": (_hermite(2), "the physicists' Hermite polynomial"),
    "hermite_polynomial_he": (_hermite(1), "the probabilists' Hermite polynomial"),
    "laguerre_polynomial_l": (_laguerre, "the Laguerre polynomial"),
    "legendre_polynomial_p": (_legendre, "the Legendre polynomial"),
}
_SHIFTED = {
    f"shifted_{name}": (lambda xp, x, n, form=form: form(xp, 2 * x - 1, n), f"{what}, shifted to [0, 1],")
    for name, (form, what) in _POLYNOMIALS.items()
    if name.startswith("chebyshev")
}


def _forward(name: str, polynomial: Formula) -> Formula:
    def forward(xp: Namespace, self: Array, n: Array) -> Array:
        refuse(f"{name}_cpu", self, "biuce")
        # In double precision, or the digits close to a polynomial's zeros are lost.
        wide = self.astype("float64", copy=False)
        return polynomial(xp, wide, _degree(xp, n)).astype(self.dtype, copy=False)

    return forward


def _reference(name: str) -> Formula:
    """Return SciPy's polynomial of the name that PyTorch has for it, of integer degrees; those below 0 are 0.

    Those of the third and fourth kind are differences and sums of neighbours of the second (DLMF 18.7.5 and 18.7.6).
    """
    shifted, letter = name.startswith("shifted_"), name[-1]

    def polynomial(n: Array, x: Array) -> Array:
        if letter in "vw" and "chebyshev" in name:
            second = from_library("scipy.special.eval_sh_chebyu" if shifted else "scipy.special.eval_chebyu")
            return second(n, x) + (1 if letter == "w" else -1) * second(n - 1, x)
        return from_library(f"scipy.special.{_IN_SCIPY[name]}")(n, x)

    def reference(x: Array, n: Array) -> Array:
        degree = numpy.trunc(numpy.where(numpy.abs(n) < 2**20, n, -1)).astype("int64")
        return numpy.where(degree > 0, polynomial(numpy.maximum(degree, 1), x), degree == 0)

    return reference


_IN_SCIPY = {
    "chebyshev_polynomial_t": "eval_chebyt",
    "chebyshev_polynomial_u": "eval_chebyu",
    "shifted_chebyshev_polynomial_t": "eval_sh_chebyt",
    "shifted_chebyshev_polynomial_u": "eval_sh_chebyu",
    "hermite_polynomial_h": "eval_hermite",
    "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre",
    "legendre_polynomial_p": "eval_legendre",
}


def _degrees(make: Make) -> Cases:
    """Return ordinary and extreme places, each with all of some degrees."""
    places = [0.0, 1e-300, 0.3, -0.999, 1.0, -1.0, 1.001, -1.5, 30.0, math.nan]
    degrees = [0.0, 1.0, 2.0, 2.9, 8.0, 9.0, 10.0, 21.0, -1.0, -0.5]
    return [((make.of([x for x in places for _ in degrees]), make.of(degrees * len(places))), {})]


def _samples(make: Make) -> Cases:
    shapes = (((3, 4), (3, 4)), ((2, 1), (1, 3)), ((), (2,)), ((0, 2), (1, 2)), ((), ()))
    return [((make(*a), make(*b, low=0.0, high=12.0)), {}) for a, b in shapes]


for _name, (_form, _what) in (_POLYNOMIALS | _SHIFTED).items():
    operator(
        f"special_{_name}(Tensor self, Tensor n)",
        _forward(_name, _form),
        promote="float",
        out=True,
        numbers="either",
        doc=f"Return {_what} of degree `n` at `self`; one of them may be a number.",
        samples=_samples,
        reference=_reference(_name),
        extremes=_degrees,
        supports="f",
    )
del _name, _form, _what
