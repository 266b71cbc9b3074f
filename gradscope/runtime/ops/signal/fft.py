"""Fourier transforms: of complex numbers, of real ones, and back to real ones.

The public functions are in :mod:`gradscope.fft`. A transform is linear; its derivative is the transform with the sign
of the exponent turned and the same scale.

References
----------
J. W. Cooley, J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy

from ...memory.bfloat16 import BFloat16Array
from ...memory.dtype import scalar_type
from ..declaration.annotations import Argument, Array, Cases, Dims, Gradient, Make, Namespace, Shape
from ..declaration.registry import operator
from ..declaration.samples import Samples
from ..execution.bare_functions import is_half

__all__ = ["BY_COUNT", "BY_ROOT", "UNSCALED", "refuse_halves"]

UNSCALED, BY_ROOT, BY_COUNT = range(3)
"""What a transform is divided by: 1, the root of the number of points, or that number."""

_FORTH = ("backward", "ortho", "forward")
_BACK = ("forward", "ortho", "backward")


def _complex_like(xp: Namespace, array: Array, like: Array) -> Array:
    """Return a result in the precision of `like`."""
    return array.astype(xp.complex64 if like.dtype in (xp.float32, xp.complex64) else xp.complex128, copy=False)


_LEAST = 1 << 14


def _transforms(xp: Namespace, array: Array) -> Namespace:
    """Return the module of transforms: of large arrays on the CPU SciPy's, which computes several lines at once."""
    if xp is not numpy or array.size < _LEAST:
        return xp.fft
    import scipy.fft  # at first use: it takes longer to import than all of gradscope

    return scipy.fft


def _complex(xp: Namespace, self: Array, dim: Dims, normalization: int, forth: bool) -> Array:
    if not dim:
        return self.copy()
    module = _transforms(xp, self)
    transform, names = (module.fftn, _FORTH) if forth else (module.ifftn, _BACK)
    return _complex_like(xp, transform(self, axes=tuple(dim), norm=names[normalization]), self)


def refuse_halves(array: Array) -> None:
    """Raise for half precision, of which there are no complex numbers."""
    if is_half(array) or type(array) is BFloat16Array:
        raise RuntimeError(f"Unsupported dtype {scalar_type(array.dtype)}\nConvert it with .float().")


def _from_real(xp: Namespace, self: Array, dim: Dims, normalization: int, onesided: bool) -> Array:
    refuse_halves(self)
    module = _transforms(xp, self)
    transform = module.rfftn if onesided else module.fftn
    return _complex_like(xp, transform(self, axes=tuple(dim), norm=_FORTH[normalization]), self)


def _to_real(xp: Namespace, self: Array, dim: Dims, normalization: int, last_dim_size: int) -> Array:
    sizes = [*(self.shape[axis] for axis in dim[:-1]), last_dim_size]
    found = _transforms(xp, self).irfftn(self, s=sizes, axes=tuple(dim), norm=_BACK[normalization])
    return found.astype(xp.float32 if self.dtype == xp.complex64 else xp.float64, copy=False)


def _along(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    """Return a part of a dimension of an array or a tensor."""
    return x[(*(slice(None),) * (axis % len(x.shape)), slice(start, stop))]


def _from_real_backward(
    g: Gradient, self_shape: Shape, dim: Dims, normalization: int, onesided: bool, F: Namespace
) -> Gradient:
    axis = dim[-1]
    missing = self_shape[axis] - g.shape[axis] if onesided else 0
    if missing:
        # The other half of the spectrum, which was not returned, has no gradient.
        g = F.cat([g, F.zeros_like(_along(g, axis, 0, missing))], axis)
    return F.real(F._fft_c2c(g, dim, normalization, False))


def _to_real_backward(g: Gradient, dim: Dims, normalization: int, last_dim_size: int, F: Namespace) -> Gradient:
    half = F._fft_r2c(g, dim, normalization, True)
    axis = dim[-1]
    # All but the first, and the last of an even number, stand for their conjugates too.
    twice = last_dim_size - half.shape[axis]
    parts = [_along(half, axis, 0, 1), _along(half, axis, 1, 1 + twice) * 2, _along(half, axis, 1 + twice, None)]
    return F.cat([part for part in parts if part.shape[axis]], axis)


def _cases(kind: str, *last: Argument) -> Samples:
    def samples(make: Make) -> Cases:
        shapes = (((5,), [0]), ((3, 4), [1]), ((4, 3), [0]), ((2, 3, 4), [0, 2]), ((2, 3, 5), [1, 2]))
        return [
            ((make(*shape, dtype=kind), dim, normalization, *last), {})
            for (shape, dim), normalization in zip(shapes, (0, 1, 2, 0, 2), strict=True)
        ]

    return samples


def _complex_reference(self: Array, dim: Dims, normalization: int, forth: bool) -> Array:
    """The sum of the definition, one dimension after the other."""
    found = self.astype(complex)
    for axis in dim:
        count = self.shape[axis]
        angle = (-2j if forth else 2j) * math.pi * numpy.outer(range(count), range(count)) / count
        found = numpy.moveaxis(numpy.tensordot(numpy.exp(angle), found, (1, axis)), 0, axis)
        found = found / (1, math.sqrt(count), count)[normalization]
    return found


def _from_real_reference(self: Array, dim: Dims, normalization: int, onesided: bool) -> Array:
    found = _complex_reference(self, dim, normalization, True)
    return numpy.take(found, range(self.shape[dim[-1]] // 2 + 1), dim[-1]) if onesided else found


def _to_real_reference(self: Array, dim: Dims, normalization: int, last_dim_size: int) -> Array:
    names: tuple[Literal["forward", "ortho", "backward"], ...] = ("forward", "ortho", "backward")
    sizes = [*(self.shape[axis] for axis in dim[:-1]), last_dim_size]
    return numpy.fft.irfftn(self, sizes, dim, names[normalization])


operator(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forth)",
    _complex,
    method=False,
    public_name=False,
    node="FftC2CBackward0",
    derivatives={"self": lambda g, dim, normalization, forth, F: F._fft_c2c(g, dim, normalization, not forth)},
    doc="Return the Fourier transform of complex numbers, or its inverse.",
    samples=lambda make: _cases("complex128", True)(make) + _cases("complex128", False)(make),
    reference=_complex_reference,
)
operator(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided)",
    _from_real,
    method=False,
    public_name=False,
    node="FftR2CBackward0",
    derivatives={"self": _from_real_backward},
    doc="Return the Fourier transform of real numbers, or the half of it that determines the rest.",
    samples=lambda make: _cases("float64", True)(make) + _cases("float64", False)(make),
    reference=_from_real_reference,
    supports="f",
)
operator(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size)",
    _to_real,
    method=False,
    public_name=False,
    node="FftC2RBackward0",
    derivatives={"self": _to_real_backward},
    doc="Return the real numbers with a Fourier transform of which this is one half.",
    samples=lambda make: [
        ((make(*shape, dtype="complex128"), dim, normalization, size), {})
        for shape, dim, normalization, size in (
            ((3,), [0], 0, 5),
            ((2, 3), [1], 1, 4),
            ((3, 2), [0], 2, 5),
            ((3, 2, 4), [0, 2], 0, 7),
            ((2, 1), [1], 0, 1),
        )
    ],
    reference=_to_real_reference,
)
