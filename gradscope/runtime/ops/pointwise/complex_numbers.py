"""Complex numbers: the conjugate, the parts, and views as pairs of real numbers."""

from __future__ import annotations

import math

import numpy

from ...kernels import forms
from ...kernels.elementwise import whole
from ...kernels.forms import pointwise
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...memory.storage import offset_of, restrided
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, Gradient, Make, Namespace, Operand
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.bare_functions import conj as conjugate
from ..execution.bare_functions import is_half


def _is_complex(tensor: Array) -> bool:
    return tensor._dtype.kind == "c"


def _complex_samples(make: Make) -> Cases:
    return [((make(2, 3, dtype="complex128"),), {}), ((make(dtype="complex128"),), {})]


operator(
    "_conj(Tensor self)",
    lambda xp, self: self.view(),
    view="always",
    reads="conj",
    node="ConjBackward0",
    derivatives={"self": lambda g: conjugate(g)},
    doc="View a complex tensor as its conjugate: the elements stay where they are, and are read otherwise.",
    samples=_complex_samples,
    reference="numpy.conj",
)
operator(
    "_neg_view(Tensor self)",
    lambda xp, self: self.view(),
    view="always",
    reads="neg",
    node="NegViewBackward0",
    derivatives={"self": lambda g: -g},
    doc="View a tensor as its negative: the elements stay where they are, and are read otherwise.",
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {})],
    reference="numpy.negative",
)
_conj_physical = operator(
    "conj_physical(Tensor self)",
    "conjugate",
    inplace=True,
    inplace_node="ConjPhysicalBackward1",
    out=True,
    public_name=False,
    derivatives={"self": lambda g: conjugate(g)},
    doc="Return the complex conjugate in memory of its own.",
    samples=_complex_samples,
    reference="numpy.conj",
)


