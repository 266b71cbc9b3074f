"""Imports every family, in an order in which later ones may build on earlier ones, and completes Tensor."""

from __future__ import annotations

from .. import creation, random
from ..tensor import finish_class
from . import (
    activations,
    comparisons,
    complexes,
    convolution,
    copies,
    einsum,
    gathers,
    indexing,
    losses,
    matrices,
    normalization,
    order,
    pointwise,
    pooling,
    rearrangements,
    reductions,
    selection,
    shapes,
    special,
    statistics,
)
from .registry import METHODS, OPERATORS, PUBLIC

__all__ = ["FAMILIES", "METHODS", "OPERATORS", "PUBLIC"]

FAMILIES = (
    pointwise,
    shapes,
    complexes,
    copies,
    indexing,
    gathers,
    selection,
    comparisons,
    reductions,
    rearrangements,
    statistics,
    order,
    matrices,
    einsum,
    special,
    activations,
    losses,
    convolution,
    pooling,
    normalization,
)

for _module in (creation, random):
    for _name in _module.__all__:
        PUBLIC.setdefault(_name, getattr(_module, _name))

finish_class(METHODS)
