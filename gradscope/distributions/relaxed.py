"""Continuous relaxations of choices, whose samples pass gradients on.

References
----------
C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", ICLR 2017.
E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.ops.random import random
from ..runtime.tensor.creation import as_tensor
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .discrete import Categorical
from .distribution import Distribution, broadcast_all
from .probs_or_logits import Trials, kept_from_ends
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def _uniform(like: Tensor, shape: Any) -> Tensor:
    return kept_from_ends(random.rand(*shape, dtype=like.dtype, device=like.device))


class LogitRelaxedBernoulli(Trials):
    """The log-odds of a relaxed Bernoulli variable: logistic noise and a temperature.

    Parameters
    ----------
    probs, logits : Tensor or float
        One of the two.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, None, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        given = {self._form: self.__dict__[self._form].expand(tuple(batch_shape))}
        return type(self)(self.temperature, **given, validate_args=False)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = kept_from_ends(self.probs.expand(shape))
        noise = _uniform(probs, shape)
        return (noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return as_tensor(self.temperature).log() + away - 2 * away.exp().log1p()


class _Relaxed(TransformedDistribution):
    """An image of a distribution with a temperature."""

    has_rsample = True
    base_dist: Any

    def _given(self) -> dict[str, Any]:
        return {}  # the base has checked them

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature


class RelaxedBernoulli(_Relaxed):
    """A number between 0 and 1, the nearer to one of them the lower the temperature.

    Parameters
    ----------
    probs, logits : Tensor or float
        One of the two: of 1.

    See Also
    --------
    Bernoulli

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.RelaxedBernoulli(gs.tensor(0.5), gs.tensor([0.3])).rsample().shape
    gradscope.Size([1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs


class _ExpRelaxedCategorical(Distribution):
    """The logarithms of relaxed one-hot vectors: Gumbel noise, a temperature and log-softmax."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Tensor, categorical: Categorical, validate_args: bool | None = None) -> None:
        self.temperature, self._categorical = temperature, categorical
        super().__init__(categorical.batch_shape, categorical.logits.shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return _ExpRelaxedCategorical(self.temperature, self._categorical.expand(batch_shape), validate_args=False)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        logits = self._categorical.logits
        noise = -(-_uniform(logits, self._extended_shape(sample_shape)).log()).log()
        return ((logits + noise) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self._categorical.logits, value)
        count = logits.shape[-1]
        scores = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(count) + as_tensor(self.temperature).log() * (count - 1)


class RelaxedOneHotCategorical(_Relaxed):
    """Shares, the nearer to one class the lower the temperature.

    Parameters
    ----------
    probs, logits : Tensor
        One of the two; along the last dimension, one for each class.

    See Also
    --------
    OneHotCategorical, nn.functional.gumbel_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.RelaxedOneHotCategorical(gs.tensor(0.5), gs.tensor([0.3, 0.7])).rsample().shape
    gradscope.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: _ExpRelaxedCategorical

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = _ExpRelaxedCategorical(temperature, Categorical(probs, logits), validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the classes' probabilities."""
        return self.base_dist._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The classes' probabilities."""
        return self.base_dist._categorical.probs
