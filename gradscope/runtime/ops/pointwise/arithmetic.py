"""Arithmetic and powers."""

from __future__ import annotations

import cmath
import math

import numpy

from ...kernels.arithmetic import division
from ...kernels.elementwise import LARGE, in_blocks, in_parts, is_shared, whole
from ...memory import device
from ...memory import dtype as dtypes
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Gradient, Namespace, Number, Operand, OperatorFunction
from ..declaration.extremes import elementwise
from ..declaration.registry import METHODS, OPERATORS, PUBLIC, not_implemented, operator, public
from ..declaration.samples import binary, by_number
from ..execution import inplace_and_out
from ..execution.array_errors import as_multiple, refuse_kinds
from ..execution.bare_functions import conj, in_dtype_of
from ..execution.general import number_in


def _function(name: str) -> OperatorFunction:
    return OPERATORS[name].function


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _multiple(other: Operand, alpha: Number) -> Array:
    if alpha.__class__ is int and alpha == 1:
        return other
    alpha = as_multiple("alpha", alpha, other)  # which refuses 1.0 beside integers, and True beside numbers
    return other if alpha == 1 else other * alpha


def _add(xp: Namespace, self: Array, other: Array, alpha: Number = 1) -> Array:
    return self + _multiple(other, alpha)


def _sub(xp: Namespace, self: Array, other: Array, alpha: Number = 1) -> Array:
    if getattr(self, "dtype", None) is not None and self.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return self - _multiple(other, alpha)


def _times(g: Gradient, alpha: Number) -> Gradient:
    return g if alpha == 1 else g * conj(alpha)


def _minus_times(g: Gradient, alpha: Number) -> Gradient:
    return -g if alpha == 1 else -g * conj(alpha)


def _form_for(other: Operand) -> str:
    # PyTorch has an operator of its own, and a node of its own name, where the second argument is a number.
    return "tensor" if hasattr(other, "_array") else "scalar"


operator(
    "add(Tensor self, Tensor other, *, Scalar alpha=1)",
    _add,
    older=("add(Tensor self, Scalar alpha, Tensor other)",),
    plain="add",
    promote="numeric",
    numbers="either",
    inplace=True,
    out=True,
    derivatives={"self": lambda g: g, "other": _times},
    doc="Return ``self + alpha * other``, elementwise.",
    samples=binary(),
    reference=lambda self, other, alpha=1: self + alpha * other,
    extremes=elementwise(2),
)
operator(
    "sub(Tensor self, Tensor other, *, Scalar alpha=1)",
    _sub,
    older=("sub(Tensor self, Scalar alpha, Tensor other)",),
    plain="subtract",
    promote="numeric",
    numbers="either",
    inplace=True,
    out=True,
    alias=("subtract",),
    derivatives={"self": lambda g: g, "other": _minus_times},
    doc="Return ``self - alpha * other``, elementwise.",
    samples=binary(),
    reference=lambda self, other, alpha=1: self - alpha * other,
    extremes=elementwise(2),
)
for _form, _node in (("tensor", "RsubBackward0"), ("scalar", "RsubBackward1")):
    operator(
        f"rsub.{_form}(Tensor self, Tensor other, *, Scalar alpha=1)",
        lambda xp, self, other, alpha=1: _sub(xp, other, self, alpha),
        promote="numeric",
        node=_node,
        derivatives={"self": _minus_times} | ({} if _form == "scalar" else {"other": lambda g: g}),
        doc="Return ``other - alpha * self``, elementwise.",
        samples=binary(scalar=None) if _form == "tensor" else by_number(-2.0, 2.0),
        reference=lambda self, other, alpha=1: other - alpha * self,
        extremes=elementwise(2) if _form == "tensor" else elementwise(1, 2.5),
    )


@public(method=True)
def rsub(self: Tensor, other: Operand, *, alpha: Number = 1) -> Tensor:
    """Return ``other - alpha * self``, elementwise.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.rsub(gs.tensor([1.0, 2.0]), 10.0)
    tensor([9., 8.])
    """
    return _function(f"rsub.{_form_for(other)}")(self, other, alpha=alpha)


