"""Elementwise operators of two tensors: the choice between them, and functions of two variables."""

from __future__ import annotations

import math

import numpy

from ...kernels.elementwise import whole
from ...kernels.forms import pointwise
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Operand
from ..declaration.extremes import elementwise, integral
from ..declaration.registry import OPERATORS, Operator, operator, public
from ..declaration.samples import binary, by_number
from ..execution.array_errors import checked_ufunc, real_ufunc, refuse_kinds
from ..execution.bare_functions import conj, in_dtype_of
from .unary import compiled_where_faster

# --- the larger and the smaller ---------------------------------------------------------------------------------------


def _share(g: Gradient, lost: Array, tied: Array, F: Namespace) -> Gradient:
    # As in PyTorch, two equal arguments get half of the gradient each, and two of which one is NaN all of it.
    return F.where(tied, g / 2, F.where(lost, F.zeros_like(g), g))


operator(
    "maximum(Tensor self, Tensor other)",
    real_ufunc("maximum", "maximum not implemented for complex tensors ({})."),
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: _share(g, self < other, self == other, F),
        "other": lambda g, self, other, F: _share(g, self > other, self == other, F),
    },
    doc="Return the larger of two elements; NaN wins.",
    samples=binary(scalar=None),
    reference="numpy.maximum",
    supports="f",
)
operator(
    "minimum(Tensor self, Tensor other)",
    real_ufunc("minimum", "minimum not implemented for complex tensors ({})."),
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: _share(g, self > other, self == other, F),
        "other": lambda g, self, other, F: _share(g, self < other, self == other, F),
    },
    doc="Return the smaller of two elements; NaN wins.",
    samples=binary(scalar=None),
    reference="numpy.minimum",
    supports="f",
)
operator(
    "fmax(Tensor self, Tensor other)",
    real_ufunc("fmax", "fmax not implemented for complex tensors ({})."),
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: F.where((self >= other) | (other != other), g, F.zeros_like(g)),
        "other": lambda g, self, other, F: F.where((self >= other) | (other != other), F.zeros_like(g), g),
    },
    doc="Return the larger of two elements; a number wins over NaN.",
    samples=binary(scalar=None),
    reference="numpy.fmax",
    supports="f",
)
operator(
    "fmin(Tensor self, Tensor other)",
    real_ufunc("fmin", "fmin not implemented for complex tensors ({})."),
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: F.where((self <= other) | (other != other), g, F.zeros_like(g)),
        "other": lambda g, self, other, F: F.where((self <= other) | (other != other), F.zeros_like(g), g),
    },
    doc="Return the smaller of two elements; a number wins over NaN.",
    samples=binary(scalar=None),
    reference="numpy.fmin",
    supports="f",
)
# --- functions of two variables ---------------------------------------------------------------------------------------


def _over_square(g: Gradient, x: Array, self: Array, other: Array, F: Namespace) -> Gradient:
    """Return ``g * (x / (self**2 + other**2))``, and 0 at the origin, which has no angle."""
    x, self, other = in_dtype_of(x, g), in_dtype_of(self, g), in_dtype_of(other, g)
    square = self * self + other * other
    origin = square == 0
    return g * F.where(origin, F.zeros_like(square), x / F.where(origin, F.ones_like(square), square))


operator(
    "atan2(Tensor self, Tensor other)",
    compiled_where_faster("arctan2", "atan2s"),
    promote="float",
    numbers=None,
    inplace=True,
    out=True,
    alias=("arctan2",),
    derivatives={
        "self": lambda g, self, other, F: _over_square(g, other, self, other, F),
        "other": lambda g, self, other, F: _over_square(-g, self, self, other, F),
    },
    doc="Return the angle of the point (other, self).",
    samples=binary(0.3, 2.0, scalar=None),
    reference="numpy.arctan2",
    supports="f",
)


@whole
def _hypot(xp: Namespace, self: Array, other: Array) -> Array:
    refuse_kinds("hypot_cpu", self, "biu")
    if other.size < _FEW and xp is numpy:
        return numpy.hypot(self, other)
    return pointwise("calculus_loops.hypots", xp.hypot, self, other, writes=True)


operator(
    "hypot(Tensor self, Tensor other)",
    _hypot,
    promote="numeric",
    numbers=None,
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, self, result: g * (self / result),
        "other": lambda g, other, result: g * (other / result),
    },
    doc="Return ``sqrt(self**2 + other**2)`` without overflow.",
    samples=binary(0.3, 2.0, scalar=None),
    reference="numpy.hypot",
    supports="f",
)


