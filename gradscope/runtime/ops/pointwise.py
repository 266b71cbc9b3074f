"""Elementwise operators: a table of calculus.

Derivatives follow Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), where no other source is named;
for complex arguments they are the conjugate Wirtinger derivatives PyTorch uses.
"""

from __future__ import annotations

import math
from typing import Any

from . import general
from .arrays import conj
from .codegen import operator_form
from .registry import METHODS, OPERATORS, PUBLIC, operator, public
from .samples import binary, integers, unary


def _function(name: str) -> Any:
    return OPERATORS[name].function


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _add(xp: Any, self: Any, other: Any, alpha: Any = 1) -> Any:
    return self + (other if alpha == 1 else other * alpha)


def _sub(xp: Any, self: Any, other: Any, alpha: Any = 1) -> Any:
    if getattr(self, "dtype", None) is not None and self.dtype.kind == "b":
        raise TypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )
    return self - (other if alpha == 1 else other * alpha)


def _times(g: Any, alpha: Any) -> Any:
    return g if alpha == 1 else g * conj(alpha)


def _form_for(other: Any) -> str:
    # PyTorch has an operator of its own, and a node of its own name, where the second argument is a number.
    return "tensor" if hasattr(other, "_array") else "scalar"


def _by_number(low: float, high: float, number: float = 1.5) -> Any:
    return lambda make: [((make(*shape, low=low, high=high), number), {}) for shape in ((2, 3), (), (0, 2))]


operator(
    "add(Tensor self, Tensor other, *, Scalar alpha=1)",
    _add,
    plain="add",
    promote="numeric",
    inplace=True,
    out=True,
    derivatives={"self": lambda g: g, "other": _times},
    doc="Return ``self + alpha * other``, elementwise.",
    samples=binary(),
)
operator(
    "sub(Tensor self, Tensor other, *, Scalar alpha=1)",
    _sub,
    plain="subtract",
    promote="numeric",
    inplace=True,
    out=True,
    alias=("subtract",),
    derivatives={"self": lambda g: g, "other": lambda g, alpha: -_times(g, alpha)},
    doc="Return ``self - alpha * other``, elementwise.",
    samples=binary(),
)
for _form, _node in (("tensor", "RsubBackward0"), ("scalar", "RsubBackward1")):
    operator(
        f"rsub.{_form}(Tensor self, Tensor other, *, Scalar alpha=1)",
        lambda xp, self, other, alpha=1: _sub(xp, other, self, alpha),
        promote="numeric",
        node=_node,
        derivatives={"self": lambda g, alpha: -_times(g, alpha)}
        | ({} if _form == "scalar" else {"other": lambda g: g}),
        doc="Return ``other - alpha * self``, elementwise.",
        samples=binary(scalar=None) if _form == "tensor" else _by_number(-2.0, 2.0),
    )


