"""Elementwise operators: a table of calculus.

Derivatives follow Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), where no other source is named;
for complex arguments they are the conjugate Wirtinger derivatives PyTorch uses.
"""

from __future__ import annotations

import math

import numpy
from numpy.lib.introspect import opt_func_info

from ...kernels import forms
from ...kernels.elementwise import whole
from ...kernels.forms import pointwise
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Gradient, Namespace
from ..declaration.extremes import elementwise
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import unary
from ..execution.array_errors import checked_ufunc, refuse_kinds
from ..execution.bare_functions import conj, one_minus


def compiled_where_faster(ufunc: str, loop: str) -> str | Formula:
    """Return the forward of a ufunc: of large arrays of float32 a compiled loop, but for NumPy's with AVX-512.

    With AVX2 NumPy takes two to forty times as long as the loop.
    """
    if _has_avx512(ufunc):
        return ufunc
    known, name = getattr(numpy, ufunc), f"calculus_loops.{loop}"

    @whole
    def of_one(xp: Namespace, self: Array) -> Array:
        if xp is numpy and (self.size < forms.LEAST or self.dtype.char != "f"):
            return known(self)
        return pointwise(name, getattr(xp, ufunc), self, writes=True)

    @whole
    def of_two(xp: Namespace, self: Array, other: Array) -> Array:
        if xp is numpy and (other.size < forms.LEAST or other.dtype.char != "f"):
            return known(self, other)
        return pointwise(name, getattr(xp, ufunc), self, other, writes=True)

    return of_one if known.nin == 1 else of_two


def _has_avx512(ufunc: str) -> bool:
    """Whether NumPy computes a ufunc of float32 with AVX-512 on this processor, as far as it tells."""
    found = opt_func_info(func_name=f"^{ufunc}$", signature="float32").get(ufunc, {})
    return any(name in kind["current"] for kind in found.values() for name in ("AVX512", "X86_V4"))


# --- exponentials and logarithms --------------------------------------------------------------------------------------

operator(
    "exp(Tensor self)",
    compiled_where_faster("exp", "exps"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result)},
    doc="Return e raised to `self`.",
    samples=unary(),
    reference="mpmath.exp",
)
operator(
    "exp2(Tensor self)",
    compiled_where_faster("exp2", "exp2s"),
    promote="float",
    inplace=True,
    out=True,
    alias=("special.exp2",),
    derivatives={"self": lambda g, result: g * conj(result) * math.log(2)},
    doc="Return 2 raised to `self`.",
    samples=unary(),
    reference="scipy.special.exp2",
    supports="f",
)
operator(
    "expm1(Tensor self)",
    compiled_where_faster("expm1", "expm1s"),
    promote="float",
    inplace=True,
    out=True,
    alias=("special.expm1",),
    derivatives={"self": lambda g, result: g * conj(result + 1)},
    doc="Return ``exp(self) - 1``, exact near 0.",
    samples=unary(),
    reference="mpmath.expm1",
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
    reference="mpmath.log",
)
operator(
    "log2(Tensor self)",
    compiled_where_faster("log2", "log2s"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self: g / conj(self * math.log(2))},
    doc="Return the logarithm to base 2.",
    samples=unary(0.2, 3.0),
    reference="numpy.log2",
)
operator(
    "log10(Tensor self)",
    compiled_where_faster("log10", "log10s"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self: g / conj(self * math.log(10))},
    doc="Return the logarithm to base 10.",
    samples=unary(0.2, 3.0),
    reference="mpmath.log10",
)
operator(
    "log1p(Tensor self)",
    compiled_where_faster("log1p", "log1ps"),
    promote="float",
    inplace=True,
    out=True,
    alias=("special.log1p",),
    node="Log1PBackward0",
    derivatives={"self": lambda g, self: g / conj(self + 1)},
    doc="Return ``log(1 + self)``, exact near 0.",
    samples=unary(-0.5, 3.0),
    reference="mpmath.log1p",
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
    reference="mpmath.sqrt",
)
operator(
    "rsqrt(Tensor self)",
    lambda xp, self: 1 / xp.sqrt(self),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result, F: g * conj(getattr(F, "pow.scalar")(result, 3)) * -0.5},
    doc="Return ``1 / sqrt(self)``.",
    samples=unary(0.3, 3.0),
    reference=lambda self: 1 / numpy.sqrt(self),
)
operator(
    "square(Tensor self)",
    lambda xp, self: self * self if self.dtype.kind != "b" else self.astype("int64"),
    inplace=True,
    out="castable",
    node="PowBackward0",
    derivatives={"self": lambda g, self: g * conj(self * 2)},
    doc="Return ``self * self``.",
    samples=unary(),
    reference=lambda self: self**2 if self.dtype.kind != "b" else self.astype(int),
    extremes=elementwise(),
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
    reference=lambda self: 1 / self,
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
    reference="numpy.negative",
    extremes=elementwise(),
)


