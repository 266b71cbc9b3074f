"""Names for what an operator's code is given: they say what is meant where one type cannot.

A forward runs on arrays of NumPy or CuPy. A derivative is one expression that runs on those and, under
``create_graph=True``, on tensors. No type that NumPy has covers both, so the aliases mean ``Any`` to a type checker.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Array", "Dims", "Gradient", "Namespace", "Shape", "Sizes"]

# A bare array of the module at hand; a tensor where the expression is recorded.
Array: TypeAlias = Any
# What arrives for a result or leaves for an operand: an Array, or None where there is none.
Gradient: TypeAlias = Any
# ``xp``, an array module, or ``F``: every operator's forward on bare arrays, or every operator on tensors.
Namespace: TypeAlias = Any
# The sizes of a tensor's dimensions.
Shape: TypeAlias = tuple[int, ...]
# What a caller gives for sizes in space, such as a stride: one number for all dimensions, or one each.
Sizes: TypeAlias = Any
# What a caller gives for dimensions: a number, several numbers, or None where that means all.
Dims: TypeAlias = Any
