"""Imports every family, in an order in which later ones may build on earlier ones, and completes Tensor."""

from __future__ import annotations

from .. import creation
from ..tensor import finish_class
from . import complexes, copies, matrices, pointwise, reductions, shapes
from .registry import METHODS, OPERATORS, PUBLIC

__all__ = ["FAMILIES", "OPERATORS", "PUBLIC"]

FAMILIES = (pointwise, shapes, complexes, copies, reductions, matrices)

for _name in creation.__all__:
    PUBLIC.setdefault(_name, getattr(creation, _name))

finish_class(METHODS)