@public(method=True)
def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``other - alpha * self``, elementwise."""
    return _function(f"rsub.{_form_for(other)}")(self, other, alpha=alpha)


operator(
    "mul(Tensor self, Tensor other)",
    "multiply",
    promote="numeric",
    inplace=True,
    out=True,
    alias=("multiply",),
    derivatives={"self": lambda g, other: g * conj(other), "other": lambda g, self: g * conj(self)},
    doc="Multiply elementwise.",
    samples=binary(),
)
operator(
    "div.true(Tensor self, Tensor other)",
    "true_divide",
    promote="float",
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, other: g / conj(other),
        "other": lambda g, self, other: -g * conj((self / other) / other),
    },
    doc="Divide elementwise; integers give the default float dtype.",
    samples=binary(low2=0.5),
)


def _div_mode(xp: Any, self: Any, other: Any, rounding_mode: str) -> Any:
    if rounding_mode == "floor":
        return xp.floor_divide(self, other)
    quotient = xp.trunc(xp.true_divide(self, other))
    kind = getattr(self, "dtype", None)
    return quotient.astype(kind) if kind is not None and kind.kind in "iu" else quotient


operator(
    "div.mode(Tensor self, Tensor other, *, str rounding_mode)",
    _div_mode,
    promote="numeric",
    inplace=True,
    node="DivBackward2",
    derivatives={"self": lambda g, F: F.zeros_like(g), "other": lambda g, F: F.zeros_like(g)},
    doc='Divide elementwise and round, towards zero ("trunc") or down ("floor").',
    supports="f",
    samples=lambda make: [
        ((make(*shape, low=2.1, high=2.9), make(low=0.9, high=0.99)), {"rounding_mode": mode})
        for mode in ("trunc", "floor")
        for shape in ((2, 3), (), (0, 2))
    ],
)
operator(
    "floor_divide(Tensor self, Tensor other)",
    "floor_divide",
    promote="numeric",
    inplace=True,
    out=True,
    doc="Return the quotient rounded down.",
    samples=binary(0.5, 4.0, low2=1.0, high2=2.0),
)
for _form, _nr in (("tensor", 1), ("scalar", 0)):
    operator(
        f"remainder.{_form}(Tensor self, Tensor other)",
        "remainder",
        promote="numeric",
        inplace=True,
        out=True,
        node=f"RemainderBackward{_nr}",
        derivatives={"self": lambda g: g}
        | (
            {}
            if _form == "scalar"
            else {
                "other": lambda g, self, other, F: -g * F.floor(F.true_divide(self, other)),
            }
        ),
        doc="Return the remainder with the sign of `other` (Python's modulus).",
        supports="f",
        samples=_by_number(0.5, 1.4, 2.5) if _form == "scalar" else binary(0.5, 1.4, low2=2.0, high2=3.0, scalar=None),
    )
    operator(
        f"fmod.{_form}(Tensor self, Tensor other)",
        "fmod",
        promote="numeric",
        inplace=True,
        out=True,
        node=f"FmodBackward{_nr}",
        derivatives={"self": lambda g: g}
        | (
            {}
            if _form == "scalar"
            else {
                "other": lambda g, self, other, F: -g * F.trunc(F.true_divide(self, other)),
            }
        ),
        doc="Return the remainder with the sign of `self` (C's fmod).",
        supports="f",
        samples=_by_number(0.5, 1.4, 2.5) if _form == "scalar" else binary(0.5, 1.4, low2=2.0, high2=3.0, scalar=None),
    )


@public(method=True, arrays=lambda xp, self, other: xp.remainder(self, other))
def remainder(self: Any, other: Any, *, out: Any = None) -> Any:
    """Return the remainder with the sign of `other` (Python's modulus)."""
    return _function(f"remainder.{_form_for(other)}")(self, other, out=out)


@public(method=True)
def remainder_(self: Any, other: Any) -> Any:
    """In-place form of :func:`remainder`."""
    return _function(f"remainder.{_form_for(other)}").operator.inplace_function(self, other)


@public(method=True, arrays=lambda xp, self, other: xp.fmod(self, other))
def fmod(self: Any, other: Any, *, out: Any = None) -> Any:
    """Return the remainder with the sign of `self` (C's fmod)."""
    return _function(f"fmod.{_form_for(other)}")(self, other, out=out)


@public(method=True)
def fmod_(self: Any, other: Any) -> Any:
    """In-place form of :func:`fmod`."""
    return _function(f"fmod.{_form_for(other)}").operator.inplace_function(self, other)


@public(method=True)
def div(self: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Divide elementwise.

    Parameters
    ----------
    self, other : Tensor or number
    rounding_mode : {None, "trunc", "floor"}

    Raises
    ------
    RuntimeError
        If `rounding_mode` is something else.
    """
    if out is not None:
        return general.into(out, "div", [self, other], lambda: div(self, other, rounding_mode=rounding_mode))
    if rounding_mode is None:
        return _true_divide(self, other)
    _check_rounding(rounding_mode)
    return _rounded_divide(self, other, rounding_mode=rounding_mode)


@public(method=True)
def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """In-place form of :func:`div`."""
    if rounding_mode is None:
        return _true_divide.operator.inplace_function(self, other)
    _check_rounding(rounding_mode)
    return _rounded_divide.operator.inplace_function(self, other, rounding_mode=rounding_mode)


def _check_rounding(mode: Any) -> None:
    if mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")


_true_divide = _function("div.true")
_rounded_divide = _function("div.mode")
for _name in ("true_divide", "divide"):
    PUBLIC[_name] = METHODS[_name] = _true_divide if _name == "true_divide" else div

# --- powers, exponentials, logarithms ---------------------------------------------------------------------------------


def _pow_self(g: Any, self: Any, exponent: Any, F: Any) -> Any:
    if isinstance(exponent, (int, float)):
        if exponent == 0:
            return F.zeros_like(g)
        return g * (exponent * conj(self ** (exponent - 1)))
    return g * conj(exponent * self ** (exponent - 1))


def _pow_self_tensor(g: Any, self: Any, exponent: Any, F: Any) -> Any:
    if isinstance(exponent, (int, float)):
        return _pow_self(g, self, exponent, F)
    zero = exponent == 0
    safe = F.where(zero, F.ones_like(exponent), exponent)
    return F.where(zero, F.zeros_like(g), g * conj(exponent * self ** (safe - 1)))


def _pow_exponent(g: Any, self: Any, exponent: Any, result: Any, F: Any) -> Any:
    # d/dy x^y = x^y log x, and 0 where x is 0 and y >= 0 (PyTorch's convention).
    zero = self == 0
    safe = F.where(zero, F.ones_like(self), self)
    return F.where(zero, F.zeros_like(result), g * conj(result * F.log(safe)))


operator(
    "pow.scalar(Tensor self, Scalar exponent)",
    lambda xp, self, exponent: self**exponent,
    inplace=True,
    node="PowBackward0",
    derivatives={"self": _pow_self},
    doc="Raise to a number.",
    samples=lambda make: [((make(2, 3, low=0.5, high=2.0), e), {}) for e in (2, 3.0, 0.5, 1, 0)],
)
operator(
    "pow.tensor(Tensor self, Tensor exponent)",
    "power",
    promote="numeric",
    inplace=True,
    out=True,
    node="PowBackward1",
    derivatives={"self": _pow_self_tensor, "exponent": _pow_exponent},
    doc="Raise elementwise.",
    samples=binary(0.5, 2.0, scalar=None),
)


def _pow_choice(self: Any, exponent: Any) -> tuple[Any, bool]:
    number = isinstance(exponent, (int, float, complex)) and not isinstance(exponent, bool)
    integers = number and getattr(self, "_array", self).dtype.kind in "iub"
    return ("pow.tensor" if not number or integers else "pow.scalar"), bool(integers)


def _is_bool(value: Any) -> bool:
    return hasattr(value, "_array") and value._array.dtype.kind == "b"


@public(method=True)
def pow(self: Any, exponent: Any, *, out: Any = None) -> Any:
    """Return ``self ** exponent``, elementwise.

    Parameters
    ----------
    self : Tensor or number
    exponent : Tensor or number

    Raises
    ------
    RuntimeError
        For an integer tensor and a negative integer exponent.
    """
    from .general import as_tensor_like

    if isinstance(self, (int, float, complex)):
        self = as_tensor_like(self, exponent)
    if self._array.dtype.kind == "b" and (isinstance(exponent, bool) or _is_bool(exponent)):
        # NumPy makes int8 of it.
        power = exponent if hasattr(exponent, "_array") else as_tensor_like(exponent, self)
        return METHODS["logical_or"](self, METHODS["logical_not"](power))
    name, integers = _pow_choice(self, exponent)
    if integers and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.\nConvert the tensor with .float().")
    function = _function(name)
    return function(self, exponent) if out is None else _function("pow.tensor")(self, exponent, out=out)


@public(method=True)
def pow_(self: Any, exponent: Any) -> Any:
    """In-place form of :func:`pow`."""
    return _function(_pow_choice(self, exponent)[0]).operator.inplace_function(self, exponent)


operator(
    "exp(Tensor self)",
    "exp",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result)},
    doc="Return e raised to `self`.",
    samples=unary(),
)
operator(
    "exp2(Tensor self)",
    "exp2",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result) * math.log(2)},
    doc="Return 2 raised to `self`.",
    samples=unary(),
    supports="f",
)
operator(
    "expm1(Tensor self)",
    "expm1",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result + 1)},
    doc="Return ``exp(self) - 1``, exact near 0.",
    samples=unary(),
)
operator(
    "log(Tensor self)",
    "log",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self: g / conj(self)},
    doc="Return the natural logarithm.",
    samples=unary(0.2, 3.0),
)
operator(
    "log2(Tensor self)",
    "log2",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self: g / conj(self * math.log(2))},
    doc="Return the logarithm to base 2.",
    samples=unary(0.2, 3.0),
)
operator(
    "log10(Tensor self)",
    "log10",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self: g / conj(self * math.log(10))},
    doc="Return the logarithm to base 10.",
    samples=unary(0.2, 3.0),
)
operator(
    "log1p(Tensor self)",
    "log1p",
    promote="float",
    inplace=True,
    out=True,
    node="Log1PBackward0",
    derivatives={"self": lambda g, self: g / conj(self + 1)},
    doc="Return ``log(1 + self)``, exact near 0.",
    samples=unary(-0.5, 3.0),
)
operator(
    "sqrt(Tensor self)",
    "sqrt",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g / conj(result * 2)},
    doc="Return the square root.",
    samples=unary(0.2, 3.0),
)
operator(
    "rsqrt(Tensor self)",
    lambda xp, self: 1 / xp.sqrt(self),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result**3) * -0.5},
    doc="Return ``1 / sqrt(self)``.",
    samples=unary(0.3, 3.0),
)
operator(
    "square(Tensor self)",
    lambda xp, self: self * self,
    inplace=True,
    out=True,
    node="PowBackward0",
    derivatives={"self": lambda g, self: g * conj(self) * 2},
    doc="Return ``self * self``.",
    samples=unary(),
)
operator(
    "reciprocal(Tensor self)",
    lambda xp, self: 1 / self,
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: -g * conj(result * result)},
    doc="Return ``1 / self``.",
    samples=unary(0.5, 3.0),
)

# --- signs and rounding -----------------------------------------------------------------------------------------------

operator(
    "neg(Tensor self)",
    "negative",
    inplace=True,
    out=True,
    alias=("negative",),
    derivatives={"self": lambda g: -g},
    doc="Return ``-self``.",
    samples=unary(),
)
operator(
    "sign(Tensor self)",
    "sign",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Return -1, 0 or 1.",
    samples=unary(0.2, 2.0),
    supports="f",
)
operator(
    "floor(Tensor self)",
    "floor",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round down.",
    samples=unary(0.1, 0.9),
    supports="f",
)
operator(
    "ceil(Tensor self)",
    "ceil",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round up.",
    samples=unary(0.1, 0.9),
    supports="f",
)
operator(
    "trunc(Tensor self)",
    "trunc",
    inplace=True,
    out=True,
    alias=("fix",),
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round towards zero.",
    samples=unary(0.1, 0.9),
    supports="f",
)
operator(
    "round(Tensor self)",
    "rint",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round to the nearest integer, halves to even.",
    samples=unary(0.1, 0.4),
    supports="f",
)


def _sgn(xp: Any, self: Any) -> Any:
    if self.dtype.kind != "c":
        return xp.sign(self)
    size = xp.absolute(self)
    return self / xp.where(size == 0, xp.ones_like(size), size)


def _sgn_backward(g: Any, self: Any, result: Any, F: Any) -> Any:
    if conj(self) is self:
        return F.zeros_like(g)
    # What is left of g when its part along z is taken away, over |z|.
    size = F.abs(self)
    zero = size == 0
    across = g - result * F.real(conj(result) * g)
    return F.where(zero, F.zeros_like(g), across / F.where(zero, F.ones_like(size), size))


def _abs_backward(g: Any, self: Any, F: Any) -> Any:
    return g * F.sgn(self)


operator(
    "sgn(Tensor self)",
    _sgn,
    inplace=True,
    out=True,
    derivatives={"self": _sgn_backward},
    doc="Return the sign; for complex numbers ``self / |self|``.",
    samples=unary(0.2, 2.0),
)
operator(
    "abs(Tensor self)",
    "absolute",
    inplace=True,
    out=True,
    alias=("absolute",),
    derivatives={"self": _abs_backward},
    doc="Return the absolute value.",
    samples=unary(0.2, 2.0),
)

# --- trigonometric and hyperbolic -------------------------------------------------------------------------------------

operator(
    "sin(Tensor self)",
    "sin",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * conj(F.cos(self))},
    doc="Return the sine.",
    samples=unary(),
)
operator(
    "cos(Tensor self)",
    "cos",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: -g * conj(F.sin(self))},
    doc="Return the cosine.",
    samples=unary(),
)
operator(
    "tan(Tensor self)",
    "tan",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result * result + 1)},
    doc="Return the tangent.",
    samples=unary(-1.0, 1.0),
)
operator(
    "asin(Tensor self)",
    "arcsin",
    promote="float",
    inplace=True,
    out=True,
    alias=("arcsin",),
    derivatives={"self": lambda g, self, F: g * conj(F.rsqrt(1 - self * self))},
    doc="Return the arc sine.",
    samples=unary(-0.8, 0.8),
)
operator(
    "acos(Tensor self)",
    "arccos",
    promote="float",
    inplace=True,
    out=True,
    alias=("arccos",),
    derivatives={"self": lambda g, self, F: -g * conj(F.rsqrt(1 - self * self))},
    doc="Return the arc cosine.",
    samples=unary(-0.8, 0.8),
)
operator(
    "atan(Tensor self)",
    "arctan",
    promote="float",
    inplace=True,
    out=True,
    alias=("arctan",),
    derivatives={"self": lambda g, self: g / conj(self * self + 1)},
    doc="Return the arc tangent.",
    samples=unary(-0.8, 0.8),
)
operator(
    "atan2(Tensor self, Tensor other)",
    "arctan2",
    promote="float",
    inplace=True,
    out=True,
    alias=("arctan2",),
    derivatives={
        "self": lambda g, self, other: g * other / (self * self + other * other),
        "other": lambda g, self, other: -g * self / (self * self + other * other),
    },
    doc="Return the angle of the point (other, self).",
    samples=binary(0.3, 2.0, scalar=None),
    supports="f",
)
operator(
    "sinh(Tensor self)",
    "sinh",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * conj(F.cosh(self))},
    doc="Return the hyperbolic sine.",
    samples=unary(),
)
operator(
    "cosh(Tensor self)",
    "cosh",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * conj(F.sinh(self))},
    doc="Return the hyperbolic cosine.",
    samples=unary(),
)
operator(
    "tanh(Tensor self)",
    "tanh",
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(1 - result * result)},
    doc="Return the hyperbolic tangent.",
    samples=unary(),
)


# --- two-argument choices ---------------------------------------------------------------------------------------------


def _share(g: Any, chosen: Any, tied: Any, F: Any) -> Any:
    # Where both arguments are equal the gradient is halved, as PyTorch does.
    return F.where(tied, g / 2, F.where(chosen, g, F.zeros_like(g)))


operator(
    "maximum(Tensor self, Tensor other)",
    "maximum",
    promote="numeric",
    out=True,
    derivatives={
        "self": lambda g, self, other, F: _share(g, self > other, self == other, F),
        "other": lambda g, self, other, F: _share(g, self < other, self == other, F),
    },
    doc="Return the larger of two elements; NaN wins.",
    samples=binary(scalar=None),
    supports="f",
)
operator(
    "minimum(Tensor self, Tensor other)",
    "minimum",
    promote="numeric",
    out=True,
    derivatives={
        "self": lambda g, self, other, F: _share(g, self < other, self == other, F),
        "other": lambda g, self, other, F: _share(g, self > other, self == other, F),
    },
    doc="Return the smaller of two elements; NaN wins.",
    samples=binary(scalar=None),
    supports="f",
)

# --- comparisons and logic --------------------------------------------------------------------------------------------

for _name, _ufunc, _alias, _doc in (
    ("eq", "equal", (), "equal"),
    ("ne", "not_equal", ("not_equal",), "different"),
    ("lt", "less", ("less",), "less"),
    ("le", "less_equal", ("less_equal",), "less or equal"),
    ("gt", "greater", ("greater",), "greater"),
    ("ge", "greater_equal", ("greater_equal",), "greater or equal"),
):
    operator(
        f"{_name}(Tensor self, Tensor other)",
        _ufunc,
        promote="numeric",
        out=True,
        alias=_alias,
        samples=binary(),
        doc=f"Say elementwise whether `self` is {_doc} (compared with `other`).",
    )
for _name in ("logical_and", "logical_or", "logical_xor"):
    operator(
        f"{_name}(Tensor self, Tensor other)",
        _name,
        promote="numeric",
        out=True,
        samples=binary(scalar=None),
        doc=f"Elementwise {_name.replace('_', ' ')}.",
    )
operator("logical_not(Tensor self)", "logical_not", out=True, samples=unary(), doc="Elementwise logical not.")
for _name, _doc in (("and", "and"), ("or", "or"), ("xor", "exclusive or")):
    operator(
        f"bitwise_{_name}(Tensor self, Tensor other)",
        f"bitwise_{_name}",
        promote="numeric",
        inplace=True,
        out=True,
        samples=integers(2),
        doc=f"Elementwise bitwise {_doc}.",
    )
operator(
    "bitwise_not(Tensor self)", "invert", inplace=True, out=True, samples=integers(1), doc="Elementwise bitwise not."
)
for _name in ("isnan", "isinf", "isfinite"):
    operator(f"{_name}(Tensor self)", _name, samples=unary(), doc=f"Elementwise {_name}.")

for _dunder, _target in {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__rsub__": "rsub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "true_divide", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__ifloordiv__": "floor_divide_", "__mod__": "remainder",
    "__imod__": "remainder_", "__pow__": "pow", "__ipow__": "pow_", "__neg__": "neg", "__abs__": "abs",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__invert__": "bitwise_not",
    "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}.items():  # fmt: skip
    _op = getattr(METHODS[_target], "operator", None)
    METHODS[_dunder] = operator_form(_op) if _op is not None and _op.function is METHODS[_target] else METHODS[_target]


@public(method="__rtruediv__", function_too=False)
def _rtruediv(self: Any, other: Any) -> Any:
    return METHODS["reciprocal"](self) * other


@public(method="__rpow__", function_too=False)
def _rpow(self: Any, other: Any) -> Any:
    return pow(other, self)


@public(method="__rfloordiv__", function_too=False)
def _rfloordiv(self: Any, other: Any) -> Any:
    from .general import as_tensor_like

    return METHODS["floor_divide"](as_tensor_like(other, self), self)


@public(method="__rmod__", function_too=False)
def _rmod(self: Any, other: Any) -> Any:
    from .general import as_tensor_like

    return METHODS["remainder"](as_tensor_like(other, self), self)


@public(method="__pos__", function_too=False)
def _pos(self: Any) -> Any:
    return self


del _form, _node, _nr, _name, _ufunc, _alias, _doc, _dunder, _op, _target
