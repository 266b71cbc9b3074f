"""Kullback-Leibler divergences between distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.ops.linalg.cholesky_and_triangular import solve_triangular
from ..runtime.tensor.tensor import Tensor
from .continuous import Beta, Cauchy, Dirichlet, Exponential, Gamma, Laplace, Normal, Uniform
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, Geometric
from .discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from .distribution import Distribution
from .exponential_family import ExponentialFamily, inner_product, mean_statistics
from .independent import Independent, sum_rightmost
from .multivariate import LowRankMultivariateNormal, MultivariateNormal
from .transformed_distribution import EULER, Gumbel, HalfNormal, Pareto, TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]

_registered: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Return the decorator that makes a function the divergence of one class of distributions from another.

    Raises
    ------
    TypeError
        If one is no class of distributions.

    See Also
    --------
    kl_divergence : calls the function.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope import distributions
    >>> class Same(distributions.Normal):
    ...     pass
    >>> @distributions.register_kl(Same, Same)
    ... def none(p, q):
    ...     return gs.zeros(())
    >>> distributions.kl_divergence(Same(0.0, 1.0), Same(1.0, 1.0))
    tensor(0.)
    """
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function: Divergence) -> Divergence:
        _registered[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence of `q` from `p`: the mean under `p` of ``log p - log q``.

    Raises
    ------
    NotImplementedError
        If no formula is known for the two.

    See Also
    --------
    register_kl, nn.functional.kl_div

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            function = _registered.get((kind_p, kind_q))
            if function is not None:
                return function(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}\n"
        "Write one with register_kl(), or take the mean of log_prob() over samples."
    )


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return F.where((q.low > p.low) | (q.high < p.high), F.full_like(found, math.inf), found)


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log() + p.concentration * (q.rate / p.rate - 1)
    shapes = q.concentration.lgamma() - p.concentration.lgamma()
    return rates + shapes + (p.concentration - q.concentration) * p.concentration.digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    spread = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return spread + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    return _dirichlets(p._dirichlet, q._dirichlet)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normals(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _need_one_event_shape(p, q)
    away = solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    spread = solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    squares = (spread**2).sum((-2, -1)) + (away**2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (squares - p.event_shape[0])


def _need_one_event_shape(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed\n"
            f"They are {list(p.event_shape)} and {list(q.event_shape)}."
        )


def _with_low_rank(p: Any, q: Any) -> Tensor:
    """Return the divergence of two normal distributions of vectors, one of which at least is of low rank."""
    _need_one_event_shape(p, q)
    if isinstance(p, LowRankMultivariateNormal):
        spread = _trace(q, p.cov_factor) + _trace(q, p.cov_diag.sqrt().diag_embed())
    else:
        spread = _trace(q, p.scale_tril)
    squares = spread + _trace(q, (q.loc - p.loc).unsqueeze(-1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (squares - p.event_shape[0])


def _trace(q: Any, factor: Tensor) -> Tensor:
    """Return the trace of the inverse of the covariance of `q` times ``factor @ factor.mT``."""
    if isinstance(q, LowRankMultivariateNormal):
        return q._trace(factor)
    return (solve_triangular(q.scale_tril, factor, upper=False) ** 2).sum((-2, -1))


for _p, _q in (
    (LowRankMultivariateNormal, LowRankMultivariateNormal),
    (LowRankMultivariateNormal, MultivariateNormal),
    (MultivariateNormal, LowRankMultivariateNormal),
):
    register_kl(_p, _q)(_with_low_rank)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    # F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", ICIP 2010: the Bregman divergence of
    # the parameters.
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            f"divergences\nThey are {type(p).__name__} and {type(q).__name__}: write one with register_kl()."
        )
    natural, normalizer, statistics = mean_statistics(p)
    others = q._natural_params
    away = tuple(other - own for other, own in zip(others, natural, strict=True))
    rank = max(len(p.batch_shape), len(q.batch_shape))
    return q._log_normalizer(*others) - normalizer - inner_product(away, statistics, rank)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = _share(p.probs, q.probs, F.softplus(-q.logits) - F.softplus(-p.logits))
    return one + _share(1 - p.probs, 1 - q.probs, F.softplus(q.logits) - F.softplus(p.logits))


def _share(p: Tensor, q: Tensor, log_ratio: Tensor) -> Tensor:
    """Return what one value adds: nothing where `p` is 0, infinity where only `q` is."""
    found = p * log_ratio
    found = F.where(q == 0, F.full_like(found, math.inf), found)
    return F.where(p == 0, F.zeros_like(found), found)


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    return _share(p.probs, q.probs, p.logits - q.logits).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categoricals(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categoricals(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the two reinterpret different numbers of dimensions\nGive both the same number.")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the two are transformed differently\nTheir transforms have to be equal.")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normals(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions",
    # 2019.
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - away + ratio * EULER + (away + (1 + ratio).lgamma()).exp() - (1 + EULER)


@register_kl(Pareto, Pareto)
def _paretos(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return F.where(p.scale < q.scale, F.full_like(found, math.inf), found)


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented\nGive both the same count."
        )
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return F.where(p.total_count > q.total_count, F.full_like(found, math.inf), found)


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


# --- of different kinds -----------------------------------------------------------------------------------------------

# Minus the entropy of p, and minus the mean of the logarithm of the density of q: that of a normal q takes the first
# two moments of p, of an exponential or a continuous Bernoulli one the mean, of a gamma one the mean of log(x), of a
# Gumbel one that of exp(-x).


def _beside_normal(p: Distribution, q: Normal) -> Tensor:
    spread = p.variance + (p.mean - q.loc) ** 2
    return -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + spread / (2 * q.scale**2)


def _beside_exponential(p: Distribution, q: Exponential) -> Tensor:
    return _unless(_goes_below(p, 0), -p.entropy() - q.rate.log() + q.rate * p.mean)


def _beside_gamma(p: Distribution, q: Gamma) -> Tensor:
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    found = -p.entropy() + constant - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean
    return _unless(_goes_below(p, 0), found)


def _beside_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    powers = (q.loc / q.scale).exp() * _mean_exp(p, q.scale.reciprocal())
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + powers


def _beside_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    found = -p.entropy() + q._log_normalizer(q.logits) - p.mean * q.logits
    return _unless((p.low < 0) | (p.high > 1), found) if isinstance(p, Uniform) else found


def _between_zero_and_one_beside_uniform(p: Distribution, q: Uniform) -> Tensor:
    return _unless((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


def _goes_below(p: Any, bound: Any) -> Any:
    return p.low < bound if isinstance(p, Uniform) else False


def _unless(impossible: Any, found: Tensor) -> Tensor:
    """Return a divergence, or infinity where p has values that q has not."""
    return found if impossible is False else F.where(impossible, F.full_like(found, math.inf), found)


def _mean_log(p: Any) -> Tensor:
    """Return the mean of the logarithm of a variable."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - EULER
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    return (F.xlogy(high, high) - F.xlogy(low, low)) / (high - low) - 1


def _mean_exp(p: Any, rate: Tensor) -> Tensor:
    """Return the mean of ``exp(-rate * x)``."""
    if isinstance(p, Normal):
        return (0.5 * (rate * p.scale) ** 2 - rate * p.loc).exp()
    if isinstance(p, Exponential):
        return p.rate / (p.rate + rate)
    if isinstance(p, Gamma):
        return (1 + rate / p.rate) ** -p.concentration
    return ((-rate * p.low).exp() - (-rate * p.high).exp()) / (rate * (p.high - p.low))


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Return infinity: p has values that q has not."""
    return F.full_like(p.mean.detach() + q.mean.detach(), math.inf)


_BOUNDED = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_COMMON: list[tuple[Divergence, type, tuple[type, ...]]] = [
    (_beside_normal, Normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    (_beside_exponential, Exponential, (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)),
    (_beside_gamma, Gamma, (Beta, Exponential, Pareto, Uniform)),
    (_beside_gumbel, Gumbel, (Normal, Exponential, Gamma, Uniform)),
    (_beside_continuous_bernoulli, ContinuousBernoulli, (Beta, ContinuousBernoulli, Uniform)),
    (_between_zero_and_one_beside_uniform, Uniform, (Beta, ContinuousBernoulli)),
    *((_infinite, other, (Normal, Laplace, Gumbel)) for other in _BOUNDED),
    *((_infinite, other, (Exponential, Gamma)) for other in (Beta, ContinuousBernoulli, Pareto, Uniform)),
    *((_infinite, other, (Pareto,)) for other in (Beta, ContinuousBernoulli, Uniform)),
    (_infinite, Pareto, (Beta, ContinuousBernoulli)),
    (_infinite, Bernoulli, (Poisson,)),
    (_infinite, Binomial, (Poisson,)),
]
for _formula, _other, _kinds in _COMMON:
    for _kind in _kinds:
        register_kl(_kind, _other)(_formula)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    away = (p.loc - q.loc) / p.scale
    mean_distance = math.sqrt(2 / math.pi) * (-0.5 * away**2).exp() + away * (away * math.sqrt(0.5)).erf()
    return -p.entropy() + (2 * q.scale).log() + p.scale * mean_distance / q.scale


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    one, zero = q.concentration1, q.concentration0
    constant = one.lgamma() + zero.lgamma() - (one + zero).lgamma()
    logs = (one - 1) * _mean_log(p) + (zero - 1) * _mean_log_between(1 - p.high, 1 - p.low)
    return _unless((p.low < 0) | (p.high > 1), -p.entropy() + constant - logs)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    found = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    return _unless(p.low < q.scale, found)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
