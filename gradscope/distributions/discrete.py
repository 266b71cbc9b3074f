"""Distributions of counts and classes: their samples have no derivative, their probabilities do.

Probabilities may be given as such or by logits, their logarithms up to a constant.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.modes import no_grad
from ..runtime.ops.random import random
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, one_hot
from .exponential_family import ExponentialFamily
from .probs_or_logits import ProbsOrLogits, check_one_given, kept_from_ends, logits_cross_entropy

__all__ = [
    "Bernoulli",
    "Categorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """Bernoulli distribution: 1 with a probability, else 0.

    Parameters
    ----------
    probs, logits : Tensor or float
        One of the two.

    See Also
    --------
    Binomial, RelaxedBernoulli

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Bernoulli(0.25).log_prob(gs.tensor(1.0)).exp()
    tensor(0.2500)
    """

    _mean_carrier_measure = 0

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        check_one_given(probs, logits)
        (given,) = broadcast_all(logits if probs is None else probs)
        self.__dict__["logits" if probs is None else "probs"] = given
        self._name = "logits" if probs is None else "probs"
        super().__init__(given.shape, validate_args=validate_args)

    def _given(self) -> dict[str, Any]:
        return {self._name: self.__dict__[self._name]}

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self.__dict__[self._name].shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return F.where(self.probs == 0.5, F.full_like(mode, math.nan), mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return random.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -logits_cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Tensor:
        return logits_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(self, 2, self._given()[self._name], expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return F.softplus(natural_params[0])


def _listed(distribution: Distribution, count: int, like: Tensor, expand: bool) -> Tensor:
    """Return the numbers below `count` along a new first dimension."""
    rank = len(distribution.batch_shape)
    values = creation.arange(count, dtype=like.dtype, device=like.device).reshape(-1, *(1,) * rank)
    return values.expand(-1, *distribution.batch_shape) if expand else values


class Categorical(Distribution):
    """Categorical distribution: a class.

    Parameters
    ----------
    probs, logits : Tensor
        One of the two; along the last dimension, one for each class. Probabilities are divided by their sum.

    See Also
    --------
    OneHotCategorical, Multinomial, multinomial

    Examples
    --------
    >>> import gradscope as gs
    >>> policy = gs.distributions.Categorical(logits=gs.zeros(4))
    >>> policy.log_prob(gs.tensor(2)).exp()
    tensor(0.2500)
    >>> policy.entropy()
    tensor(1.3863)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        check_one_given(probs, logits)
        if (logits if probs is None else probs).dim() < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.__dict__["probs"] = probs / probs.sum(-1, keepdim=True)
        else:
            self.__dict__["logits"] = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._name = "logits" if probs is None else "probs"
        self._num_events = self.__dict__[self._name].shape[-1]
        super().__init__(self.__dict__[self._name].shape[:-1], validate_args=validate_args)

    def _given(self) -> dict[str, Any]:
        return {self._name: self.__dict__[self._name]}

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self.__dict__[self._name].shape

    @functools.cached_property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self.logits.softmax(-1)

    @functools.cached_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return kept_from_ends(self.probs).log()

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.probs[..., 0].detach(), math.nan)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        count = math.prod(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        if count == 0 or rows.shape[0] == 0:
            return creation.empty(self._extended_shape(sample_shape), dtype="int64", device=rows.device)
        drawn = random.multinomial(rows, count, True)
        return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        places, logits = F.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # A class of no probability has the logit -inf, and counts for nothing.
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(self, self._num_events, self._given()[self._name], expand).long()


class _OfCategorical(Distribution):
    """The base of distributions over vectors whose elements belong to the classes of a :class:`Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=False)
        shape = self._categorical._given()[self._categorical._name].shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _given(self) -> dict[str, Any]:
        return self._categorical._given()

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits


class OneHotCategorical(_OfCategorical):
    """Categorical distribution whose samples are vectors with a one at the class.

    Parameters
    ----------
    probs, logits : Tensor
        As for :class:`Categorical`.

    See Also
    --------
    Categorical

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.OneHotCategorical(gs.tensor([0.2, 0.8])).mean
    tensor([0.2000, 0.8000])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count, rank = self.event_shape[0], len(self.batch_shape)
        values = creation.eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(count, *(1,) * rank, count)
        return values.expand(count, *self.batch_shape, count) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot categorical distribution whose samples pass gradients straight on to the probabilities.

    The gradient is biased: it is that of the probabilities in the place of the sample.

    Parameters
    ----------
    probs, logits : Tensor
        As for :class:`Categorical`.

    References
    ----------
    Y. Bengio, N. Leonard, A. Courville, "Estimating or propagating gradients through stochastic neurons for conditional
    computation", 2013.

    See Also
    --------
    OneHotCategorical, RelaxedOneHotCategorical

    Examples
    --------
    >>> import gradscope as gs
    >>> probs = gs.tensor([0.2, 0.8], requires_grad=True)
    >>> sample = gs.distributions.OneHotCategoricalStraightThrough(probs).rsample()
    >>> sample.sum(), sample.requires_grad
    (tensor(1., grad_fn=<SumBackward0>), True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(_OfCategorical):
    """Multinomial distribution: how often each class comes among a number of draws.

    Parameters
    ----------
    total_count : int
        The number of draws.
    probs, logits : Tensor
        As for :class:`Categorical`.

    See Also
    --------
    Categorical, Binomial

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Multinomial(10, gs.tensor([0.2, 0.8])).mean
    tensor([2., 8.])
    """

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported\nMake one distribution for each.")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def _given(self) -> dict[str, Any]:
        return {"total_count": self.total_count, **super()._given()}

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        return one_hot(drawn, self.probs).sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, counts = broadcast_all(self.logits, value)
        # 0 draws of a class of no probability are certain.
        logits = F.where((counts == 0) & (logits == -math.inf), F.zeros_like(logits), logits)
        orders = (counts.sum(-1) + 1).lgamma() - (counts + 1).lgamma().sum(-1)
        return orders + (logits * counts).sum(-1)

    def entropy(self) -> Tensor:
        n, probs = self.total_count, self.probs
        counts = creation.arange(1, n + 1, dtype=probs.dtype, device=probs.device)
        counts = counts.reshape(-1, *(1,) * probs.dim())
        total = creation.scalar_tensor(n, dtype=probs.dtype, device=probs.device)
        ways = (total + 1).lgamma() - (counts + 1).lgamma() - (total - counts + 1).lgamma()
        chance = (ways + F.xlogy(counts, probs) + F.xlogy(total - counts, 1 - probs)).exp()
        spread = (chance * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (total + 1).lgamma() + spread


class Poisson(ExponentialFamily):
    """Poisson distribution: a count.

    Parameters
    ----------
    rate : Tensor or float
        The mean.

    See Also
    --------
    NegativeBinomial, poisson

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Poisson(2.0).log_prob(gs.tensor(2.0))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return random.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return F.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()