def _signs(xp: Namespace, self: Array) -> Array:
    """Return -1, 0 or 1, as the array's dtype; 0 for NaN, where NumPy says NaN."""
    if self.dtype.kind == "f":
        return xp.subtract(self > 0, self < 0, dtype=self.dtype)
    return self.copy() if self.dtype.kind == "b" else xp.sign(self)


def _sign(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind == "c":
        raise NotImplementedError("sign is not intended to support complex numbers. Please use sgn instead.")
    return _signs(xp, self)


operator(
    "sign(Tensor self)",
    _sign,
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Return -1, 0 or 1.",
    samples=unary(0.2, 2.0),
    reference="numpy.sign",
    extremes=elementwise(),
    differs=((numpy.isnan, "the sign of NaN is 0 in PyTorch"),),
    supports="f",
)
operator(
    "floor(Tensor self)",
    checked_ufunc("floor", "floor_vml_cpu", "b"),
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round down.",
    samples=unary(0.1, 0.9),
    reference="numpy.floor",
    extremes=elementwise(),
    supports="f",
)
operator(
    "ceil(Tensor self)",
    checked_ufunc("ceil", "ceil_vml_cpu", "b"),
    inplace=True,
    out=True,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round up.",
    samples=unary(0.1, 0.9),
    reference="numpy.ceil",
    extremes=elementwise(),
    supports="f",
)
operator(
    "trunc(Tensor self)",
    checked_ufunc("trunc", "trunc_vml_cpu", "b"),
    inplace=True,
    out=True,
    alias=("fix",),
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round towards zero.",
    samples=unary(0.1, 0.9),
    reference="numpy.trunc",
    extremes=elementwise(),
    supports="f",
)


def _round(xp: Namespace, self: Array) -> Array:
    refuse_kinds("round_vml_cpu", self, "bc")
    return xp.rint(self) if self.dtype.kind == "f" else self.copy()


def _round_decimals(xp: Namespace, self: Array, decimals: int) -> Array:
    refuse_kinds("round_cpu", self, "biuc")
    scale = 10.0 ** abs(decimals)
    return xp.rint(self * scale) / scale if decimals >= 0 else xp.rint(self / scale) * scale


operator(
    "round.nearest(Tensor self)",
    _round,
    inplace=True,
    out=True,
    method=False,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round to the nearest integer, halves to even.",
    samples=unary(0.1, 0.4),
    reference="numpy.round",
    extremes=elementwise(),
    supports="f",
)
operator(
    "round.decimals(Tensor self, *, int decimals)",
    _round_decimals,
    inplace=True,
    out=True,
    method=False,
    node="RoundBackward1",
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Round to so many decimals, halves to even.",
    samples=lambda make: [((make(*shape, low=0.11, high=0.14),), {"decimals": 1}) for shape in ((2, 3), (), (0, 2))],
    reference=lambda self, decimals: numpy.round(self, decimals),
    extremes=elementwise(decimals=1),
    supports="f",
)


@public(alias=("special.round",))
def round(self: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Round to the nearest integer, or to so many decimals, halves to even.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.round(gs.tensor([2.5, 0.126]), decimals=2)
    tensor([2.5000, 0.1300])
    """
    if decimals:
        return OPERATORS["round.decimals"].function(self, decimals=decimals, out=out)
    return OPERATORS["round.nearest"].function(self, out=out)


@public
def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
    """In-place form of :func:`round`."""
    if decimals:
        return OPERATORS["round.decimals"].inplace_function(self, decimals=decimals)  # type: ignore[misc]
    return OPERATORS["round.nearest"].inplace_function(self)  # type: ignore[misc]


def _frac(xp: Namespace, self: Array) -> Array:
    refuse_kinds("frac_cpu", self, "biu")
    return self - xp.trunc(self)


operator(
    "frac(Tensor self)",
    _frac,
    inplace=True,
    out=True,
    derivatives={"self": lambda g: g},
    doc="Return what is left of ``trunc(self)``.",
    samples=unary(0.1, 0.9),
    reference=lambda self: self - numpy.trunc(self),
    extremes=elementwise(),
    supports="f",
)


def _sgn(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind != "c":
        return _signs(xp, self)
    size = xp.absolute(self)
    return self / xp.where(size == 0, xp.ones_like(size), size)


def _sgn_backward(g: Gradient, self: Array, result: Array, F: Namespace) -> Gradient:
    if conj(self) is self:
        return F.zeros_like(g)
    # What is left of g when its part along z is taken away, over |z|.
    size = F.abs(self)
    zero = size == 0
    across = g - result * F.real(conj(result) * g)
    return F.where(zero, F.zeros_like(g), across / F.where(zero, F.ones_like(size), size))


def _abs_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    return g * F.sgn(self)


operator(
    "sgn(Tensor self)",
    _sgn,
    inplace=True,
    out=True,
    derivatives={"self": _sgn_backward},
    doc="Return the sign; for complex numbers ``self / |self|``.",
    samples=unary(0.2, 2.0),
    reference="numpy.sign",
    extremes=elementwise(),
    differs=((numpy.isnan, "the sign of NaN is 0 in PyTorch"),),
)
operator(
    "abs(Tensor self)",
    checked_ufunc("absolute", "abs_cpu", "b"),
    inplace=True,
    out=True,
    alias=("absolute",),
    derivatives={"self": _abs_backward},
    doc="Return the absolute value.",
    samples=unary(0.2, 2.0),
    reference="numpy.abs",
    extremes=elementwise(),
)


@public
def abs_(input: Tensor) -> Tensor:
    """Write the absolute values in place of the elements.

    Raises
    ------
    RuntimeError
        For a complex tensor: they are real.
    """
    if input._dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.\nUse abs(), whose result is real.")
    return OPERATORS["abs"].inplace_function(input)  # type: ignore[misc]


@public
def absolute_(input: Tensor) -> Tensor:
    """Another name of :func:`abs_`."""
    return abs_(input)


def _signbit(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.\nTake real or imag of the tensor.")
    return xp.signbit(self) if self.dtype.kind == "f" else self < 0


operator(
    "signbit(Tensor self)",
    _signbit,
    out=True,
    doc="Say elementwise whether the sign is negative, that of -0.0 too.",
    samples=unary(),
    reference="numpy.signbit",
    extremes=elementwise(),
)


def _frexp(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes\nConvert the tensor with .float().")
    return xp.frexp(self)


operator(
    "frexp(Tensor self)",
    _frexp,
    outputs=("mantissa", "exponent"),
    out=True,
    derivatives={"self": lambda g, exponent, F: g[0] / F.exp2(exponent * F.ones_like(g[0]))},
    doc="Return mantissas in [0.5, 1) and exponents: ``self = mantissa * 2 ** exponent``.",
    samples=unary(0.6, 0.9),
    reference="numpy.frexp",
    extremes=elementwise(),
    supports="f",
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
    reference="mpmath.sin",
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
    reference="mpmath.cos",
)
operator(
    "tan(Tensor self)",
    compiled_where_faster("tan", "tans"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, result: g * conj(result * result + 1)},
    doc="Return the tangent.",
    samples=unary(-1.0, 1.0),
    reference="mpmath.tan",
)
operator(
    "asin(Tensor self)",
    compiled_where_faster("arcsin", "asins"),
    promote="float",
    inplace=True,
    out=True,
    alias=("arcsin",),
    derivatives={"self": lambda g, self, F: g * conj(F.rsqrt(1 - self * self))},
    doc="Return the arc sine.",
    samples=unary(-0.8, 0.8),
    reference="mpmath.asin",
)
operator(
    "acos(Tensor self)",
    compiled_where_faster("arccos", "acoss"),
    promote="float",
    inplace=True,
    out=True,
    alias=("arccos",),
    derivatives={"self": lambda g, self, F: -g * conj(F.rsqrt(1 - self * self))},
    doc="Return the arc cosine.",
    samples=unary(-0.8, 0.8),
    reference="mpmath.acos",
)
operator(
    "atan(Tensor self)",
    compiled_where_faster("arctan", "atans"),
    promote="float",
    inplace=True,
    out=True,
    alias=("arctan",),
    derivatives={"self": lambda g, self: g / conj(self * self + 1)},
    doc="Return the arc tangent.",
    samples=unary(-0.8, 0.8),
    reference="mpmath.atan",
)


operator(
    "sinh(Tensor self)",
    compiled_where_faster("sinh", "sinhs"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * conj(F.cosh(self))},
    doc="Return the hyperbolic sine.",
    samples=unary(),
    reference="mpmath.sinh",
)
operator(
    "cosh(Tensor self)",
    compiled_where_faster("cosh", "coshs"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": lambda g, self, F: g * conj(F.sinh(self))},
    doc="Return the hyperbolic cosine.",
    samples=unary(),
    reference="mpmath.cosh",
)


@whole
def _tanh_backward(g: Gradient, result: Array) -> Gradient:
    if forms.is_worth_a_pass(result):
        return pointwise("activation_loops.tanh_backward", _tanh_gradient, g, result)
    return _tanh_gradient(g, result)


def _tanh_gradient(g: Gradient, result: Array) -> Gradient:
    return g * conj(one_minus(result * result))


operator(
    "tanh(Tensor self)",
    compiled_where_faster("tanh", "tanhs"),
    promote="float",
    inplace=True,
    out=True,
    derivatives={"self": _tanh_backward},
    doc="Return the hyperbolic tangent.",
    samples=unary(),
    reference="mpmath.tanh",
)
operator(
    "asinh(Tensor self)",
    "arcsinh",
    promote="float",
    inplace=True,
    inplace_node="AsinhBackward1",
    out=True,
    alias=("arcsinh",),
    derivatives={"self": lambda g, self, F: g * conj(F.rsqrt(self * self + 1))},
    doc="Return the inverse hyperbolic sine.",
    samples=unary(-0.8, 0.8),
    reference="mpmath.asinh",
)


def _acosh_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    if conj(self) is self:
        return g * F.rsqrt(self * self - 1)
    return g * conj(F.rsqrt(self - 1) * F.rsqrt(self + 1))  # the root of the product has another branch


operator(
    "acosh(Tensor self)",
    "arccosh",
    promote="float",
    inplace=True,
    inplace_node="AcoshBackward1",
    out=True,
    alias=("arccosh",),
    derivatives={"self": _acosh_backward},
    doc="Return the inverse hyperbolic cosine.",
    samples=unary(1.5, 3.0),
    reference="mpmath.acosh",
)
operator(
    "atanh(Tensor self)",
    compiled_where_faster("arctanh", "atanhs"),
    promote="float",
    inplace=True,
    inplace_node="AtanhBackward1",
    out=True,
    alias=("arctanh",),
    derivatives={"self": lambda g, self: g / conj(1 - self * self)},
    doc="Return the inverse hyperbolic tangent.",
    samples=unary(-0.8, 0.8),
    reference="mpmath.atanh",
)


def _multiplied(factor: float) -> Formula:
    return lambda g: g * factor


def _converter(name: str, factor: float) -> Formula:
    def forward(xp: Namespace, self: Array) -> Array:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.\nTake real or imag of the tensor.")
        return self * factor

    return forward


for _name, _node, _factor, _doc in (
    ("deg2rad", "Deg2RadBackward0", math.pi / 180, "degrees to radians"),
    ("rad2deg", "Rad2DegBackward0", 180 / math.pi, "radians to degrees"),
):
    operator(
        f"{_name}(Tensor self)",
        _converter(_name, _factor),
        promote="float",
        inplace=True,
        out=True,
        node=_node,
        derivatives={"self": _multiplied(_factor)},
        doc=f"Convert {_doc}.",
        samples=unary(),
        reference=f"numpy.{_name}",
        supports="f",
    )


def _sinc(g: Gradient, self: Array, F: Namespace) -> Gradient:
    zero = self * self == 0
    x = F.where(zero, F.ones_like(self), self * math.pi)
    return F.where(zero, F.zeros_like(g), g * conj((x * F.cos(x) - F.sin(x)) / (x * x) * math.pi))


operator(
    "sinc(Tensor self)",
    "sinc",
    promote="float",
    inplace=True,
    out=True,
    alias=("special.sinc",),
    derivatives={"self": _sinc},
    doc="Return ``sin(πx) / (πx)``, and 1 at 0.",
    samples=unary(0.2, 2.0),
    reference="numpy.sinc",
)


@whole
def _logit_self(g: Gradient, self: Array, eps: float | None, F: Namespace) -> Gradient:
    low, outside = (0, math.nan) if eps is None else (eps, 0)

    def gradient(g: Gradient, x: Array) -> Gradient:
        return F.where((x >= low) & (x <= 1 - low), g / (x * (1 - x)), F.zeros_like(g) + outside)

    if forms.is_worth_a_pass(self):
        return pointwise("calculus_loops.logit_backward", gradient, g, self, settings=(low, 1 - low, outside))
    return gradient(g, self)


@whole
def _logit(xp: Namespace, self: Array, eps: float | None = None) -> Array:
    refuse_kinds("logit_cpu", self, "c")
    if forms.is_worth_a_pass(self):
        limits = (-math.inf, math.inf) if eps is None else (eps, 1 - eps)
        return pointwise("calculus_loops.logits", lambda x: _logit_of(xp, x, eps), self, settings=limits)
    return _logit_of(xp, self, eps)


def _logit_of(xp: Namespace, x: Array, eps: float | None) -> Array:
    p = x if eps is None else xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(p / (1 - p))


def _logit_reference(self: Array, eps: float | None = None) -> Array:
    p = self if eps is None else numpy.clip(self, eps, 1 - eps)
    return numpy.log(p) - numpy.log1p(-p)


operator(
    "logit(Tensor self, float? eps=None)",
    _logit,
    promote="float",
    inplace=True,
    out=True,
    alias=("special.logit",),
    derivatives={"self": _logit_self},
    doc="Return ``log(self / (1 - self))``, of elements limited to [eps, 1 - eps] if `eps` is given.",
    samples=lambda make: (
        [((make(*shape, low=0.1, high=0.9),), {}) for shape in ((3, 4), (), (0, 2))]
        + [((make(3, low=0.3, high=0.6), 0.1), {})]
    ),
    reference=_logit_reference,
    extremes=elementwise(),
    supports="f",
)

del _name, _node, _factor, _doc
