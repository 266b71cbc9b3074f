"""The generalized Pareto distribution, of what exceeds a high threshold.

References
----------
J. Pickands, "Statistical inference using extreme order statistics", Annals of Statistics 3, 1975.
J. R. M. Hosking, J. R. Wallis, "Parameter and quantile estimation for the generalized Pareto distribution",
Technometrics 29, 1987: moments.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.random import random
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution: of what exceeds a high threshold, from there on.

    Parameters
    ----------
    loc, scale : Tensor or float
        The threshold, and the width.
    concentration : Tensor or float
        The tail: a power law where it is positive, exponential where it is 0; where it is negative, samples end at
        ``loc - scale / concentration``.

    See Also
    --------
    Pareto, Exponential

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.loc, self._upper())

    def _upper(self) -> Tensor:
        bounded = self.concentration < 0
        shape = F.where(bounded, self.concentration, F.ones_like(self.concentration))
        return F.where(bounded, self.loc - self.scale / shape, F.full_like(self.loc, math.inf))

    def _below(self, bound: float, moment: Tensor) -> Tensor:
        """Return a moment where the tail is light enough for it to exist."""
        return F.where(self.concentration < bound, moment, F.full_like(moment, math.nan))

    @property
    def mean(self) -> Tensor:
        return self._below(1, self.loc + self.scale / (1 - self.concentration))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        shape = self.concentration
        return self._below(0.5, self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape)))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(random.rand(*shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        outside = (value < self.loc) | (value > self._upper())
        found = (1 + self.concentration) * self._log_tail(value) - self.scale.log()
        return F.where(outside, F.full_like(found, -math.inf), found)

    def _log_tail(self, value: Tensor) -> Tensor:
        """Return ``-log(1 + c * z) / c`` of the standardized value; -z where the concentration c is 0."""
        away = ((value - self.loc) / self.scale).clamp(min=0)
        shifted = F.where(value > self._upper(), F.full_like(away, -1.0), self.concentration * away)
        near = shifted.abs() < _NEAR
        t = F.where(near, shifted, F.zeros_like(shifted))
        series = away * (1 - t / 2 + t**2 / 3 - t**3 / 4 + t**4 / 5)
        shape = F.where(near, F.ones_like(shifted), self.concentration)
        return -F.where(near, series, F.where(near, F.zeros_like(shifted), shifted).log1p() / shape)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of more than a value."""
        self._validate_sample(value)
        return self._log_tail(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of at most a value."""
        return (-self.log_survival_function(value).expm1()).log()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        last = value == 1
        exponential = -(-F.where(last, F.zeros_like(value), value)).log1p()
        powers = self.concentration * exponential
        near = powers.abs() < _NEAR
        t = F.where(near, powers, F.zeros_like(powers))
        series = exponential * (1 + t / 2 + t**2 / 6 + t**3 / 24 + t**4 / 120)
        shape = F.where(near, F.ones_like(powers), self.concentration)
        away = F.where(near, series, F.where(near, F.zeros_like(powers), powers).expm1() / shape)
        return F.where(last, self._upper(), self.loc + self.scale * away)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


# Where the argument of a function that is 0 / 0 at 0 is smaller than this, its series is exact to double precision.
_NEAR = 1e-3
