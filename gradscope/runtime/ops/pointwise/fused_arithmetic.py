"""Interpolation and fused arithmetic: lerp, addcmul, addcdiv."""

from __future__ import annotations

import numpy

from ...memory import dtype as dtypes
from ...memory.elements import as_element
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Namespace, Number, Operand
from ..declaration.extremes import elementwise
from ..declaration.registry import OPERATORS, Operator, operator, public
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import conj, in_dtype_of


def _lerp(xp: Namespace, self: Array, end: Array, weight: Array) -> Array:
    for name, operand in (("end", end), ("weight", weight)):
        if getattr(operand, "dtype", self.dtype) != self.dtype:
            wanted, found = (dtypes.BY_NUMPY[a.dtype].name for a in (self, operand))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {found}\nConvert it with .to().")
    refuse_kinds("lerp_kernel_tensor" if hasattr(weight, "shape") else "lerp_kernel_scalar", self, "biu")
    difference = end - self
    near = abs(weight) < 0.5
    if isinstance(near, bool):
        return self + weight * difference if near else end - difference * (1 - weight)
    return xp.where(near, self + weight * difference, end - difference * (1 - weight))


def _lerp_reference(self: Array, end: Array, weight: Array) -> Array:
    near = numpy.abs(weight) < 0.5
    return numpy.where(near, self + weight * (end - self), end - (end - self) * (1 - weight))


operator(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight)",
    _lerp,
    method=False,
    inplace=True,
    out="castable",
    node="LerpBackward0",
    derivatives={
        "self": lambda g, weight: g * (1 - conj(weight)),
        "end": lambda g, weight: g * conj(weight),
    },
    doc="Interpolate linearly from `self` to `end`, by a number.",
    samples=lambda make: [((make(3, 4), make(4), 0.25), {}), ((make(2), make(2), 0.75), {})],
    reference=_lerp_reference,
    extremes=elementwise(2, 0.25),
)
operator(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight)",
    _lerp,
    method=False,
    inplace=True,
    out=True,
    node="LerpBackward1",
    derivatives={
        "self": lambda g, weight: g * (1 - conj(weight)),
        "end": lambda g, weight: g * conj(weight),
        "weight": lambda g, self, end: g * conj(end - self),
    },
    doc="Interpolate linearly from `self` to `end`, by a tensor.",
    samples=lambda make: [((make(3, 4), make(4), make(3, 1)), {}), ((make(), make(), make()), {})],
    reference=_lerp_reference,
    extremes=elementwise(3),
)


def _lerp_form(weight: Array) -> Operator:
    return OPERATORS["lerp.Tensor" if hasattr(weight, "_array") else "lerp.Scalar"]


@public
def lerp(self: Tensor, end: Tensor, weight: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``self + weight * (end - self)``, elementwise; `weight` is a number or a tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.lerp(gs.tensor([0.0, 10.0]), gs.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    return _lerp_form(weight).function(self, end, weight, out=out)


@public
def lerp_(self: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """In-place form of :func:`lerp`."""
    return _lerp_form(weight).inplace_function(self, end, weight)  # type: ignore[misc]


def _times(value: Operand, factor: Number) -> Array:
    return value if factor == 1 else value * factor


def _square(x: Array) -> Array:
    return x * x


def _addcdiv(xp: Namespace, self: Array, tensor1: Array, tensor2: Array, value: Number = 1) -> Array:
    if self.dtype.kind not in "fc":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
            "division of tensor1 and tensor2.\nConvert the tensors with .float()."
        )
    return self + _times(tensor1 / tensor2, as_element(value, tensor1, wide=True))


def _ternary(low: float = -2.0) -> Formula:
    return lambda make: [
        ((make(3, 4), make(3, 4), make(3, 4, low=low)), {}),
        ((make(2, 3), make(3), make(2, 1, low=low)), {"value": 0.5}),
        ((make(), make(), make(low=low)), {}),
    ]


def _addcmul(xp: Namespace, self: Array, tensor1: Array, tensor2: Array, value: Number = 1) -> Array:
    refuse_kinds("addcmul_cpu_out", self, "b")
    return self + _times(tensor1 * tensor2, as_element(value, tensor1, wide=True))


operator(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
    _addcmul,
    older=("addcmul(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2)",),
    promote="numeric",
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(_times(in_dtype_of(tensor2, g), value)),
        "tensor2": lambda g, tensor1, value: g * conj(_times(in_dtype_of(tensor1, g), value)),
    },
    doc="Return ``self + value * tensor1 * tensor2``.",
    samples=_ternary(),
    reference=lambda self, tensor1, tensor2, value=1: self + value * tensor1 * tensor2,
    extremes=elementwise(3),
)
operator(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
    _addcdiv,
    older=("addcdiv(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2)",),
    promote="numeric",
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(value / in_dtype_of(tensor2, g)),
        "tensor2": lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / _square(in_dtype_of(tensor2, g))),
    },
    doc="Return ``self + value * tensor1 / tensor2``.",
    samples=_ternary(0.5),
    reference=lambda self, tensor1, tensor2, value=1: self + value * tensor1 / tensor2,
    extremes=elementwise(3),
)
