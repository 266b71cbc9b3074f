"""The continuous Bernoulli distribution: its samples are numbers between 0 and 1, as the pixels of a picture are.

With the log-odds x for a parameter the density at v is ``exp(v * x - F(x))``, where ``F(x) = log((exp(x) - 1) / x)``:
mean and variance are the first two derivatives of F.

References
----------
G. Loaiza-Ganem, J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders",
NeurIPS 2019.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.random import random
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .exponential_family import ExponentialFamily
from .probs_or_logits import Trials, kept_from_ends

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Trials, ExponentialFamily):
    """Continuous Bernoulli distribution: of numbers between 0 and 1, uniform where `probs` is a half.

    Parameters
    ----------
    probs, logits : Tensor or float
        One of the two. It is not the mean, but on the same side of a half.
    lims : tuple of float
        Between these `probs` the closed forms, which are 0 / 0 at a half, are replaced by their series.

    See Also
    --------
    Bernoulli, Beta

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.ContinuousBernoulli(gs.tensor(0.5)).mean
    tensor(0.5000)
    >>> gs.distributions.ContinuousBernoulli(gs.tensor(0.9)).mean
    tensor(0.6699)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        super().__init__(probs, logits, None, validate_args)
        if self._form == "probs":
            self.__dict__["probs"] = kept_from_ends(self.probs)

    def _given(self) -> dict[str, Any]:
        return {**super()._given(), "lims": self._lims}

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        near, x, away = self._split(natural_params[0])
        size = away.abs()
        closed = F.relu(away) + (-(-size).expm1()).log() - size.log()
        return F.where(near, x / 2 + x**2 / 24 - x**4 / 2880, closed)

    def _split(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return where the series are taken, and the log-odds for them and for the closed forms."""
        low, high = (math.log(limit / (1 - limit)) for limit in self._lims)
        near = (low <= logits) & (logits <= high)
        # Of what is not chosen, no gradient is NaN.
        return near, F.where(near, logits, F.zeros_like(logits)), F.where(near, F.ones_like(logits), logits)

    @property
    def mean(self) -> Tensor:
        near, x, away = self._split(self.logits)
        size = away.abs()
        closed = away.sign() * (-(-size).expm1().reciprocal() - size.reciprocal() - 0.5)
        return 0.5 + F.where(near, x / 12 - x**3 / 720, closed)

    @property
    def variance(self) -> Tensor:
        near, x, away = self._split(self.logits)
        size = away.abs()
        closed = size.pow(-2) - (-size).exp() / (-size).expm1() ** 2
        return F.where(near, 1 / 12 - x**2 / 240, closed)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        like = self.__dict__[self._form]
        return self.icdf(random.rand(*self._extended_shape(sample_shape), dtype=like.dtype, device=like.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - self._log_normalizer(self.logits)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        near, x, away = self._split(self.logits)
        value = value.clamp(0, 1)
        # The distribution of 1 - v has the opposite log-odds: exponentials of negative numbers do not overflow.
        turned, size = away > 0, away.abs()
        closed = (-size * F.where(turned, 1 - value, value)).expm1() / (-size).expm1()
        left = value * (value - 1)
        series = value + left * (x / 2 + x**2 * (2 * value - 1) / 12 + x**3 * left / 24)
        return F.where(near, series, F.where(turned, 1 - closed, closed))

    def icdf(self, value: Tensor) -> Tensor:
        near, x, away = self._split(self.logits)
        turned, size = away > 0, away.abs()
        closed = -(F.where(turned, 1 - value, value) * (-size).expm1()).log1p() / size
        left = value * (1 - value)
        series = value + left * (x / 2 + x**2 * (1 - 2 * value) / 6 + x**3 * (1 - 6 * left) / 24)
        return F.where(near, series, F.where(turned, 1 - closed, closed))

    def entropy(self) -> Tensor:
        return self._log_normalizer(self.logits) - self.logits * self.mean
