"""Probability distributions: samples, with gradients to the parameters where there are any, and probabilities.

- :mod:`~.distribution`: what all of them share
- :mod:`~.probs_or_logits`: a probability or its log-odds, whichever is given
- :mod:`~.exponential_family`: what follows from natural parameters
- :mod:`~.continuous`: ``Normal``, ``Uniform``, ``Gamma``, ``Beta`` and other distributions of real numbers
- :mod:`~.von_mises`: angles
- :mod:`~.continuous_bernoulli`: numbers between 0 and 1, as pixels are
- :mod:`~.generalized_pareto`: what exceeds a threshold
- :mod:`~.multivariate`: vectors
- :mod:`~.matrices`: covariances, and factors of correlations
- :mod:`~.discrete`: ``Bernoulli``, ``Categorical``, ``Poisson`` and others whose samples have no derivative
- :mod:`~.counts`: ``Binomial`` and ``NegativeBinomial``
- :mod:`~.relaxed`: samples of choices that pass gradients on
- :mod:`~.independent`: a batch that counts as one
- :mod:`~.mixture`: one of several, chosen by chance
- :mod:`~.transformed_distribution`: a function of a random variable, and ``LogNormal`` and others that are made so
- :mod:`~.transform`: the base of invertible functions, and how they are composed
- :mod:`~.transforms`: ``ExpTransform``, ``AffineTransform`` and others
- :mod:`~.constraints`: where parameters and samples may lie
- :mod:`~.constraint_registry`: which transform leads there
- :mod:`~.kl`: divergences between two

Examples
--------
>>> import gradscope as gs
>>> mean = gs.tensor(2.0, requires_grad=True)
>>> gs.distributions.Normal(mean, 1.0).rsample((5,)).sum().backward()
>>> mean.grad
tensor(5.)
"""

from __future__ import annotations

from . import constraints, kl, transforms
from .constraint_registry import biject_to, transform_to
from .continuous import (
    Beta,
    Cauchy,
    Chi2,
    Dirichlet,
    Exponential,
    FisherSnedecor,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, Geometric, NegativeBinomial
from .discrete import Bernoulli, Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough, Poisson
from .distribution import Distribution
from .exponential_family import ExponentialFamily
from .generalized_pareto import GeneralizedPareto
from .independent import Independent
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, Wishart
from .mixture import MixtureSameFamily
from .multivariate import LowRankMultivariateNormal, MultivariateNormal
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .transformed_distribution import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    Weibull,
)
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .von_mises import VonMises

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
