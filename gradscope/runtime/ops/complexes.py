"""Complex numbers: the conjugate, the parts, and views as pairs of real numbers."""

from __future__ import annotations

from typing import Any

from .arrays import conj as conjugate
from .registry import METHODS, OPERATORS, operator, public


def _is_complex(tensor: Any) -> bool:
    return tensor._array.dtype.kind == "c"


operator(
    "conj.complex(Tensor self)",
    lambda xp, self: xp.conjugate(self),
    method=False,
    node="ConjBackward0",
    derivatives={"self": lambda g: conjugate(g)},
    doc="Return the complex conjugate.",
    samples=lambda make: [((make(2, 3, dtype="complex128"),), {}), ((make(dtype="complex128"),), {})],
)


@public(arrays=lambda xp, self: conjugate(self))
def conj(self: Any) -> Any:
    """Return the complex conjugate; a real tensor is returned as it is."""
    return OPERATORS["conj.complex"].function(self) if _is_complex(self) else self


def _view_as_real(xp: Any, self: Any) -> Any:
    if self.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    part = self.real
    step = self.dtype.itemsize // 2
    return xp.lib.stride_tricks.as_strided(part, (*self.shape, 2), (*self.strides, step))


def _view_as_complex(xp: Any, self: Any) -> Any:
    if self.dtype.kind != "f":
        raise RuntimeError(f"view_as_complex is only supported for floating point tensors, got {self.dtype}")
    if self.ndim == 0 or self.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, this one has shape {list(self.shape)}")
    if self.size and self.strides[-1] != self.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1\nCall .contiguous() first.")
    return self.view("c" + str(2 * self.dtype.itemsize))[..., 0]


operator(
    "view_as_real(Tensor self)",
    _view_as_real,
    view="always",
    method=False,
    derivatives={"self": lambda g, F: F.view_as_complex(F.clone(g, memory_format="contiguous"))},
    doc="View a complex tensor as a real one whose last dimension holds real and imaginary part.",
    samples=lambda make: [((make(2, 3, dtype="complex128"),), {}), ((make(dtype="complex128"),), {})],
)
operator(
    "view_as_complex(Tensor self)",
    _view_as_complex,
    view="always",
    method=False,
    derivatives={"self": lambda g, F: F.view_as_real(g)},
    doc="View a real tensor whose last dimension holds real and imaginary part as a complex one.",
    samples=lambda make: [((make(3, 2),), {}), ((make(2),), {})],
    supports="f",
)


@public(arrays=lambda xp, self: self.real)
def real(self: Any) -> Any:
    """Return a view of the real part; a real tensor is returned as it is."""
    return METHODS["select"](OPERATORS["view_as_real"].function(self), -1, 0) if _is_complex(self) else self


@public(arrays=lambda xp, self: self.imag)
def imag(self: Any) -> Any:
    """Return a view of the imaginary part.

    Raises
    ------
    RuntimeError
        For a real tensor.
    """
    if not _is_complex(self):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return METHODS["select"](OPERATORS["view_as_real"].function(self), -1, 1)


# As in PyTorch, `z.real` and `z.imag` are attributes, `real(z)` and `imag(z)` functions.
METHODS["real"] = property(real)  # type: ignore[assignment]
METHODS["imag"] = property(imag)  # type: ignore[assignment]
