"""Python's operators on tensors: ``+``, ``@``, ``<<`` and the like, and their reflected and in-place forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tensor.tensor import Tensor
from ..declaration.registry import METHODS, public
from ..execution import general
from ..execution.codegen import operator_form

if TYPE_CHECKING:
    from ..declaration.annotations import Operand

for _dunder, _target in {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__rsub__": "rsub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "true_divide", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__ifloordiv__": "floor_divide_", "__mod__": "remainder",
    "__imod__": "remainder_", "__pow__": "pow", "__ipow__": "pow_", "__neg__": "neg", "__abs__": "abs",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
    "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
    "__ilshift__": "bitwise_left_shift_", "__irshift__": "bitwise_right_shift_",
}.items():  # fmt: skip
    _op = getattr(METHODS[_target], "operator", None)
    METHODS[_dunder] = operator_form(_op) if _op is not None and _op.function is METHODS[_target] else METHODS[_target]


@public(method="__rtruediv__", function_too=False)
def _rtruediv(self: Tensor, other: Operand) -> Tensor:
    return METHODS["reciprocal"](self) * other


METHODS["__rdiv__"] = _rtruediv


@public(method="__rmatmul__", function_too=False)
def _rmatmul(self: Tensor, other: Operand) -> Tensor:
    return METHODS["matmul"](other, self) if isinstance(other, Tensor) else NotImplemented


@public(method="__rpow__", function_too=False)
def _rpow(self: Tensor, other: Operand) -> Tensor:
    return METHODS["pow"](other, self)


@public(method="__rfloordiv__", function_too=False)
def _rfloordiv(self: Tensor, other: Operand) -> Tensor:
    return METHODS["floor_divide"](general.as_tensor_like(other, self), self)


@public(method="__rmod__", function_too=False)
def _rmod(self: Tensor, other: Operand) -> Tensor:
    return METHODS["remainder"](general.as_tensor_like(other, self), self)


@public(method="__invert__", function_too=False)
def _invert(self: Tensor) -> Tensor:
    if self._dtype.kind not in "iub":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors\n"
            f"This one is {self.dtype}; for 1 - x or a mask, write it so."
        )
    return METHODS["bitwise_not"](self)


@public(method="__pos__", function_too=False)
def _pos(self: Tensor) -> Tensor:
    return self


@public(method="__rlshift__", function_too=False)
def _rlshift(self: Tensor, other: Operand) -> Tensor:
    return METHODS["bitwise_left_shift"](general.as_tensor_like(other, self), self)


@public(method="__rrshift__", function_too=False)
def _rrshift(self: Tensor, other: Operand) -> Tensor:
    return METHODS["bitwise_right_shift"](general.as_tensor_like(other, self), self)


del _dunder, _op, _target