operator(
    "mul(Tensor self, Tensor other)",
    "multiply",
    promote="numeric",
    numbers="either",
    inplace=True,
    out=True,
    alias=("multiply",),
    derivatives={"self": lambda g, other: g * conj(other), "other": lambda g, self: g * conj(self)},
    doc="Multiply elementwise.",
    samples=binary(),
    reference="numpy.multiply",
)
operator(
    # Where PyTorch's own functions multiply by a number.
    "mul.Scalar(Tensor self, Scalar other)",
    lambda xp, self, other: self * other,
    method=False,
    node="MulBackward1",
    derivatives={"self": lambda g, other: g * conj(other)},
    doc="Multiply by a number.",
    samples=lambda make: [((make(2, 3), -1.5), {})],
    reference="numpy.multiply",
)
operator(
    "div.true(Tensor self, Tensor other)",
    "true_divide",
    promote="float",
    numbers="either",
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, other: g / conj(other),
        "other": lambda g, self, other: -g * conj((self / other) / other),
    },
    doc="Divide elementwise; integers give the default float dtype.",
    samples=binary(low2=0.5),
    reference="numpy.true_divide",
)


_ON_HOST = (numpy.ndarray, numpy.generic)


def _refuse_zero(self: Array, other: Array) -> None:
    """Raise for an integer division by zero, as PyTorch does on the CPU; a GPU would have to be waited for."""
    if not isinstance(other, _ON_HOST) or other.dtype.kind not in "iu":
        return
    if numpy.logical_and.reduce(other, axis=None):
        return
    if not hasattr(self, "size") or self.size:
        raise RuntimeError("ZeroDivisionError\nAn integer is divided by 0: convert with .float(), or mask the zeros.")


def _dividing(ufunc: str, kernel: str) -> Formula:
    """Return the forward of a ufunc that divides, which refuses bools, and integers divided by zero."""

    def forward(xp: Namespace, self: Array, other: Array) -> Array:
        refuse_kinds(kernel, self, "b")
        _refuse_zero(self, other)
        return _divided(xp, ufunc, self, other)

    return forward


def _divided(xp: Namespace, ufunc: str, self: Array, other: Array) -> Array:
    return getattr(division if xp is numpy else xp, ufunc)(self, other)


def _remainder(xp: Namespace, self: Array, other: Array) -> Array:
    refuse_kinds("remainder_cpu", self, "b")
    _refuse_zero(self, other)
    result = _divided(xp, "remainder", self, other)
    if result.dtype.kind != "f":
        return result
    # A zero has the sign of self, as in PyTorch; NumPy gives it that of other.
    zero = result == 0
    if type(zero) is numpy.ndarray and not zero.any():
        return result
    return xp.where(zero, xp.copysign(result, self), result)


def _div_mode(xp: Namespace, self: Array, other: Array, rounding_mode: str) -> Array:
    _refuse_zero(self, other)
    if rounding_mode == "floor":
        return _divided(xp, "floor_divide", self, other)
    quotient = xp.trunc(xp.true_divide(self, other))
    kind = dtypes.result_numpy([self, other])
    return quotient.astype(kind) if kind.kind in "iu" else quotient


operator(
    "div.mode(Tensor self, Tensor other, *, str rounding_mode)",
    _div_mode,
    promote="numeric",
    numbers="either",
    inplace=True,
    node="DivBackward2",
    derivatives={"self": lambda g, F: F.zeros_like(g), "other": lambda g, F: F.zeros_like(g)},
    doc='Divide elementwise and round, towards zero ("trunc") or down ("floor").',
    reference=lambda self, other, rounding_mode: (
        numpy.floor_divide(self, other) if rounding_mode == "floor" else numpy.trunc(self / other)
    ),
    extremes=lambda make: elementwise(2, rounding_mode="floor")(make) + elementwise(2, rounding_mode="trunc")(make),
    supports="f",
    samples=lambda make: [
        ((make(*shape, low=2.1, high=2.9), make(low=0.9, high=0.99)), {"rounding_mode": mode})
        for mode in ("trunc", "floor")
        for shape in ((2, 3), (), (0, 2))
    ],
)
operator(
    "floor_divide(Tensor self, Tensor other)",
    _dividing("floor_divide", "div_floor_cpu"),
    promote="numeric",
    numbers="either",
    inplace=True,
    out=True,
    node="NotImplemented",
    derivatives=not_implemented("floor_divide", "self", "other"),
    doc="Return the quotient rounded down; it has no derivative.",
    samples=lambda make: [
        ((make(*a, low=0.5, high=4.0).detach(), make(*b, low=1.0, high=2.0).detach()), {})
        for a, b in (((3, 4), (3, 4)), ((2, 1), (1, 3)), ((), ()), ((0, 2), (2,)))
    ],
    reference="numpy.floor_divide",
)


