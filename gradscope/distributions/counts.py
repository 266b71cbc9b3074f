"""Distributions of counts of successes and failures."""

from __future__ import annotations

from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.modes import no_grad
from ..runtime.ops.declaration.registry import OPERATORS
from ..runtime.ops.random import random
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import broadcast_all
from .probs_or_logits import Trials, logits_cross_entropy

__all__ = ["Binomial", "Geometric", "NegativeBinomial"]


class Binomial(Trials):
    """Binomial distribution: how many of some trials succeed.

    Parameters
    ----------
    total_count : Tensor or int
        How many trials.
    probs, logits : Tensor
        One of the two.

    See Also
    --------
    Bernoulli, NegativeBinomial

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Binomial(2, gs.tensor(0.5)).log_prob(gs.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, total_count, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return OPERATORS["binomial"].function(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count, logits = self.total_count, self.logits
        ways = (count + 1).lgamma() - (value + 1).lgamma() - (count - value + 1).lgamma()
        return value * logits + ways - count * F.softplus(logits)

    def _count(self, question: str) -> int:
        count = int(self.total_count.max().item())
        if self.total_count.min().item() != count:
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{question}`.\nAsk one distribution for each count."
            )
        return count

    def entropy(self) -> Tensor:
        self._count("entropy")
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        like = self.__dict__[self._form]
        values = creation.arange(1 + self._count("enumerate_support"), dtype=like.dtype, device=like.device)
        values = values.reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class NegativeBinomial(Trials):
    """Negative binomial distribution: how many trials succeed before some have failed.

    Parameters
    ----------
    total_count : Tensor or float
        How many failures end it.
    probs, logits : Tensor
        One of the two.

    See Also
    --------
    Poisson, Geometric

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.NegativeBinomial(3.0, gs.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, total_count, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rate = OPERATORS["standard_gamma"].function(self.total_count.expand(shape)) * self.logits.exp()
            return OPERATORS["poisson"].function(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count, logits = self.total_count, self.logits
        ways = (count + value).lgamma() - (1.0 + value).lgamma() - count.lgamma()
        ways = F.masked_fill(ways, count + value == 0.0, 0.0)
        return ways - count * F.softplus(logits) - value * F.softplus(-logits)


class Geometric(Trials):
    """Geometric distribution: how many trials fail before one succeeds.

    Parameters
    ----------
    probs, logits : Tensor or float
        One of the two.

    See Also
    --------
    NegativeBinomial

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, None, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value.detach()[value <= 0]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs
        with no_grad():
            drawn = random.rand(*self._extended_shape(sample_shape), dtype=probs.dtype, device=probs.device)
            return (drawn.clamp(min=finfo(probs.dtype).tiny).log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        fails = F.where((probs == 1) & (value == 0), F.zeros_like(probs), probs)
        return value * (-fails).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return logits_cross_entropy(self.logits, self.probs) / self.probs