_FEW = 1 << 10  # elements


@whole
def log_add_exp(xp: Namespace, self: Array, other: Array) -> Array:
    """Return ``log(exp(self) + exp(other))`` without overflow.

    Of complex numbers it is the one with the larger real part, plus the logarithm of 1 and something: as in PyTorch the
    imaginary part is not brought back into (-π, π].
    """
    refuse_kinds("logaddexp_cpu", self, "biu")
    if self.dtype.kind != "c":
        if xp is not numpy or max(self.size, other.size) < _FEW or not self.dtype.char == other.dtype.char in "fd":
            return xp.logaddexp(self, other)
        return pointwise("calculus_loops.logaddexps", _log_add_exp_of_reals, self, other)
    swapped = (self.real < other.real) | (other != other)
    low, high = xp.where(swapped, self, other), xp.where(swapped, other, self)
    alike = xp.isinf(high.real) & (low.real == high.real)
    ratio = xp.exp(xp.where(alike, xp.zeros_like(low), low - high))
    a, b = ratio.real, ratio.imag
    one_more = 0.5 * xp.log1p(a * (2 + a) + b * b) + 1j * xp.arctan2(b, 1 + a)
    infinite = xp.where(high.real < 0, low, xp.log(xp.exp(low) + xp.exp(high)))
    return xp.where(alike, infinite, high + one_more).astype(self.dtype, copy=False)


def _log_add_exp_of_reals(x: Array, y: Array) -> Array:
    """Return the same of two arrays in fewer calls of the C library than NumPy's own."""
    high = numpy.maximum(x, y)
    apart = numpy.fmin(numpy.minimum(x, y) - high, 0)  # two infinities of one sign are 0 apart, not NaN
    return high + numpy.log1p(numpy.exp(apart))


operator(
    "logaddexp(Tensor self, Tensor other)",
    log_add_exp,
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: g / conj(F.exp(other - self) + 1),
        "other": lambda g, self, other, F: g / conj(F.exp(self - other) + 1),
    },
    doc="Return ``log(exp(self) + exp(other))`` without overflow.",
    samples=binary(scalar=None),
    reference=lambda self, other: (
        numpy.log(numpy.exp(self) + numpy.exp(other)) if self.dtype.kind == "c" else numpy.logaddexp(self, other)
    ),
)
operator(
    "logaddexp2(Tensor self, Tensor other)",
    checked_ufunc("logaddexp2", "logaddexp2_cpu", "biu"),
    promote="numeric",
    numbers=None,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: g / (F.exp2(other - self) + 1),
        "other": lambda g, self, other, F: g / (F.exp2(self - other) + 1),
    },
    doc="Return ``log2(2**self + 2**other)`` without overflow.",
    samples=binary(scalar=None),
    reference="numpy.logaddexp2",
    supports="f",
)


def _copysign_self(g: Gradient, self: Array, result: Array, F: Namespace) -> Gradient:
    zero = self == 0
    return g * F.where(zero, F.zeros_like(g), result / F.where(zero, F.ones_like(result), self))


for _form, _node in (("tensor", "CopysignBackward0"), ("number", "CopysignBackward1")):
    operator(
        f"copysign.{_form}(Tensor self, Tensor other)",
        "copysign",
        promote="float",
        inplace=True,
        out=True,
        node=_node,
        derivatives={"self": _copysign_self} | ({"other": lambda g, F: F.zeros_like(g)} if _form == "tensor" else {}),
        doc="Return the magnitude of `self` with the sign of `other`.",
        samples=binary(0.2, 2.0, low2=-2.0, high2=-0.5, scalar=None)
        if _form == "tensor"
        else by_number(0.2, 2.0, -1.0),
        reference="numpy.copysign",
        extremes=elementwise(2) if _form == "tensor" else elementwise(1, -1.0),
        supports="f",
    )