def _rounded_quotient(self: Array, other: Array, mode: str, F: Namespace) -> Array:
    return getattr(F, "div.mode")(self, other, rounding_mode=mode)


for _form, _nr in (("tensor", 1), ("scalar", 0)):
    operator(
        f"remainder.{_form}(Tensor self, Tensor other)",
        _remainder,
        promote="numeric",
        numbers="either",
        inplace=True,
        out=True,
        node=f"RemainderBackward{_nr}",
        derivatives={"self": lambda g: g}
        | (
            {}
            if _form == "scalar"
            else {
                "other": lambda g, self, other, F: -g * _rounded_quotient(self, other, "floor", F),
            }
        ),
        doc="Return the remainder with the sign of `other` (Python's modulus).",
        supports="f",
        samples=by_number(0.5, 1.4, 2.5) if _form == "scalar" else binary(0.5, 1.4, low2=2.0, high2=3.0, scalar=None),
        reference="numpy.remainder",
        differs=((lambda self, other: numpy.remainder(self, other) == 0, "a zero has the sign of `self`"),),
        extremes=elementwise(1, 2.5) if _form == "scalar" else elementwise(2),
    )
    operator(
        f"fmod.{_form}(Tensor self, Tensor other)",
        _dividing("fmod", "fmod_cpu"),
        promote="numeric",
        inplace=True,
        out=True,
        node=f"FmodBackward{_nr}",
        derivatives={"self": lambda g: g}
        | (
            {}
            if _form == "scalar"
            else {
                "other": lambda g, self, other, F: -g * _rounded_quotient(self, other, "trunc", F),
            }
        ),
        doc="Return the remainder with the sign of `self` (C's fmod).",
        supports="f",
        samples=by_number(0.5, 1.4, 2.5) if _form == "scalar" else binary(0.5, 1.4, low2=2.0, high2=3.0, scalar=None),
        reference="numpy.fmod",
        extremes=elementwise(1, 2.5) if _form == "scalar" else elementwise(2),
    )


