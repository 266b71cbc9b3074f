"""Imports every family, in an order in which later ones may build on earlier ones, and completes Tensor."""

from __future__ import annotations

from .. import creation, random
from ..tensor import finish_class
from . import (
    activations,
    arithmetic,
    comparisons,
    complexes,
    convolution,
    copies,
    dunders,
    einsum,
    gathers,
    indexing,
    interpolation,
    joins,
    linear_algebra,
    logic,
    losses,
    matrices,
    memory,
    normalization,
    order,
    parts,
    pointwise,
    pooling,
    positions,
    queries,
    rearrangements,
    reductions,
    selection,
    shapes,
    special,
    statistics,
    strided,
)
from .registry import METHODS, OPERATORS, PUBLIC

__all__ = ["FAMILIES", "METHODS", "OPERATORS", "PUBLIC"]

FAMILIES = (
    arithmetic,
    pointwise,
    logic,
    dunders,
    shapes,
    strided,
    parts,
    complexes,
    copies,
    memory,
    indexing,
    gathers,
    positions,
    selection,
    interpolation,
    comparisons,
    reductions,
    rearrangements,
    statistics,
    order,
    matrices,
    linear_algebra,
    joins,
    einsum,
    special,
    activations,
    losses,
    convolution,
    pooling,
    normalization,
    queries,
)

for _module in (creation, random):
    for _name in _module.__all__:
        PUBLIC.setdefault(_name, getattr(_module, _name))

finish_class(METHODS)
