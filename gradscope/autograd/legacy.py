"""The public names of PyTorch 0.1's API, which is :mod:`gradscope.autograd.v01`."""

from __future__ import annotations

from .v01.sampling import set_stochastic_sampling
from .v01.stochastic_functions import (
    Bernoulli,
    Multinomial,
    Normal,
    StochasticFunction,
    bernoulli,
    multinomial,
    normal,
)
from .v01.variable import Variable

__all__ = [
    "Bernoulli",
    "Multinomial",
    "Normal",
    "StochasticFunction",
    "Variable",
    "bernoulli",
    "multinomial",
    "normal",
    "set_stochastic_sampling",
]