@public(method=True, arrays=lambda xp, self, other: xp.remainder(self, other))
def remainder(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder with the sign of `other` (Python's modulus).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.remainder(gs.tensor([-3.0, 5.0]), 2.0)
    tensor([1., 1.])
    """
    return _function(f"remainder.{_form_for(other)}")(self, other, out=out)


@public(method=True)
def remainder_(self: Tensor, other: Operand) -> Tensor:
    """In-place form of :func:`remainder`."""
    return _function(f"remainder.{_form_for(other)}").operator.inplace_function(self, other)


@public(method=True, arrays=lambda xp, self, other: xp.fmod(self, other))
def fmod(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder with the sign of `self` (C's fmod).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fmod(gs.tensor([-3.0, 5.0]), 2.0)
    tensor([-1.,  1.])
    """
    return _function(f"fmod.{_form_for(other)}")(self, other, out=out)


@public(method=True)
def fmod_(self: Tensor, other: Operand) -> Tensor:
    """In-place form of :func:`fmod`."""
    return _function(f"fmod.{_form_for(other)}").operator.inplace_function(self, other)


@public(method=True)
def div(self: Tensor, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divide elementwise.

    Parameters
    ----------
    rounding_mode : {None, "trunc", "floor"}

    Raises
    ------
    RuntimeError
        If `rounding_mode` is something else.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.div(gs.tensor([7.0, -7.0]), 2.0, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if out is not None:
        return inplace_and_out.into(out, "div", [self, other], lambda: div(self, other, rounding_mode=rounding_mode))
    if rounding_mode is None:
        return _true_divide(self, other)
    _check_rounding(rounding_mode)
    return _rounded_divide(self, other, rounding_mode=rounding_mode)


@public(method=True)
def div_(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of :func:`div`."""
    if rounding_mode is None:
        return _true_divide.operator.inplace_function(self, other)
    _check_rounding(rounding_mode)
    return _rounded_divide.operator.inplace_function(self, other, rounding_mode=rounding_mode)


def _check_rounding(mode: str) -> None:
    if mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")


_true_divide = _function("div.true")
_rounded_divide = _function("div.mode")
PUBLIC["true_divide"] = METHODS["true_divide"] = _true_divide
PUBLIC["divide"] = METHODS["divide"] = div
METHODS["true_divide_"], METHODS["divide_"] = _true_divide.operator.inplace_function, div_

# --- powers ----------------------------------------------------------------------------------------------------------


@whole
def _pow_self(g: Gradient, self: Array, exponent: Array, F: Namespace) -> Gradient:
    if isinstance(exponent, (int, float)):
        if exponent == 0:
            return F.zeros_like(g)
        if type(self) is numpy.ndarray and self.size >= LARGE and self.dtype is g.dtype and self.dtype.char in "fd":
            return in_blocks(_write_pow_gradient, self, g, exponent)
        return g * (exponent * conj(self ** (exponent - 1)))
    return g * conj(exponent * self ** (exponent - 1))


def _write_pow_gradient(self: Array, g: Gradient, exponent: Number, result: Array) -> None:
    if exponent == 3:
        numpy.multiply(self, self, out=result)
    else:
        result[...] = self ** (exponent - 1)
    result *= exponent
    result *= g


def _pow_self_tensor(g: Gradient, self: Array, exponent: Array, F: Namespace) -> Gradient:
    if isinstance(exponent, (int, float)):
        return _pow_self(g, self, exponent, F)
    exponent = in_dtype_of(exponent, g)
    zero = exponent == 0
    safe = F.where(zero, F.ones_like(exponent), exponent)
    return F.where(zero, F.zeros_like(g), g * conj(exponent * self ** (safe - 1)))


def _pow_exponent(g: Gradient, self: Array, exponent: Array, result: Array, F: Namespace) -> Gradient:
    # d/dy x^y = x^y log x, and 0 where x is 0 and y >= 0 (PyTorch's convention).
    zero = (self == 0) & (F.real(exponent) >= 0)
    safe = F.where(zero, F.ones_like(self), self)
    return g * F.where(zero, F.zeros_like(result), conj(result * F.log(in_dtype_of(safe, result))))


@whole
def _pow_scalar(xp: Namespace, self: Array, exponent: Number) -> Array:
    if exponent == 2 and is_shared(self) and self.dtype.char in "fd":
        return in_parts(numpy.square, self)
    return in_parts(_raised, xp, self, exponent) if is_shared(self) else _raised(xp, self, exponent)


def _raised(xp: Namespace, self: Array, exponent: Number) -> Array:
    # NumPy multiplies for squares alone; a cube by its power takes up to a hundred times as long.
    if exponent == 3 and self.dtype.char in "fd":
        if self.size >= LARGE and type(self) is numpy.ndarray:
            return in_blocks(_write_cube, self)
        result = self * self
        result *= self
        return result
    return self**exponent


def _write_cube(x: Array, result: Array) -> None:
    numpy.multiply(x, x, out=result)
    result *= x


operator(
    "pow.scalar(Tensor self, Scalar exponent)",
    _pow_scalar,
    inplace=True,
    node="PowBackward0",
    derivatives={"self": _pow_self},
    doc="Raise to a number.",
    samples=lambda make: [((make(2, 3, low=0.5, high=2.0), e), {}) for e in (2, 3.0, 0.5, 1, 0)],
    reference="numpy.power",
    extremes=elementwise(1, 2.5),
)


def _complex_power(xp: Namespace, self: Array, exponent: Array) -> Array:
    """Raise complex numbers; NumPy multiplies for whole exponents, and makes NaN where the logarithm has a limit."""
    result = xp.power(self, exponent)
    lost = xp.isnan(result)
    if not device.to_host(lost.any()):
        return result
    base = xp.where(xp.isinf(self), xp.abs(self), self)  # an infinite one has no direction that counts
    return xp.where(lost, xp.exp(exponent * xp.log(base)), result)


def _power(xp: Namespace, self: Array, exponent: Array) -> Array:
    kind = self.dtype.kind
    if kind == "c":
        return _complex_power(xp, self, exponent)
    if kind == "b":
        refuse_kinds("pow", self, "b")
    try:
        return xp.power(self, exponent)
    except ValueError:
        if exponent.dtype.kind != "i":
            raise
    # An integer to a negative power is one over its power, rounded towards zero: 0 unless it is 1 or -1.
    negative = exponent < 0
    inverse = xp.where(self == -1, 1 - 2 * (exponent & 1), self == 1)
    result = xp.power(self, xp.where(negative, 0, exponent))
    return xp.where(negative, inverse, result).astype(result.dtype, copy=False)


operator(
    "pow.tensor(Tensor self, Tensor exponent)",
    _power,
    promote="numeric",
    inplace=True,
    out=True,
    node="PowBackward1",
    derivatives={"self": _pow_self_tensor, "exponent": _pow_exponent},
    doc="Raise elementwise.",
    samples=binary(0.5, 2.0, scalar=None),
    reference="numpy.power",
    extremes=elementwise(2),
)


def _power_of(xp: Namespace, self: Array, exponent: Array) -> Array:
    kind = dtypes.result_numpy([exponent, self])
    if kind.kind == "b":
        refuse_kinds("pow", exponent, "b")
    return _power(xp, number_in(kind, self), exponent.astype(kind, copy=False))


def _power_of_exponent(g: Gradient, self: Array, exponent: Array, result: Array, F: Namespace) -> Gradient:
    if self == 0:
        return g * F.where(F.real(exponent) >= 0, F.zeros_like(result), result * -math.inf)
    if isinstance(self, complex):
        return g * conj(result * cmath.log(self))
    return g * conj(result * (math.log(self) if self > 0 else math.nan if conj(result) is result else cmath.log(self)))


operator(
    "pow.base(Scalar self, Tensor exponent)",
    _power_of,
    node="PowBackward2",
    method=False,
    out="castable",
    derivatives={"exponent": _power_of_exponent},
    doc="Raise a number to the powers that a tensor holds.",
    samples=lambda make: [((2, make(2, 3)), {}), ((0.5, make()), {}), ((3.0, make(0, 2)), {})],
    reference="numpy.power",
    extremes=lambda make: [((2.0, *args), {}) for args, _ in elementwise()(make)],
)


def _pow_choice(self: Tensor, exponent: Number) -> tuple[str, bool]:
    number = isinstance(exponent, (int, float, complex))
    integers = number and getattr(self, "_array", self).dtype.kind in "iub"
    return ("pow.tensor" if not number or integers else "pow.scalar"), bool(integers)


@public(method=True)
def pow(self: Operand, exponent: Number, *, out: Tensor | None = None) -> Tensor:
    """Return ``self ** exponent``, elementwise.

    Raises
    ------
    RuntimeError
        For an integer tensor and a negative integer exponent.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.pow(gs.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    if not hasattr(self, "_array") and hasattr(exponent, "_array"):
        return _function("pow.base")(self, exponent, out=out)
    if self._dtype.kind == "b" and isinstance(exponent, bool):
        return self.clone() if exponent else PUBLIC["ones_like"](self)  # NumPy makes int8 of it
    name, integers = _pow_choice(self, exponent)
    if integers and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.\nConvert the tensor with .float().")
    function = _function(name)
    return function(self, exponent) if out is None else _function("pow.tensor")(self, exponent, out=out)


@public(method=True)
def pow_(self: Tensor, exponent: Number) -> Tensor:
    """In-place form of :func:`pow`."""
    if self._dtype.kind == "b" and isinstance(exponent, bool):
        return METHODS["mul_" if exponent else "fill_"](self, True)
    name, integers = _pow_choice(self, exponent)
    if integers and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.\nConvert the tensor with .float().")
    return _function(name).operator.inplace_function(self, exponent)


del _form, _node, _nr
