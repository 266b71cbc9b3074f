"""Draws of further distributions: log-normal, geometric, Cauchy, binomial, and gamma with its derivative.

References
----------
M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018.
H. Takahasi, M. Mori, "Double exponential formulas for numerical integration", 1974.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...memory import device as devices
from ..declaration.annotations import Array, Namespace, RandomSource
from ..declaration.registry import METHODS, operator
from ..special import gamma as gammas
from .random import _draw, _floating, _source

if TYPE_CHECKING:
    from .random import Generator

__all__ = ["binomial", "standard_gamma"]


def _open_uniform(self: Array, generator: RandomSource) -> Array:
    """Return numbers drawn uniformly from (0, 1]."""
    kind = self.dtype if self.dtype.kind == "f" else devices.numpy.dtype(devices.numpy.float64)
    return 1 - _draw(_source(self, generator), "random", self.shape, kind)


def _log_normal(xp: Namespace, self: Array, mean: float, std: float, generator: RandomSource) -> Array:
    _floating("log_normal_", self.dtype)
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return xp.exp(_draw(_source(self, generator), "standard_normal", self.shape, self.dtype) * std + mean)


def _geometric(xp: Namespace, self: Array, p: float, generator: RandomSource) -> Array:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    trials = xp.ceil(xp.log(_open_uniform(self, generator)) / math.log1p(-p))
    return xp.maximum(trials, 1).astype(self.dtype)


def _cauchy(xp: Namespace, self: Array, median: float, sigma: float, generator: RandomSource) -> Array:
    _floating("cauchy", self.dtype)
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return median + sigma * xp.tan(math.pi * (_open_uniform(self, generator) - 0.5))


for _schema, _forward, _doc in (
    ("log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None)", _log_normal,
     "numbers whose logarithms are normal"),
    ("geometric(Tensor self, float p, *, Generator? generator=None)", _geometric,
     "numbers of trials up to the first success, each of probability `p`"),
    ("cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None)", _cauchy,
     "numbers of the Cauchy distribution"),
):  # fmt: skip
    _op = operator(
        _schema,
        _forward,
        inplace=True,
        method=False,
        public_name=False,
        derivatives={"self": lambda g: g * 0},
        doc=f"Fill with {_doc}.",
    )
    METHODS[_op.name + "_"] = _op.inplace_function  # type: ignore[assignment]


def _binomial(xp: Namespace, count: Array, prob: Array, generator: Generator | None = None) -> Array:
    _floating("binomial_cpu", count.dtype)
    return _source(count, generator).draw("binomial", count.astype(xp.int64), prob).astype(count.dtype)


binomial = operator(
    "binomial(Tensor count, Tensor prob, Generator? generator=None)",
    _binomial,
    method=False,
    derivatives={"count": lambda g: g * 0, "prob": lambda g: g * 0},
    doc="""Return numbers of successes among `count` trials of probability `prob`.

    Raises RuntimeError where the dtype is none of floating point.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.binomial(gs.tensor([5.0, 5.0]), gs.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """,
).function


# --- gamma ------------------------------------------------------------------------------------------------------------


def _standard_gamma(xp: Namespace, self: Array, generator: Generator | None = None) -> Array:
    _floating("gamma", self.dtype)
    drawn = _source(self, generator).draw("standard_gamma", self.astype(xp.float64), self.shape)
    tiny = xp.finfo(self.dtype).tiny
    return xp.maximum(drawn.astype(self.dtype), tiny)


def _nodes() -> list[tuple[float, float]]:
    """Return points and weights that integrate what decays exponentially from 0 to infinity."""
    step = 0.08
    found = []
    for k in range(-60, 61):
        t = k * step
        rising = math.exp(-t)
        found.append((math.exp(t - rising), step * (1 + rising) * math.exp(t - rising)))
    return [(point, weight) for point, weight in found if weight > 1e-300]


_NODES = _nodes()


def _standard_gamma_grad(xp: Namespace, self: Array, output: Array) -> Array:
    """Return the derivative of a gamma variable by its shape parameter, at a fixed value of the cumulative function.

    With the density p it is ``-(integral of dp/da from 0 to z) / p(z)``, or the same from z to infinity with the sign
    turned; dp/da is ``p(t) (log t - digamma(a))``. With ``t = z exp(∓s)`` the integrand decays in s.
    """
    a, z = self.astype(xp.float64), output.astype(xp.float64)
    below = z < a
    sign = xp.where(below, -1.0, 1.0)
    # How fast the integrand decays: at first as its logarithm's slope, then as a normal density does.
    scale = 1 / (xp.absolute(a - z) + xp.sqrt(xp.minimum(a, z)))
    offset = xp.log(z) - gammas.digamma_of(xp, a)
    total = xp.zeros_like(z)
    for point, weight in _NODES:
        s = scale * point
        turned = sign * s
        exponent = a * turned - z * xp.expm1(xp.minimum(turned, 700))
        total += weight * xp.exp(exponent) * (offset + turned)
    return (sign * z * scale * total).astype(self.dtype)


operator(
    "standard_gamma_grad(Tensor self, Tensor output)",
    _standard_gamma_grad,
    method=False,
    public_name=False,
    derivatives={},
    doc="Return the derivative of gamma variables by their shape parameter.",
)
standard_gamma = operator(
    "standard_gamma(Tensor self, Generator? generator=None)",
    _standard_gamma,
    method=False,
    public_name=False,
    node="StandardGammaBackward0",
    derivatives={"self": lambda g, self, result, F: g * F.standard_gamma_grad(self, result)},
    doc="""Return gamma variables of scale 1 with the shape parameters `self`.

    Raises RuntimeError where the dtype is none of floating point.

    Examples
    --------
    >>> import gradscope as gs
    >>> alpha = gs.tensor([0.5, 2.0], requires_grad=True)
    >>> drawn = gs.standard_gamma(alpha)
    >>> drawn.shape, (drawn > 0).all()
    (gradscope.Size([2]), tensor(True))
    """,
).function

del _schema, _forward, _doc, _op