@public
def copysign(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the magnitude of `self` with the sign of `other`, a tensor or a number.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.copysign(gs.tensor([1.0, 2.0]), gs.tensor([-1.0, 1.0]))
    tensor([-1.,  2.])
    """
    return _form_for("copysign", other).function(self, other, out=out)


@public
def copysign_(self: Tensor, other: Operand) -> Tensor:
    """In-place form of :func:`copysign`."""
    return _form_for("copysign", other).inplace_function(self, other)  # type: ignore[misc]


def _form_for(name: str, other: Operand) -> Operator:
    return OPERATORS[f"{name}.{'tensor' if hasattr(other, '_array') else 'number'}"]


def _xlogy(xp: Namespace, self: Array, other: Array) -> Array:
    refuse_kinds("xlogy_cpu", self, "c")
    if not hasattr(other, "dtype"):
        other = xp.asarray(other, dtype=self.dtype)
    product = self * xp.log(other)
    return xp.where((self == 0) & (other == other), 0, product).astype(product.dtype, copy=False)


def _xlogy_self(g: Gradient, self: Array, other: Array, F: Namespace) -> Gradient:
    return F.where((self == 0) & (other <= 0), F.zeros_like(g), F.xlogy(g, in_dtype_of(other, g)))


for _form, _node in (("tensor", "XlogyBackward0"), ("number", "XlogyBackward2")):
    operator(
        f"xlogy.{_form}(Tensor self, {'Tensor' if _form == 'tensor' else 'Scalar'} other)",
        _xlogy,
        promote="float",
        inplace=True,
        out=True,
        node=_node,
        derivatives={"self": _xlogy_self}
        | ({"other": lambda g, self, other: g * self / other} if _form == "tensor" else {}),
        doc="Return ``self * log(other)``, and 0 where `self` is 0.",
        samples=binary(0.2, 2.0, low2=0.3, high2=3.0, scalar=None) if _form == "tensor" else by_number(0.2, 2.0, 2.5),
        reference="scipy.special.xlogy",
        extremes=elementwise(2) if _form == "tensor" else elementwise(1, 2.5),
        supports="f",
    )
operator(
    "xlogy.base(Scalar self, Tensor other)",
    lambda xp, self, other: _xlogy(xp, xp.asarray(self, dtype=other.dtype), other),
    promote="float",
    node="XlogyBackward1",
    method=False,
    out=True,
    derivatives={"other": lambda g, self, other: g * self / other},
    doc="Return a number times the logarithm of a tensor.",
    samples=lambda make: [((2.5, make(*shape, low=0.3, high=3.0)), {}) for shape in ((2, 3), (), (0, 2))],
    reference="scipy.special.xlogy",
    extremes=lambda make: [((2.0, *args), {}) for args, _ in elementwise()(make)],
    supports="f",
)


@public(alias=("special.xlogy",), arrays=_xlogy)
def xlogy(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return ``self * log(other)``, and 0 where `self` is 0; one of them may be a number.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.xlogy(gs.tensor([0.0, 2.0]), gs.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    op = _form_for("xlogy", other) if hasattr(self, "_array") else OPERATORS["xlogy.base"]
    return op.function(self, other, out=out)


@public
def xlogy_(self: Tensor, other: Operand) -> Tensor:
    """In-place form of :func:`xlogy`."""
    return _form_for("xlogy", other).inplace_function(self, other)  # type: ignore[misc]


operator(
    "ldexp(Tensor self, Tensor other)",
    lambda xp, self, other: self * 2**other,
    promote="float",
    numbers=None,
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, other: g * conj(2 ** in_dtype_of(other, g)),
        "other": lambda g, result: g * conj(result * math.log(2)),
    },
    doc="Return ``self * 2 ** other``.",
    samples=binary(scalar=None),
    reference=lambda self, other: self * numpy.exp2(other),
)


def _nextafter(xp: Namespace, self: Array, other: Array) -> Array:
    refuse_kinds("nextafter_cpu", self, "biu")
    return xp.nextafter(self, other)


operator(
    "nextafter(Tensor self, Tensor other)",
    _nextafter,
    promote="numeric",
    numbers=None,
    inplace=True,
    out=True,
    derivatives={
        "self": lambda g, self, other, F: F.where(self == other, F.zeros_like(g), g),
        "other": lambda g, F: F.zeros_like(g),
    },
    doc="Return the floating-point number after `self` in the direction of `other`.",
    samples=binary(scalar=None),
    reference="numpy.nextafter",
    extremes=elementwise(2),
    supports="f",
)

# --- integers ---------------------------------------------------------------------------------------------------------

for _name, _doc in (("gcd", "greatest common divisor"), ("lcm", "least common multiple")):
    operator(
        f"{_name}(Tensor self, Tensor other)",
        _name,
        promote="numeric",
        numbers=None,
        inplace=True,
        out=True,
        doc=f"Return the {_doc} of integers.",
        samples=lambda make: [
            ((make(*a, low=-9, high=9, dtype="int64"), make(*b, low=1, high=9, dtype="int64")), {})
            for a, b in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), ()), ((0, 2), (2,)))
        ],
        reference=f"numpy.{_name}",
        extremes=integral(2, kinds=("int64", "int8", "uint8")),
    )

del _name, _doc, _form, _node
