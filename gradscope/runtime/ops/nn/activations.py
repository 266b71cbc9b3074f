"""Activation functions: rectifiers, sigmoids, softmax.

Where a function has a kink, the derivative there is the one PyTorch takes. Derivatives are masked with ``where``, so
that an infinite gradient at an inactive element gives 0 and not NaN.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy

from ... import autocast, state
from ...kernels import cuda_kernels, error_function_kernel, forms, loading
from ...kernels.forms import pointwise, rowwise
from ...kernels.row_sums import row_maxima, spread_sums, sums
from ...kernels.selection import select
from ...memory import device
from ...memory.dtype import scalar_type
from ...memory.elements import as_element
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, DType, Formula, Gradient, Namespace, Number
from ..declaration.extremes import elementwise, rows
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import unary
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import clipped, conj, in_rows, is_half, one_minus, single
from ..shape.reshape import axis_of
from ..special.error_function import erf_forward


def need_floating(name: str, array: Array) -> None:
    """Raise, in PyTorch's words, where a function is given integers or complex numbers."""
    refuse_kinds(name, array, "biuc")


def _floating(name: str, forward: Formula) -> Formula:
    """Return a forward that refuses integers and complex numbers."""

    def checked(xp: Namespace, self: Array, *arguments: Any) -> Array:
        need_floating(name, self)
        return forward(xp, self, *arguments)

    return checked


# --- rectifiers -------------------------------------------------------------------------------------------------------


# The integers that have the bits of a float of so many bytes.
_BITS = {size: device.numpy.dtype(f"int{8 * size}") for size in (1, 2, 4, 8)}
_BYTE = _BITS[1]
_MASKED = 1 << 17  # elements that are masked at once


def _threshold_backward(xp: Namespace, grad_output: Gradient, self: Array, threshold: Number) -> Array:
    kind = grad_output.dtype
    if grad_output.size < 1024 or kind.kind != "f" or grad_output.shape != self.shape:
        return xp.where(self <= threshold, 0, grad_output)

    if _is_compiled_for(self):
        formula = lambda g, x: _where_above(g, x, threshold)  # noqa: E731
        return pointwise("activation_loops.threshold_backward", formula, grad_output, self, settings=(threshold,))
    return _where_above(grad_output, self, threshold)


def _where_above(g: Array, x: Array, threshold: Number) -> Array:
    """Return the gradient by masking bits, without a branch for each element: much faster where signs are random.

    Of large arrays the mask of a block stays in the cache, and is spread to the width of the numbers in their place.
    """
    bits = _BITS[g.dtype.itemsize]
    if g.size <= _MASKED or not (g.flags.c_contiguous and x.flags.c_contiguous):
        mask = (x <= threshold).view(_BYTE)
        mask -= 1
        wide = mask.astype(bits)
        wide &= g.view(bits)
        return wide.view(g.dtype)
    result = device.array_module(g).empty(g.shape, g.dtype)
    wide, given, values = result.reshape(-1).view(bits), g.reshape(-1).view(bits), x.reshape(-1)
    for begin in range(0, g.size, _MASKED):
        part = slice(begin, begin + _MASKED)
        mask = (values[part] <= threshold).view(_BYTE)
        mask -= 1
        wide[part] = mask
        wide[part] &= given[part]
    return result


def _is_compiled_for(array: Array) -> bool:
    """Whether a compiled loop takes the place of a formula that is quicker undivided than in blocks."""
    if type(array) is not numpy.ndarray:
        return cuda_kernels.take((array,))
    return array.size >= forms.LEAST and array.dtype.char == "f" and loading.compiled("activation_loops") is not None


def _in_one_pass(name: str, formula: Formula, *arrays: Array, settings: tuple[float, ...] = ()) -> Array:
    """Return a formula that is quicker undivided than in blocks, by a compiled loop where there is one."""
    if _is_compiled_for(arrays[-1]):
        return pointwise(f"activation_loops.{name}", formula, *arrays, settings=settings)
    return formula(*arrays)


operator(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold)",
    _threshold_backward,
    derivatives={
        "grad_output": lambda g, self, threshold, F: F.threshold_backward(g, self, threshold),
        "self": lambda g, F: F.zeros_like(g),
    },
    method=False,
    public_name=False,
    doc="Pass the gradient where `self` exceeds the threshold (or is NaN).",
    samples=lambda make: [((make(2, 3), make(2, 3, low=0.2, high=1.0), 0.6), {})],
    reference=lambda grad_output, self, threshold: numpy.where(self <= threshold, 0, grad_output),
    extremes=elementwise(2, 0.5),
)


def _relu(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu\nConvert the tensor with .float().")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types\nTake real, imag or abs of the tensor.")
    if type(self) is not device.ndarray:
        return xp.maximum(self, 0)
    zero, highest = _from_zero(self.dtype.char)
    if self.size <= _FEW or self.dtype.char == "e":
        return xp.maximum(self, zero)
    # Beside one number NumPy's maximum takes three times as long as clip, which clips one of half precision slowly.
    if _is_compiled_for(self):
        return pointwise("activation_loops.relu", lambda x: x.clip(zero, highest), self)
    return self.clip(zero, highest)


