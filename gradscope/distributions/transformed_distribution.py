"""TransformedDistribution: the distribution of a function of a random variable, and those that are made so."""

from __future__ import annotations

import copy
import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.modes import no_grad
from ..runtime.tensor.tensor import Size, Tensor
from . import constraints
from .continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from .distribution import Distribution, broadcast_all
from .independent import Independent, sum_rightmost
from .transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)

__all__ = [
    "EULER",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
    "LogisticNormal",
    "Pareto",
    "TransformedDistribution",
    "Weibull",
]

EULER = 0.57721566490153286060


class TransformedDistribution(Distribution):
    """The distribution of a transformed random variable.

    Parameters
    ----------
    transforms : Transform or list of Transform
        Applied one after the other.

    See Also
    --------
    Transform

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import Normal, TanhTransform, TransformedDistribution
    >>> mean = gs.zeros(2, requires_grad=True)
    >>> policy = TransformedDistribution(Normal(mean, gs.ones(2)), [TanhTransform(cache_size=1)])
    >>> action = policy.rsample()
    >>> policy.log_prob(action).sum().backward()
    >>> mean.grad.shape
    gradscope.Size([2])
    """

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = _as_list(transforms)
        shape = Size((*base_distribution.batch_shape, *base_distribution.event_shape))
        rank = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        taken = whole.domain.event_dim
        if len(shape) < taken:
            raise ValueError(f"base_distribution needs to have shape with size at least {taken}, but got {shape}.")
        result = whole.forward_shape(shape)
        wanted = tuple(whole.inverse_shape(result))
        if wanted != tuple(shape):
            base_distribution = base_distribution.expand(wanted[: len(wanted) - rank])
        if taken > rank:
            base_distribution = Independent(base_distribution, taken - rank)
        self.base_dist = base_distribution
        given = whole.codomain.event_dim
        cut = len(result) - max(given, rank + given - taken)
        super().__init__(result[:cut], result[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base has it."""
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.arg_constraints}

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape: Any = (*batch_shape, *self.event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new = copy.copy(self)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new._batch_shape = Size(batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(new._batch_shape))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._image(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._image(self.base_dist.rsample(sample_shape))

    def _image(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rank = len(self.event_shape)
        stretched: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            rank += transform.domain.event_dim - transform.codomain.event_dim
            added = transform.log_abs_det_jacobian(before, value)
            stretched = stretched + sum_rightmost(added, rank - transform.domain.event_dim)
            value = before
        return sum_rightmost(self.base_dist.log_prob(value), rank - len(self.base_dist.event_shape)) - stretched

    def _turned(self, probability: Tensor) -> Tensor:
        """Return the probability of at most a value, given that of its original; or the other way."""
        sign: Any = ComposeTransform(self.transforms).sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._image(self.base_dist.icdf(self._turned(value)))


def _as_list(transforms: Any) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(transform, Transform) for transform in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


# --- of normal variables ----------------------------------------------------------------------------------------------


class LogNormal(TransformedDistribution):
    """Log-normal distribution: of ``exp(x)`` for a normal x.

    Parameters
    ----------
    loc, scale : Tensor or float
        Mean and standard deviation of the logarithm.

    See Also
    --------
    Normal, ExpTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Logistic-normal distribution: of shares, broken off a stick by normal variables.

    Parameters
    ----------
    loc, scale : Tensor or float
        Of the normal variables; there is one share more.

    See Also
    --------
    Normal, StickBreakingTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.LogisticNormal(gs.zeros(2), gs.ones(2)).sample().shape
    gradscope.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """Their standard deviations."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]


class _Half(TransformedDistribution):
    """The absolute value of a variable that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    @property
    def scale(self) -> Tensor:
        """The scale of the variable."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return F.where(value >= 0, found, F.full_like(found, -math.inf))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """Half-normal distribution: of the absolute value of a normal variable around 0.

    Parameters
    ----------
    scale : Tensor or float
        The standard deviation of that variable.

    See Also
    --------
    Normal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """Half-Cauchy distribution: of the absolute value of a Cauchy variable around 0.

    See Also
    --------
    Cauchy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.HalfCauchy(1.0).log_prob(gs.tensor(1.0))
    tensor(-1.1447)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance


# --- of uniform and exponential variables -----------------------------------------------------------------------------


class Gumbel(TransformedDistribution):
    """Gumbel distribution: of the largest of many values.

    See Also
    --------
    nn.functional.gumbel_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        low, high = (F.full_like(self.loc.detach(), bound) for bound in (limits.tiny, 1 - limits.eps))
        log, minus = ExpTransform().inv, AffineTransform(0, -F.ones_like(self.scale.detach()))
        moved = AffineTransform(self.loc, -self.scale)
        super().__init__(Uniform(low, high, validate_args), [log, minus, log, moved], validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (self.loc - value) / self.scale
        return away - away.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class Weibull(TransformedDistribution):
    """Weibull distribution: of a power of an exponential variable.

    Parameters
    ----------
    scale, concentration : Tensor or float
        Factor, and the inverse of the power.

    See Also
    --------
    Exponential

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Weibull(1.0, 1.0).mean
    tensor(1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(F.ones_like(self.scale.detach()), validate_args)
        power = PowerTransform(self.concentration.reciprocal())
        super().__init__(base, [power, AffineTransform(0, self.scale)], validate_args)

    def _moment(self, order: int) -> Tensor:
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(TransformedDistribution):
    """Pareto distribution: a power law from `scale` on.

    Parameters
    ----------
    scale, alpha : Tensor or float
        The smallest value, and the exponent of the tail.

    See Also
    --------
    Exponential

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)  # infinite up to there
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution: of a number between 0 and 1, much as a beta variable, with a distribution function.

    Parameters
    ----------
    concentration1, concentration0 : Tensor or float
        The two exponents: the probability of at most x is ``1 - (1 - x**concentration1)**concentration0``.

    References
    ----------
    M. C. Jones, "Kumaraswamy's distribution: a beta-type distribution with some tractability advantages", Statistical
    Methodology 6, 2009.

    See Also
    --------
    Beta

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = F.ones_like(self.concentration0.detach())
        inner, outer = (
            PowerTransform(exponent.reciprocal()) for exponent in (self.concentration0, self.concentration1)
        )
        turned = AffineTransform(1, -one)
        super().__init__(Uniform(F.zeros_like(one), one, validate_args), [inner, turned, outer], validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        one, zero = self.concentration1, self.concentration0
        return one.log() + zero.log() + F.xlogy(one - 1, value) + F.special_xlog1py(zero - 1, -(value**one))

    def _moment(self, order: int) -> Tensor:
        more, zero = 1 + order / self.concentration1, self.concentration0
        return zero * (more.lgamma() + zero.lgamma() - (more + zero).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        inside = (one >= 1) & (zero >= 1) & (one * zero > 1)  # elsewhere the density is highest at an end, or flat
        found = ((one - 1) / (one * zero - 1)) ** one.reciprocal()
        return F.where(inside, found, F.full_like(found, math.nan))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        harmonic = (zero + 1).digamma() + EULER
        return (1 - zero.reciprocal()) + (1 - one.reciprocal()) * harmonic - one.log() - zero.log()


# --- of gamma variables -----------------------------------------------------------------------------------------------


class InverseGamma(TransformedDistribution):
    """Inverse gamma distribution: of the reciprocal of a gamma variable, as variances are.

    Parameters
    ----------
    concentration, rate : Tensor or float
        Of that variable.

    See Also
    --------
    Gamma

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The inverse of its scale, which is the scale of this one."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        shape = self.concentration.clamp(min=1)  # infinite up to there
        return self.rate / (shape - 1)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        shape = self.concentration.clamp(min=2)
        return self.rate**2 / ((shape - 1) ** 2 * (shape - 2))

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape + self.rate.log() + shape.lgamma() - (1 + shape) * shape.digamma()