@public
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex conjugate in memory of its own; a real tensor as it is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.conj_physical(gs.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if out is not None:
        return _conj_physical.function(input, out=out)
    return _conj_physical.function(input) if _is_complex(input) else input


@public
def conj_physical_(input: Tensor) -> Tensor:
    """Write the complex conjugates in place of the elements."""
    return _conj_physical.inplace_function(input)  # type: ignore[misc]


@public(arrays=lambda xp, self: conjugate(self))
def conj(self: Tensor) -> Tensor:
    """Return the complex conjugate, a view of the same memory (lazily conjugated); a real tensor as it is.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1 + 1j])
    >>> y = x.conj()
    >>> x.mul_(2)
    tensor([2.+2.j])
    >>> y, y.is_conj()
    (tensor([2.-2.j]), True)
    """
    return OPERATORS["_conj"].function(self) if _is_complex(self) else self


def _view_as_real(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    part = self.real
    return restrided(part, (*self.shape, 2), (*part.strides, part.itemsize))


def _view_as_complex(xp: Namespace, self: Array) -> Array:
    if self.dtype.char not in "fd":
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: "
            f"{scalar_type(self.dtype)}\nConvert it with .float()."
        )
    if self.ndim == 0 or self.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, this one has shape {list(self.shape)}")
    if self.size and self.strides[-1] != self.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1\nCall .contiguous() first.")
    if offset_of(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2\nA clone() has.")
    if self.size and any(step % (2 * self.dtype.itemsize) for step in self.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension\nA clone() has.")
    return self.view("c" + str(2 * self.dtype.itemsize))[..., 0]


operator(
    "view_as_real(Tensor self)",
    _view_as_real,
    view="always",
    reads="dtype",
    method=False,
    public_name=False,
    derivatives={"self": lambda g, F: F.view_as_complex(F.clone(g, memory_format="contiguous"))},
    doc="View a complex tensor as a real one whose last dimension holds real and imaginary part.",
    samples=_complex_samples,
    reference=lambda self: numpy.stack([self.real, self.imag], -1),
)


def _joined_reference(real: Array, imag: Array) -> Array:
    found = numpy.empty(numpy.broadcast_shapes(real.shape, imag.shape), numpy.result_type(real, 1j))
    found.real[...], found.imag[...] = real, imag
    return found


operator(
    "view_as_complex(Tensor self)",
    _view_as_complex,
    view="always",
    reads="dtype",
    method=False,
    derivatives={"self": lambda g, F: F.view_as_real(F.resolve_conj(g))},
    doc="View a real tensor whose last dimension holds real and imaginary part as a complex one.",
    samples=lambda make: [((make(3, 2),), {}), ((make(2),), {})],
    reference=lambda self: _joined_reference(self[..., 0], self[..., 1]),
    supports="f",
)


@public(method=False, arrays=_view_as_real)
def view_as_real(input: Tensor) -> Tensor:
    """View a complex tensor as a real one whose last dimension holds real and imaginary part.

    Raises
    ------
    RuntimeError
        If it is a conjugate, in whose memory the imaginary parts have the other sign.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.view_as_real(gs.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if input._conjugated:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return OPERATORS["view_as_real"].function(input)


def _pairs(self: Array) -> Array:
    """View a complex tensor as pairs of real numbers; of a conjugate, the pairs of what it is the conjugate of."""
    return OPERATORS["view_as_real"].function(OPERATORS["_conj"].function(self) if self._conjugated else self)


@public(arrays=lambda xp, self: self.real)
def real(self: Tensor) -> Tensor:
    """Return a view of the real part; a real tensor is returned as it is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.real(gs.tensor([1 + 2j]))
    tensor([1.])
    """
    return METHODS["select"](_pairs(self), -1, 0) if _is_complex(self) else self


@public(arrays=lambda xp, self: self.imag)
def imag(self: Tensor) -> Tensor:
    """Return a view of the imaginary part.

    Raises
    ------
    RuntimeError
        For a real tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.imag(gs.tensor([1 + 2j]))
    tensor([2.])
    """
    if not _is_complex(self):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs = _pairs(self)
    return METHODS["select"](OPERATORS["_neg_view"].function(pairs) if self._conjugated else pairs, -1, 1)


def _set_real(self: Array, value: Operand) -> None:
    _set_part(real(self), value)


def _set_imag(self: Array, value: Operand) -> None:
    _set_part(imag(self), value)


def _set_part(part: Tensor, value: Operand) -> None:
    """Write a number or a tensor into the real or the imaginary part."""
    if hasattr(value, "_array"):
        part.copy_(value)
    else:
        part.fill_(value)


# --- made of parts, and taken apart -----------------------------------------------------------------------------------


@whole
def _angle(xp: Namespace, self: Array) -> Array:
    if self.dtype.kind == "c":
        if self.dtype.char == "F" and forms.is_worth_a_pass(self):
            parts = (xp.ascontiguousarray(part) for part in (self.imag, self.real))
            return pointwise("calculus_loops.atan2s", xp.arctan2, *parts, writes=True)
        return xp.angle(self)
    wide = self if self.dtype.kind == "f" else self.astype(dtypes.default_dtype.numpy)
    return xp.where(wide != wide, wide, xp.where(wide < 0, math.pi, 0)).astype(wide.dtype)


def _angle_backward(g: Gradient, self: Array, F: Namespace) -> Gradient:
    if conjugate(self) is self:
        return F.zeros_like(g)
    square = F.real(self * conjugate(self))
    zero = square == 0
    return F.where(zero, F.zeros_like(g), g / F.where(zero, F.ones_like(square), square)) * (self * 1j)


operator(
    "angle(Tensor self)",
    _angle,
    out="castable",
    derivatives={"self": _angle_backward},
    doc="Return the angle of complex numbers; 0 of positive and π of negative real ones.",
    samples=lambda make: [((make(*shape),), {}) for shape in ((2, 3), (), (0, 2))],
    reference="numpy.angle",
    differs=((lambda self: (self == 0) & (self.dtype.kind == "f"), "of -0.0 it is 0 in PyTorch"),),
)


def _need_pair(name: str, a: Array, b: Array, words: tuple[str, str]) -> None:
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        kinds = " and ".join(scalar_type(x.dtype) for x in (a, b))
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {kinds}")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_type(a.dtype)} but got scalar type {scalar_type(b.dtype)} for "
            f"second argument\n{name}() takes {words[0]} and {words[1]} of one dtype."
        )


def _joined(xp: Namespace, real: Array, imag: Array) -> Array:
    """Return complex numbers of two parts; in a product with 1j an infinite one would make the other NaN."""
    real, imag = xp.broadcast_arrays(real, imag)
    found = xp.empty(real.shape, dtype=xp.result_type(real.dtype, xp.complex64))
    found.real[...], found.imag[...] = real, imag
    return found


def _complex(xp: Namespace, real: Array, imag: Array) -> Array:
    _need_pair("complex", real, imag, ("real", "imaginary parts"))
    return _joined(xp, real, imag)


operator(
    "complex(Tensor real, Tensor imag)",
    _complex,
    method=False,
    out="exact",
    derivatives={"real": lambda g, F: F.real(g), "imag": lambda g, F: F.imag(g)},
    doc="Return complex numbers with these real and imaginary parts.",
    samples=lambda make: [((make(2, 3, dtype="float64"), make(3, dtype="float64")), {})],
    reference=_joined_reference,
    supports="f",
)


def _polar(xp: Namespace, abs: Array, angle: Array) -> Array:
    _need_pair("polar", abs, angle, ("magnitudes", "angles"))
    if is_half(abs):
        raise NotImplementedError(
            f"\"polar_cpu\" not implemented for '{scalar_type(abs.dtype)}'\nConvert it with .float()."
        )
    return _joined(xp, abs * xp.cos(angle), abs * xp.sin(angle))


operator(
    "polar(Tensor abs, Tensor angle)",
    _polar,
    method=False,
    out="exact",
    derivatives={
        "abs": lambda g, result, F: F.real(g * conjugate(F.sgn(result))),
        "angle": lambda g, result, F: F.real(g * conjugate(result * 1j)),
    },
    doc="Return complex numbers with these magnitudes and angles.",
    samples=lambda make: [((make(2, 3, low=0.3, dtype="float64"), make(3, dtype="float64")), {})],
    reference=lambda abs, angle: _joined_reference(abs * numpy.cos(angle), abs * numpy.sin(angle)),
    supports="f",
)

# As in PyTorch, `z.real` and `z.imag` are attributes, `real(z)` and `imag(z)` functions.
METHODS["real"] = property(real, _set_real)  # type: ignore[assignment]
METHODS["imag"] = property(imag, _set_imag)  # type: ignore[assignment]