_FEW = 1 << 9  # elements for which calling clip takes longer than the rest


@functools.cache
def _from_zero(char: str) -> tuple[Array, Array]:
    """Return zero and the highest number of a dtype."""
    kind = device.numpy.dtype(char)
    highest = math.inf if kind.kind == "f" else device.numpy.iinfo(kind).max
    return device.numpy.zeros((), kind), device.numpy.array(highest, kind)


operator(
    "relu(Tensor self)",
    _relu,
    inplace=True,
    derivatives={"self": lambda g, result, F: F.threshold_backward(g, result, 0)},
    doc="Return ``max(self, 0)``.",
    samples=unary(0.2, 2.0),
    reference=lambda self: numpy.maximum(self, 0),
    extremes=elementwise(),
    supports="f",
)


def _threshold(xp: Namespace, self: Array, threshold: Number, value: Number) -> Array:
    refuse_kinds("threshold_cpu", self, "bc")
    threshold, value = as_element(threshold, self), as_element(value, self)

    def formula(x: Array) -> Array:
        return select(xp, x <= threshold, value, x).astype(x.dtype, copy=False)

    return _in_one_pass("threshold", formula, self, settings=(threshold, value))


operator(
    "threshold(Tensor self, Scalar threshold, Scalar value)",
    _threshold,
    inplace=True,
    inplace_node="ThresholdBackward1",
    method=False,
    derivatives={"self": lambda g, self, threshold, F: F.threshold_backward(g, self, threshold)},
    out="castable",
    doc="Return the elements above a threshold, and `value` for the others.",
    samples=lambda make: [((make(2, 3, low=0.2, high=2.0), 0.1, 20.0), {}), ((make(2, 3), 2.5, -1.0), {})],
    reference=lambda self, threshold, value: numpy.where(self <= threshold, value, self),
    extremes=elementwise(1, 0.5, 20.0),
    supports="f",
)


def leaky_relu_forward(xp: Namespace, self: Array, negative_slope: float = 0.01) -> Array:
    """Return the elements where positive, else times the slope."""
    need_floating("leaky_relu_cpu", self)
    return pointwise(
        "activation_loops.leaky_relu",
        lambda x: select(xp, x > 0, x, x * negative_slope),
        self,
        settings=(negative_slope,),
    )


# The derivatives of functions that are linear on either side of a kink are operators, as in PyTorch: a gradient that is
# recorded has a node, and a derivative of 0 in the input, though it is made of the incoming gradient alone.


def _leaky_relu_backward(xp: Namespace, grad_output: Gradient, self: Array, negative_slope: float) -> Array:
    return pointwise(
        "activation_loops.leaky_relu_backward",
        lambda g, x: select(xp, x > 0, g, g * negative_slope),
        grad_output,
        self,
        settings=(negative_slope,),
    )


operator(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope)",
    _leaky_relu_backward,
    derivatives={
        "grad_output": lambda g, self, negative_slope, F: F.leaky_relu_backward(g, self, negative_slope),
        "self": lambda g, F: F.zeros_like(g),
    },
    method=False,
    public_name=False,
    doc="Pass the gradient where `self` is positive, else ``negative_slope`` times it.",
    samples=lambda make: [((make(2, 3), make(2, 3, low=0.2, high=1.0), 0.1), {})],
    reference=lambda grad_output, self, slope: numpy.where(self > 0, grad_output, slope * grad_output),
    extremes=elementwise(2, 0.5),
)
operator(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01)",
    leaky_relu_forward,
    inplace=True,
    inplace_node="LeakyReluBackward1",
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, negative_slope, F: F.leaky_relu_backward(g, self, negative_slope)},
    doc="Return ``self`` where positive, else ``negative_slope * self``.",
    samples=unary(0.2, 2.0),
    reference=lambda self, negative_slope=0.01: numpy.where(self > 0, self, self * negative_slope),
    extremes=elementwise(),
    supports="f",
)


def _negative_part(self: Array, F: Namespace) -> Array:
    # exp() of this never overflows; its own derivative at 0 is 0, as PyTorch has it.
    return F.where(self < 0, self, F.zeros_like(self))


def _elu(xp: Namespace, self: Array, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Array:
    need_floating("elu_cpu", self)

    def formula(x: Array) -> Array:
        below = xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale)
        return select(xp, x < 0, below, x * scale)

    return pointwise("activation_loops.elu", formula, self, settings=(alpha, scale, input_scale))


def _elu_backward(g: Gradient, self: Array, alpha: Number, scale: Array, input_scale: Number, F: Namespace) -> Gradient:
    def formula(g: Gradient, x: Array) -> Gradient:
        below = F.exp(_negative_part(x, F) * input_scale) * (input_scale * alpha * scale)
        return F.where(x <= 0, g * below, g * scale)

    return pointwise("activation_loops.elu_backward", formula, g, self, settings=(alpha, scale, input_scale))


