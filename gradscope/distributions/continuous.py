"""Distributions of real numbers; their samples pass gradients to the parameters.

References
----------
D. P. Kingma, M. Welling, "Auto-encoding variational Bayes", 2014: samples as functions of the parameters.
M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018: those of gamma variables.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.ops.random import random
from ..runtime.ops.random.random_distributions import standard_gamma
from ..runtime.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, one_hot
from .exponential_family import ExponentialFamily

__all__ = [
    "Beta",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "Laplace",
    "Normal",
    "StudentT",
    "Uniform",
]


def _noise(distribution: str, like: Tensor, shape: Any) -> Tensor:
    return getattr(random, distribution)(*shape, dtype=like.dtype, device=like.device)


class _LocationScale(Distribution):
    """A distribution of all real numbers: one around 0, widened and moved; its mean is where it is highest."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean


class Normal(_LocationScale, ExponentialFamily):
    """Normal distribution.

    Parameters
    ----------
    loc, scale : Tensor or float
        Mean and standard deviation.

    See Also
    --------
    MultivariateNormal, LogNormal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Normal(0.0, 1.0).log_prob(gs.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + _noise("randn", self.loc, self._extended_shape(sample_shape)) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        squares = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -squares - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / self.scale / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale**2, -0.5 * self.scale.pow(-2)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        first, second = natural_params
        return -(first**2) / (4 * second) + 0.5 * (-math.pi / second).log()


class Laplace(_LocationScale):
    """Laplace distribution: exponential on both sides.

    See Also
    --------
    Normal

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Laplace(0.0, 1.0).log_prob(gs.tensor(1.0))
    tensor(-1.6931)
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        one, other = (_noise("rand", self.loc, shape) for _ in range(2))
        return self.loc + self.scale * ((1 - one).log() - (1 - other).log())

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        middle = value - 0.5
        return self.loc - self.scale * middle.sign() * (-2 * middle.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """Cauchy distribution: it has neither mean nor variance.

    Parameters
    ----------
    loc, scale : Tensor or float
        Median, and half the width at half the height.

    See Also
    --------
    HalfCauchy, StudentT

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Cauchy(0.0, 1.0).cdf(gs.tensor(1.0))
    tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return F.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _noise("rand", self.loc, self._extended_shape(sample_shape))
        return self.loc + (math.pi * (drawn - 0.5)).tan() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """Uniform distribution on [low, high).

    See Also
    --------
    rand, Beta

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Uniform(0.0, 4.0).mean
    tensor(2.)
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        """Where the bounds have to lie: on both sides of each other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * math.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.low + _noise("rand", self.low, self._extended_shape(sample_shape)) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """Exponential distribution.

    Parameters
    ----------
    rate : Tensor or float
        The inverse of the mean.

    See Also
    --------
    Gamma, Weibull

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    _mean_carrier_measure = 0
    has_rsample = True
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return -(1 - _noise("rand", self.rate, self._extended_shape(sample_shape))).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -(-natural_params[0]).log()


class Gamma(ExponentialFamily):
    """Gamma distribution.

    Parameters
    ----------
    concentration, rate : Tensor or float
        The shape, and the inverse of the scale.

    See Also
    --------
    Exponential, Chi2

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Gamma(2.0, 4.0).mean
    tensor(0.5000)
    """

    _mean_carrier_measure = 0
    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        scaled = F.xlogy(self.concentration, self.rate) + F.xlogy(self.concentration - 1, value)
        return scaled - self.rate * value - self.concentration.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return F.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        power, rate = natural_params
        return (power + 1).lgamma() - (power + 1) * (-rate).log()


class Chi2(Gamma):
    """Chi-squared distribution: of the sum of squares of normal variables.

    Parameters
    ----------
    df : Tensor or float
        How many: the degrees of freedom.

    See Also
    --------
    Gamma

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Chi2(gs.tensor(3.0)).variance
    tensor(6.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def _given(self) -> dict[str, Any]:
        return {"df": self.df}

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class StudentT(Distribution):
    """Student's t-distribution.

    Parameters
    ----------
    df, loc, scale : Tensor or float
        Degrees of freedom, middle and width.

    See Also
    --------
    Normal, Cauchy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.StudentT(3.0).log_prob(gs.tensor(0.0))
    tensor(-1.0009)
    """

    has_rsample = True
    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return F.where(self.df > 1, self.loc, F.full_like(self.loc, math.nan))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = F.where(finite, self.df, F.full_like(self.df, 3.0))  # of what is not chosen, no gradient is NaN
        without = F.where(self.df > 1, F.full_like(df, math.inf), F.full_like(df, math.nan))
        return F.where(finite, self.scale**2 * df / (df - 2), without)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        squares = standard_gamma((0.5 * self.df).expand(shape)) / 0.5
        return self.loc + self.scale * _noise("randn", self.df, shape) * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (value - self.loc) / self.scale
        spread = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        spread = spread + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return -0.5 * (self.df + 1) * (away**2 / self.df).log1p() - spread

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        spread = half.lgamma() + 0.5 * math.log(math.pi) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + spread


class FisherSnedecor(Distribution):
    """F-distribution, of Fisher and Snedecor: of the ratio of two variances, each of some normal variables.

    Parameters
    ----------
    df1, df2 : Tensor or float
        The degrees of freedom above and below.

    See Also
    --------
    Chi2, StudentT

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = _above(self.df2, 2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        df1 = _above(self.df1, 2)
        return (df1 - 2) / df1 * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        df2 = _above(self.df2, 4)
        return 2 * df2**2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above, below = (standard_gamma((0.5 * df).expand(shape)) / df for df in (self.df1, self.df2))
        tiny = finfo(above.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        one, two = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        constant = (one + two).lgamma() - one.lgamma() - two.lgamma() + one * ratio.log()
        return constant + (one - 1) * value.log() - (one + two) * (ratio * value).log1p()


def _above(df: Tensor, bound: float) -> Tensor:
    """Return degrees of freedom, or NaN where there are not enough."""
    return F.where(df > bound, df, F.full_like(df, math.nan))


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution: of probabilities, as shares of gamma variables.

    Parameters
    ----------
    concentration : Tensor
        Along the last dimension, one for each share.

    See Also
    --------
    Beta, Categorical

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Dirichlet(gs.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    _mean_carrier_measure = 0
    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        lowest = (self.concentration < 1).all(-1, keepdim=True)
        at_a_corner = one_hot(mode.argmax(-1), mode)
        return F.where(lowest, at_a_corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return F.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a = self.concentration
        total, count = a.sum(-1), a.shape[-1]
        spread = a.lgamma().sum(-1) - total.lgamma()
        return spread - (count - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        a = natural_params[0] + 1
        return a.lgamma().sum(-1) - a.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """Beta distribution: of a probability.

    Parameters
    ----------
    concentration1, concentration0 : Tensor or float
        Its exponents plus 1 at 1 and at 0: alpha and beta.

    See Also
    --------
    Dirichlet

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Beta(gs.tensor(2.0), gs.tensor(3.0)).mean
    tensor(0.4000)
    """

    _mean_carrier_measure = 0
    has_rsample = True
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        one, zero = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(F.stack([one, zero], -1), validate_args=validate_args)
        super().__init__(one.shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of the probability, plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of what is left to 1, plus 1."""
        return self._dirichlet.concentration[..., 1]

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.arg_constraints}

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._dirichlet.log_prob(F.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        one, zero = (power + 1 for power in natural_params)
        return one.lgamma() + zero.lgamma() - (one + zero).lgamma()
