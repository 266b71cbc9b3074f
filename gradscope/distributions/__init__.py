"""Probability distributions: samples, with gradients to the parameters where there are any, and probabilities.

Examples
--------
>>> import gradscope as gs
>>> mean = gs.tensor(2.0, requires_grad=True)
>>> gs.distributions.Normal(mean, 1.0).rsample((5,)).sum().backward()
>>> mean.grad
tensor(5.)
"""

from __future__ import annotations

from . import constraints, kl
from .continuous import Beta, Dirichlet, Exponential, Gamma, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical, Multinomial, OneHotCategorical, Poisson
from .distribution import Distribution
from .independent import Independent
from .kl import kl_divergence, register_kl
from .multivariate import MultivariateNormal

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Independent",
    "Laplace",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "Uniform",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
]