def _elu_reference(self: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Array:
    return scale * numpy.where(self > 0, self, alpha * numpy.expm1(self * input_scale))


operator(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)",
    _elu,
    inplace=True,
    inplace_node="EluBackward1",
    method=False,
    public_name=False,
    derivatives={"self": _elu_backward},
    doc="Return ``scale * self`` where positive, else ``scale * alpha * expm1(input_scale * self)``.",
    samples=lambda make: [((make(3, 4, low=-2.0, high=-0.2), 0.7), {}), ((make(2, low=0.2, high=1.0), 1, 1.5, 2), {})],
    reference=_elu_reference,
    extremes=elementwise(1, 0.7, 1.5, 2.0),
    supports="f",
)

# Klambauer, Unterthiner, Mayr, Hochreiter, "Self-normalizing neural networks", NeurIPS 2017.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@public(method=False)
def selu(self: Tensor) -> Tensor:
    """Return the self-normalizing exponential linear unit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.selu(gs.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return OPERATORS["elu"].function(self, SELU_ALPHA, SELU_SCALE)


@public(method=False)
def selu_(self: Tensor) -> Tensor:
    """In-place form of :func:`selu`."""
    return OPERATORS["elu"].inplace_function(self, SELU_ALPHA, SELU_SCALE)  # type: ignore[misc]


operator(
    "celu(Tensor self, Scalar alpha=1.0)",
    lambda xp, self, alpha=1.0: _elu(xp, self, alpha, 1.0, 1.0 / _nonzero(alpha)),
    inplace=True,
    inplace_node="CeluBackward1",
    method=False,
    derivatives={"self": lambda g, self, alpha, F: _elu_backward(g, self, alpha, 1.0, 1.0 / alpha, F)},
    doc="Return ``self`` where positive, else ``alpha * expm1(self / alpha)``.",
    samples=lambda make: [((make(3, 4, low=-2.0, high=-0.2), 0.7), {}), ((make(2, low=0.2, high=1.0),), {})],
    reference=lambda self, alpha=1.0: numpy.where(self > 0, self, alpha * numpy.expm1(self / alpha)),
    extremes=elementwise(1, 0.7),
    supports="f",
)


def _nonzero(alpha: float) -> float:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return alpha


def _hardtanh(xp: Namespace, self: Array, min_val: Number = -1, max_val: Number = 1) -> Array:
    if self.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh\nConvert the tensor with .float().")
    if self.dtype.kind == "u" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits\nConvert it with .float().")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types\nTake real, imag or abs of the tensor.")
    return clipped(xp, self, min_val, max_val).astype(self.dtype, copy=False)


def _hardtanh_backward(xp: Namespace, grad_output: Gradient, self: Array, min_val: Number, max_val: Number) -> Array:
    return _in_one_pass(
        "hardtanh_backward",
        lambda g, x: select(xp, (x <= min_val) | (x >= max_val), as_element(0, g), g),
        grad_output,
        self,
        settings=(min_val, max_val),
    )


operator(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)",
    _hardtanh_backward,
    derivatives={
        "grad_output": lambda g, self, min_val, max_val, F: F.hardtanh_backward(g, self, min_val, max_val),
        "self": lambda g, F: F.zeros_like(g),
    },
    method=False,
    public_name=False,
    doc="Pass the gradient where `self` lies between the limits (or is NaN).",
    samples=lambda make: [((make(2, 3), make(2, 3, low=0.2, high=0.8), -1.0, 0.5), {})],
    reference=lambda g, self, low, high: numpy.where((self <= low) | (self >= high), 0, g),
    extremes=elementwise(2, -0.5, 1.0),
)
operator(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)",
    _hardtanh,
    inplace=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, min_val, max_val, F: F.hardtanh_backward(g, self, min_val, max_val)},
    doc="Limit to [min_val, max_val]; no gradient at the limits.",
    samples=unary(-0.9, 0.9),
    reference=lambda self: numpy.clip(self, -1, 1),
    extremes=elementwise(),
    supports="f",
)


def _hardsigmoid_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    return _in_one_pass(
        "hardsigmoid_backward",
        lambda g, x: F.where((x > -3) & (x < 3), g / 6, F.zeros_like(g)),
        g,
        self,
    )


operator(
    "hardsigmoid(Tensor self)",
    _floating("hardsigmoid_cpu", lambda xp, self: clipped(xp, self + 3, 0, 6) / 6),
    inplace=True,
    method=False,
    public_name=False,
    derivatives={"self": _hardsigmoid_backward},
    doc="Return ``min(max(self + 3, 0), 6) / 6``.",
    samples=unary(),
    reference=lambda self: numpy.clip(self + 3, 0, 6) / 6,
    extremes=elementwise(),
    supports="f",
)


def _hardswish(xp: Namespace, self: Array) -> Array:
    need_floating("hardswish_cpu", self)
    return pointwise("activation_loops.hardswish", lambda x: x * clipped(xp, x + 3, 0, 6) / 6, self)


def _hardswish_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    def formula(g: Gradient, x: Array) -> Gradient:
        inner = F.where(x < 3, g * (x / 3 + 0.5), g)
        return F.where(x <= -3, F.zeros_like(g), inner)

    return pointwise("activation_loops.hardswish_backward", formula, g, self)


operator(
    "hardswish(Tensor self)",
    _hardswish,
    inplace=True,
    method=False,
    public_name=False,
    derivatives={"self": _hardswish_backward},
    doc="Return ``self * min(max(self + 3, 0), 6) / 6``.",
    samples=unary(),
    reference=lambda self: self * numpy.clip(self + 3, 0, 6) / 6,
    extremes=elementwise(),
    supports="f",
)


def _shrink_backward(xp: Namespace, grad_output: Gradient, self: Array, lambd: float) -> Array:
    return _in_one_pass(
        "shrink_backward",
        lambda g, x: select(xp, (x >= -lambd) & (x <= lambd), as_element(0, g), g),
        grad_output,
        self,
        settings=(lambd,),
    )


for _name in ("hardshrink_backward", "softshrink_backward"):
    operator(
        f"{_name}(Tensor grad_output, Tensor self, Scalar lambd)",
        _shrink_backward,
        derivatives={
            "grad_output": lambda g, self, lambd, F: F.hardshrink_backward(g, self, lambd),
            "self": lambda g, F: F.zeros_like(g),
        },
        method=False,
        public_name=False,
        doc="Pass the gradient beyond [-lambd, lambd] (or where `self` is NaN).",
        samples=lambda make: [((make(2, 3), make(2, 3, low=0.2, high=1.0), 0.1), {})],
        reference=lambda g, self, lambd: numpy.where((self >= -lambd) & (self <= lambd), 0, g),
        extremes=elementwise(2, 0.5),
    )


def _hardshrink(xp: Namespace, self: Array, lambd: float = 0.5) -> Array:
    need_floating("hardshrink_cpu", self)
    formula = lambda x: select(xp, xp.absolute(x) <= lambd, 0, x)  # noqa: E731
    return _in_one_pass("hardshrink", formula, self, settings=(lambd,))


operator(
    "hardshrink(Tensor self, Scalar lambd=0.5)",
    _hardshrink,
    derivatives={"self": lambda g, self, lambd, F: F.hardshrink_backward(g, self, lambd)},
    out=True,
    doc="Return the elements beyond [-lambd, lambd], and 0 for the others.",
    samples=unary(0.6, 2.0),
    reference=lambda self, lambd=0.5: numpy.where(numpy.abs(self) <= lambd, 0, self),
    extremes=elementwise(),
    supports="f",
)
operator(
    "softshrink(Tensor self, Scalar lambd=0.5)",
    _floating(
        "softshrink_check",
        lambda xp, self, lambd=0.5: self - clipped(xp, self, -lambd, lambd),
    ),
    method=False,
    out=True,
    public_name=False,
    derivatives={"self": lambda g, self, lambd, F: F.softshrink_backward(g, self, lambd)},
    doc="Move the elements towards 0 by `lambd`.",
    samples=unary(0.6, 2.0),
    reference=lambda self, lambd=0.5: numpy.where(numpy.abs(self) <= lambd, self * 0, self - numpy.sign(self) * lambd),
    extremes=elementwise(),
    supports="f",
)


operator(
    "prelu.kernel(Tensor self, Tensor weight)",
    lambda xp, self, weight: xp.where(self > 0, self, self * weight),
    node="PreluKernelBackward0",
    method=False,
    derivatives={
        "self": lambda g, self, weight, F: F.where(self > 0, g, g * weight),
        "weight": lambda g, self, F: F.where(self > 0, F.zeros_like(g), g * self),
    },
    doc="Return ``self`` where positive, else ``weight * self``.",
    samples=lambda make: [
        ((make(2, 3, low=0.2, high=2.0), make(3)), {}),
        ((make(2, low=-2.0, high=-0.2), make(1)), {}),
    ],
    reference=lambda self, weight: numpy.where(self > 0, self, weight * self),
    extremes=elementwise(2),
    supports="f",
)


@public
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """Return ``self`` where positive, else ``weight * self``, with one weight, or one a channel (dimension 1).

    Raises
    ------
    RuntimeError
        If the number of weights is neither 1 nor the number of channels.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.prelu(gs.tensor([-1.0, 2.0]), gs.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    if state.casting and autocast.covers("prelu", (self, weight)):
        return autocast.call("prelu", prelu, self, weight)
    if not hasattr(weight, "_array"):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if weight._array.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._array.ndim}\n"
            "Give one weight, or one for each channel."
        )
    array, count = self._array, weight._array.size
    channels = array.shape[1] if array.ndim > 1 else 1
    if count not in (1, channels):
        raise RuntimeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
            f"size = {channels}.\nThe channels are dimension 1 of the input, of shape {list(array.shape)}."
        )
    if array.dtype != weight._dtype:
        kinds = [scalar_type(t.dtype) for t in (array, weight._array)]
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {kinds[0]} and {kinds[1]}\nConvert one of them with .to()."
        )
    shape = (1,) * array.ndim if count == 1 else (1, count) + (1,) * (array.ndim - 2)
    return OPERATORS["prelu.kernel"].function(self, weight.reshape(shape) if weight._array.shape != shape else weight)


