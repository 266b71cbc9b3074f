"""Imports every family, in an order in which later ones may build on earlier ones, and completes Tensor."""

from __future__ import annotations

from .. import creation, random
from ..tensor import finish_class
from . import (
    activations,
    arithmetic,
    binary,
    class_losses,
    comparisons,
    complexes,
    convolution,
    copies,
    ctc,
    differences,
    distances,
    dunders,
    einsum,
    gamma,
    gathers,
    indexing,
    interpolation,
    joins,
    linear_algebra,
    logic,
    losses,
    margin_losses,
    matrices,
    memory,
    normalization,
    order,
    padding,
    parts,
    pointwise,
    pooling,
    positions,
    quantiles,
    queries,
    rearrangements,
    reductions,
    scatter_reductions,
    searching,
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
    binary,
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
    scatter_reductions,
    positions,
    selection,
    interpolation,
    comparisons,
    reductions,
    rearrangements,
    statistics,
    order,
    quantiles,
    searching,
    matrices,
    linear_algebra,
    joins,
    differences,
    einsum,
    special,
    gamma,
    activations,
    losses,
    class_losses,
    distances,
    margin_losses,
    ctc,
    convolution,
    padding,
    pooling,
    normalization,
    queries,
)

for _module in (creation, random):
    for _name in _module.__all__:
        PUBLIC.setdefault(_name, getattr(_module, _name))

finish_class(METHODS)
