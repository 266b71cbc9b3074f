"""Names for what an operator's code is given: they say what is meant where one type cannot.

A forward runs on arrays of NumPy or CuPy. A derivative is one expression that runs on those and, under
``create_graph=True``, on tensors. No type that NumPy has covers both, so the aliases mean ``Any`` to a type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = [
    "Argument",
    "Array",
    "Cases",
    "DType",
    "Device",
    "Dims",
    "Formula",
    "Gradient",
    "GraphNode",
    "Index",
    "Ints",
    "Layout",
    "Make",
    "MemoryFormat",
    "Namespace",
    "NodeClass",
    "NormOrder",
    "Number",
    "Operand",
    "OperatorFunction",
    "Out",
    "RandomSource",
    "Results",
    "Scope",
    "Shape",
    "Sizes",
]

# A bare array of the module at hand; a tensor where the expression is recorded.
Array: TypeAlias = Any
# What arrives for a result or leaves for an operand: an Array, or None where there is none.
Gradient: TypeAlias = Any
# ``xp``, an array module, or ``F``: every operator's forward on bare arrays, or every operator on tensors.
Namespace: TypeAlias = Any
# The sizes of a tensor's dimensions.
Shape: TypeAlias = tuple[int, ...]
# Numbers, one for each dimension or axis that is meant: those of a window, a stride, a padding.
Ints: TypeAlias = tuple[int, ...]
# What a caller gives for sizes, such as those of a view or a stride: one number for all dimensions, or one each.
Sizes: TypeAlias = Any
# What a caller gives for dimensions: a number, several numbers, or None where that means all.
Dims: TypeAlias = Any
# What a caller gives for a dtype: PyTorch's name for one as an attribute of the package, NumPy's, or a type of Python.
DType: TypeAlias = Any
# What a caller gives for a device: one, its name, or None where that means the usual one.
Device: TypeAlias = Any
# A number of Python, or what stands for one: an array or a tensor without dimensions.
Number: TypeAlias = Any
# What stands on the other side of an operator: an Array, a tensor, or a Number.
Operand: TypeAlias = Any
# What a call gives for one parameter: a tensor, a list of them, or a value of Python, as the schema says.
Argument: TypeAlias = Any
# A function that a declaration becomes: it knows its operator and has a signature of its own.
OperatorFunction: TypeAlias = Any
# What an operator returns, or its forward: a tensor or an array, or a tuple of them, named as torch.return_types are.
Results: TypeAlias = Any
# A node of the operator's own class, which has a slot for each saved name.
GraphNode: TypeAlias = Any
# The class of these nodes.
NodeClass: TypeAlias = Any
# What a caller writes between brackets: numbers, slices, None, Ellipsis, tensors, or a tuple of them.
Index: TypeAlias = Any
# What a caller gives for ``out=``: the tensor to write into, a tuple of them for several results, or None.
Out: TypeAlias = Any
# What a caller gives for ``generator=``: a Generator, or None for the one that all share.
RandomSource: TypeAlias = Any
# What a caller gives for a memory format or a layout: PyTorch's name for one as an attribute of the package, or None.
MemoryFormat: TypeAlias = Any
Layout: TypeAlias = Any
# The order of a norm: a number, an infinity, ``"fro"`` or ``"nuc"``.
NormOrder: TypeAlias = Any
# ``make`` of a declaration's samples: called with sizes, it makes a tensor of them.
Make: TypeAlias = Any
# What samples make: the arguments of each call, by place and by name.
Cases: TypeAlias = list[tuple[tuple[Any, ...], dict[str, Any]]]
# The global names of a function whose source is generated.
Scope: TypeAlias = dict[str, Any]
# A forward, a derivative, a reference: what it takes is in the declaration.
Formula: TypeAlias = Callable[..., Any]