# --- sigmoids ---------------------------------------------------------------------------------------------------------


def _sigmoid(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind == "c":
        return 1 / (1 + xp.exp(-self))
    if self.size >= forms.FEW:
        return pointwise("activation_loops.sigmoids", lambda x: _sigmoid_formula(xp, x), self)
    return _sigmoid_formula(xp, self)


def _sigmoid_formula(xp: Namespace, self: Array) -> Array:
    # exp of a negative number never overflows, and keeps small results exact.
    decay = xp.exp(-xp.absolute(self))
    result = xp.maximum(decay, self >= 0)
    decay += 1
    result /= decay
    return result


def _sigmoid_backward(g: Gradient, result: Array) -> Gradient:
    if forms.is_worth_a_pass(result):
        return pointwise("activation_loops.sigmoid_backward", _sigmoid_gradient, g, result)
    return _sigmoid_gradient(g, result)


def _sigmoid_gradient(g: Gradient, result: Array) -> Gradient:
    return g * conj(one_minus(result) * result)


operator(
    "sigmoid(Tensor self)",
    _sigmoid,
    promote="float",
    inplace=True,
    out=True,
    alias=("expit", "special.expit"),
    derivatives={"self": _sigmoid_backward},
    doc="Return ``1 / (1 + exp(-self))``.",
    samples=unary(),
    reference=lambda self: 1 / (1 + numpy.exp(-self)),
    extremes=elementwise(),
)


def _log_sigmoid(xp: Namespace, self: Array) -> Array:
    need_floating("log_sigmoid_cpu", self)
    if is_half(self):
        return _log_sigmoid(xp, single(self)).astype(self.dtype)
    return pointwise("activation_loops.log_sigmoid", lambda x: xp.minimum(x, 0) - _log1p_of_decay(xp, x), self)


def _log1p_of_decay(xp: Namespace, x: Array) -> Array:
    """Return log(1 + exp(-abs(x))), which never overflows, and takes a tenth of the time of logaddexp()."""
    return xp.log1p(xp.exp(-xp.absolute(x)))


def _log_sigmoid_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    return pointwise("activation_loops.log_sigmoid_backward", lambda g, x: g * F.sigmoid(-x), g, self)


operator(
    "log_sigmoid(Tensor self)",
    _log_sigmoid,
    method=False,
    out=True,
    public_name=False,
    derivatives={"self": _log_sigmoid_backward},
    doc="Return ``log(sigmoid(self))`` without loss.",
    samples=unary(),
    reference="scipy.special.log_expit",
    extremes=elementwise(),
    supports="f",
)


def _silu(xp: Namespace, self: Array) -> Array:
    refuse_kinds("silu_cpu", self, "biu")
    return pointwise("activation_loops.silu", lambda x: x * _sigmoid(xp, x), self)


def _silu_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    def formula(g: Gradient, x: Array) -> Gradient:
        s = F.sigmoid(x)
        return g * conj(s * (x * (1 - s) + 1))

    return pointwise("activation_loops.silu_backward", formula, g, self)


operator(
    "silu(Tensor self)",
    _silu,
    inplace=True,
    method=False,
    public_name=False,
    derivatives={"self": _silu_backward},
    doc="Return ``self * sigmoid(self)``.",
    samples=unary(),
    reference=lambda self: self / (1 + numpy.exp(-self)),
    extremes=elementwise(),
)


def _softplus(xp: Namespace, self: Array, beta: Number = 1, threshold: Number = 20) -> Array:
    need_floating("softplus_cpu", self)
    if is_half(self):
        return _softplus(xp, single(self), beta, threshold).astype(self.dtype)

    def formula(x: Array) -> Array:
        scaled = x * beta
        smooth = (xp.maximum(scaled, 0) + _log1p_of_decay(xp, scaled)) / beta
        return select(xp, scaled > threshold, x, smooth)

    return pointwise("activation_loops.softplus", formula, self, settings=(beta, threshold))


def _softplus_backward(g: Gradient, self: Array, beta: float, threshold: float, F: Namespace) -> Gradient:
    def formula(g: Gradient, x: Array) -> Gradient:
        scaled = x * beta
        return F.where(scaled > threshold, g, g * F.sigmoid(scaled))

    return pointwise("activation_loops.softplus_backward", formula, g, self, settings=(beta, threshold))


def _softplus_reference(self: Array, beta: float = 1, threshold: float = 20) -> Array:
    return numpy.where(self * beta > threshold, self, numpy.logaddexp(0, self * beta) / beta)


operator(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20)",
    _softplus,
    method=False,
    out=True,
    public_name=False,
    derivatives={"self": _softplus_backward},
    doc="Return ``log(1 + exp(beta * self)) / beta``; `self` itself beyond the threshold.",
    samples=lambda make: [((make(3, 4),), {}), ((make(2), 2.0), {}), ((make(2), 1, 0.0), {}), ((make(),), {})],
    reference=_softplus_reference,
    extremes=elementwise(1, 2.0, 20.0),
    supports="f",
)


def _mish(xp: Namespace, self: Array) -> Array:
    need_floating("mish_cpu", self)
    return pointwise("activation_loops.mish", lambda x: x * xp.tanh(_softplus(xp, x)), self)


def _mish_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    def formula(g: Gradient, x: Array) -> Gradient:
        t = F.tanh(F.softplus(x, 1, 20))
        return g * (t + x * F.sigmoid(x) * (1 - t * t))

    return pointwise("activation_loops.mish_backward", formula, g, self)


operator(
    "mish(Tensor self)",
    _mish,
    inplace=True,
    method=False,
    public_name=False,
    derivatives={"self": _mish_backward},
    doc="Return ``self * tanh(softplus(self))``.",
    samples=unary(),
    reference=lambda self: self * numpy.tanh(numpy.logaddexp(0, self)),
    extremes=elementwise(),
    supports="f",
)


def _halves(array: Array, dim: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the keys of both halves along a dimension."""
    if array.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors\nGive it a dimension of even size.")
    axis = axis_of(dim, array.ndim)
    size = array.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    before = (slice(None),) * axis
    return (*before, slice(0, size // 2)), (*before, slice(size // 2, size))


def _glu(xp: Namespace, self: Array, dim: int = -1) -> Array:
    first, second = _halves(self, dim)
    need_floating("glu_cpu", self)
    return self[first] * _sigmoid(xp, self[second])


def _glu_backward(g: Gradient, self: Array, dim: int, F: Namespace) -> Gradient:
    first, second = (F.slice(self, dim, a, b, 1) for a, b in ((0, g.shape[dim]), (g.shape[dim], self.shape[dim])))
    gate = F.sigmoid(second)
    return F.cat([g * gate, g * first * gate * (1 - gate)], dim)


def _glu_reference(self: Array, dim: int = -1) -> Array:
    a, b = numpy.split(self, 2, axis=dim)
    return a / (1 + numpy.exp(-b))


operator(
    "glu(Tensor self, int dim=-1)",
    _glu,
    method=False,
    public_name=False,
    derivatives={"self": _glu_backward},
    doc="Return the first half along a dimension, times the sigmoid of the second.",
    samples=lambda make: [((make(2, 4),), {}), ((make(4, 3), 0), {})],
    reference=_glu_reference,
    extremes=rows(),
    supports="f",
)

# --- gelu -------------------------------------------------------------------------------------------------------------

# Hendrycks, Gimpel, "Gaussian error linear units", 2016.
_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_CUBIC = 0.044715


def _gelu(xp: Namespace, self: Array, approximate: str = "none") -> Array:
    need_floating("GeluKernelImpl", self)
    if approximate == "none":
        if _are_single(self):
            return pointwise("activation_loops.gelu", error_function_kernel.gelu, self, writes=True)
        return pointwise("activation_loops.gelu", lambda x: x * (0.5 * (erf_forward(xp, x * _ROOT_HALF) + 1)), self)
    if approximate != "tanh":
        raise RuntimeError(f"approximate argument must be either none or tanh. (got {approximate!r})")
    return pointwise("activation_loops.gelu_tanh", lambda x: _gelu_tanh(xp, x), self)


def _are_single(*arrays: Any) -> bool:
    """Whether arrays are on the host, of single precision and one shape."""
    shape = getattr(arrays[0], "shape", ())
    return bool(shape) and all(type(a) is numpy.ndarray and a.dtype.char == "f" and a.shape == shape for a in arrays)


def _gelu_tanh(xp: Namespace, x: Array) -> Array:
    return x * (0.5 * (xp.tanh(_ROOT_TWO_OVER_PI * (x + _CUBIC * (x * x * x))) + 1))


def _gelu_backward(g: Gradient, self: Array, approximate: str, F: Namespace) -> Gradient:
    if approximate == "none":
        if _are_single(g, self):
            return pointwise(
                "activation_loops.gelu_backward", error_function_kernel.gelu_backward, g, self, writes=True
            )
        return pointwise("activation_loops.gelu_backward", lambda g, x: g * _gelu_slope(x, F), g, self)
    return pointwise("activation_loops.gelu_tanh_backward", lambda g, x: g * _gelu_tanh_slope(x, F), g, self)


def _gelu_slope(x: Array, F: Namespace) -> Array:
    return (F.erf(x * _ROOT_HALF) + 1) * 0.5 + x * F.exp(x * x * -0.5) * _DENSITY


def _gelu_tanh_slope(x: Array, F: Namespace) -> Array:
    square = x * x
    t = F.tanh((x + x * square * _CUBIC) * _ROOT_TWO_OVER_PI)
    inner = (square * (3 * _CUBIC) + 1) * _ROOT_TWO_OVER_PI
    return (t + 1) * 0.5 + x * 0.5 * (1 - t * t) * inner


def _gelu_reference(self: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return self / 2 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (self + 0.044715 * self**3)))
    # SciPy loads when a test asks for the reference.
    from scipy.special import ndtr

    return self * ndtr(self)


operator(
    "gelu(Tensor self, *, str approximate='none')",
    _gelu,
    method=False,
    out=True,
    public_name=False,
    derivatives={"self": _gelu_backward},
    doc="Return ``self`` times the normal distribution function of ``self``, or its tanh approximation.",
    samples=lambda make: [((make(3, 4),), {}), ((make(),), {}), ((make(2, 3),), {"approximate": "tanh"})],
    reference=_gelu_reference,
    extremes=lambda make: elementwise()(make) + elementwise(approximate="tanh")(make),
    differs=((lambda self, approximate="none": self < -5, "1 + erf(x / √2) is rounded to 0 there, as in PyTorch"),),
    supports="f",
)

# --- softmax ----------------------------------------------------------------------------------------------------------


def _softmax(xp: Namespace, self: Array, dim: int) -> Array:
    axis = axis_of(dim, self.ndim)
    if self.dtype.char not in "fd":
        need_floating("softmax_lastdim_kernel_impl", self)
        return _softmax(xp, single(self), dim).astype(self.dtype)
    self = in_rows(xp, self)
    if not self.ndim or not self.size:
        return self * 0 + 1
    if axis == self.ndim - 1:
        return rowwise("softmax_loops.softmax", _softmax_of_rows, self)
    return _softmax_along(xp, self, axis)


def _softmax_along(xp: Namespace, x: Array, axis: int, out: Array | None = None) -> Array:
    result = xp.subtract(x, row_maxima(x, axis), out=out)
    xp.exp(result, out=result)
    result /= spread_sums(result, (axis,))
    return result


def _softmax_of_rows(x: Array, out: Array | None = None) -> Array:
    return _softmax_along(device.array_module(x), x, x.ndim - 1, out)


def _softmax_data(xp: Namespace, grad_output: Gradient, output: Array, dim: int) -> Array:
    if is_half(grad_output):
        return _softmax_data(xp, single(grad_output), single(output), dim).astype(grad_output.dtype)
    if not output.ndim:
        return output * (grad_output - grad_output * output)
    axis = axis_of(dim, output.ndim)
    if output.size >= forms.FEW and axis == output.ndim - 1:
        return rowwise("softmax_loops.softmax_backward", _softmax_data_of_rows, grad_output, output)
    return _softmax_data_along(xp, grad_output, output, axis)


def _softmax_data_along(
    xp: Namespace, grad_output: Gradient, output: Array, axis: int, out: Array | None = None
) -> Array:
    if xp is numpy and axis == output.ndim - 1:
        result = xp.subtract(grad_output, xp.vecdot(grad_output, output)[..., None], out=out)
    else:
        result = xp.multiply(grad_output, output, out=out)
        xp.subtract(grad_output, sums(result, (axis,)), out=result)
    result *= output
    return result


def _softmax_data_of_rows(grad_output: Gradient, output: Array, out: Array | None = None) -> Array:
    return _softmax_data_along(device.array_module(output), grad_output, output, output.ndim - 1, out)


def _log_softmax(xp: Namespace, self: Array, dim: int) -> Array:
    axis = axis_of(dim, self.ndim)
    if self.dtype.char not in "fd":
        need_floating("log_softmax_lastdim_kernel_impl", self)
        return _log_softmax(xp, single(self), dim).astype(self.dtype)
    self = in_rows(xp, self)
    if not self.ndim or not self.size:
        return self * 0
    if axis == self.ndim - 1:
        return rowwise("softmax_loops.log_softmax", _log_softmax_of_rows, self)
    return _log_softmax_along(xp, self, axis)


def _log_softmax_along(xp: Namespace, x: Array, axis: int, out: Array | None = None) -> Array:
    result = xp.subtract(x, row_maxima(x, axis), out=out)
    result -= xp.log(sums(xp.exp(result), (axis,)))
    return result


def _log_softmax_of_rows(x: Array, out: Array | None = None) -> Array:
    return _log_softmax_along(device.array_module(x), x, x.ndim - 1, out)


def _log_softmax_data(xp: Namespace, grad_output: Gradient, output: Array, dim: int) -> Array:
    if is_half(grad_output):
        return _log_softmax_data(xp, single(grad_output), single(output), dim).astype(grad_output.dtype)
    if not output.ndim:
        return grad_output - xp.exp(output) * grad_output
    axis = axis_of(dim, output.ndim)
    if output.size >= forms.FEW and axis == output.ndim - 1:
        return rowwise("softmax_loops.log_softmax_backward", _log_softmax_data_of_rows, grad_output, output)
    return _log_softmax_data_along(xp, grad_output, output, axis)


def _log_softmax_data_along(
    xp: Namespace, grad_output: Gradient, output: Array, axis: int, out: Array | None = None
) -> Array:
    result = xp.exp(output, out=out)
    result *= sums(grad_output, (axis,))
    return xp.subtract(grad_output, result, out=result)


def _log_softmax_data_of_rows(grad_output: Gradient, output: Array, out: Array | None = None) -> Array:
    return _log_softmax_data_along(device.array_module(output), grad_output, output, output.ndim - 1, out)


# The derivatives of softmax and of its logarithm are operators, as in PyTorch: fast ones on the path of every
# classifier's training step, with derivatives of their own.
operator(
    "softmax_data(Tensor grad_output, Tensor output, int dim)",
    _softmax_data,
    method=False,
    public_name=False,
    node="SoftmaxBackwardDataBackward0",
    derivatives={
        "grad_output": lambda g, output, dim, F: F.softmax_data(g, output, dim),
        "output": lambda g, grad_output, output, dim, F: (
            g * grad_output - g * F.sum(grad_output * output, dim, True) - grad_output * F.sum(g * output, dim, True)
        ),
    },
    doc="Return ``output * (grad_output - sum(grad_output * output))``.",
    samples=lambda make: [((make(2, 3), make(2, 3), 1), {}), ((make(2, 3), make(2, 3), 0), {})],
    reference=lambda grad_output, output, dim: output * (grad_output - (grad_output * output).sum(dim, keepdims=True)),
    supports="f",
)
operator(
    "log_softmax_data(Tensor grad_output, Tensor output, int dim)",
    _log_softmax_data,
    method=False,
    public_name=False,
    node="LogSoftmaxBackwardDataBackward0",
    derivatives={
        "grad_output": lambda g, output, dim, F: g - F.sum(g * F.exp(output), dim, True),
        "output": lambda g, grad_output, output, dim, F: -g * F.exp(output) * F.sum(grad_output, dim, True),
    },
    doc="Return ``grad_output - exp(output) * sum(grad_output)``.",
    samples=lambda make: [((make(2, 3), make(2, 3), 1), {}), ((make(2, 3), make(2, 3), 0), {})],
    reference=lambda grad_output, output, dim: grad_output - numpy.exp(output) * grad_output.sum(dim, keepdims=True),
    extremes=lambda make: [((grad, make.of(grad.tolist()).reshape(-1, 4), 1), {}) for (grad,), _ in rows()(make)],
    differs=((lambda grad_output, output, dim: numpy.abs(grad_output) > 1e300, "the order of a sum that overflows"),),
    supports="f",
)
operator(
    "softmax.int(Tensor self, int dim)",
    _softmax,
    method=False,
    node="SoftmaxBackward0",
    derivatives={"self": lambda g, result, dim, F: F.softmax_data(g, result, dim)},
    doc="Return ``exp(self)`` divided by its sum along a dimension.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 2), 0), {}), ((make(), 0), {}), ((make(3), -1), {})],
    reference="scipy.special.softmax",
    extremes=rows(-1),
    supports="f",
)
operator(
    "log_softmax.int(Tensor self, int dim)",
    _log_softmax,
    method=False,
    node="LogSoftmaxBackward0",
    derivatives={"self": lambda g, result, dim, F: F.log_softmax_data(g, result, dim)},
    doc="Return ``log(softmax(self))`` without loss.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 2), 0), {}), ((make(), 0), {}), ((make(3), -1), {})],
    reference="scipy.special.log_softmax",
    extremes=rows(-1),
    differs=(
        (
            lambda self, dim: (self == math.inf).any(dim, keepdims=True) | (self == -math.inf).all(dim, keepdims=True),
            "inf - inf is NaN, in the whole row as in PyTorch",
        ),
    ),
    supports="f",
)

_softmax_int = OPERATORS["softmax.int"].function
_log_softmax_int = OPERATORS["log_softmax.int"].function


@public(alias=("special.softmax",), arrays=_softmax)
def softmax(self: Tensor, dim: int, dtype: DType = None, *, out: Tensor | None = None) -> Tensor:
    """Return ``exp(self)`` divided by its sum along `dim`, after conversion to `dtype` if given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([0.0, 0.0]).softmax(dim=0)
    tensor([0.5000, 0.5000])
    """
    if out is not None:
        return inplace_and_out.into(out, "softmax", [self], lambda: softmax(self, dim, dtype), exact=True)
    return _softmax_int(self if dtype is None else self.to(dtype), dim)


@public(alias=("special.log_softmax",), arrays=_log_softmax)
def log_softmax(self: Tensor, dim: int, dtype: DType = None, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(softmax(self, dim))`` without loss, after conversion to `dtype` if given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.log_softmax(gs.tensor([1.0, 2.0, 3.0]), 0)
    tensor([-2.4076, -1.4076, -0.4076])
    """
    if out is not None:
        return inplace_and_out.into(out, "log_softmax", [self], lambda: log_softmax(self, dim, dtype), exact=True)
    return _log_softmax_int(self if dtype is None else self.to(dtype), dim)


del _name
