"""Reductions: over all elements, or over some dimensions."""

from __future__ import annotations

from typing import Any

from .. import dtype as dtypes
from .registry import OPERATORS, operator, public
from .shapes import axes_of


def spread(g: Any, shape: Any, dim: Any, keepdim: bool, F: Any) -> Any:
    """Return `g`, the gradient of a reduction over `dim`, expanded to the shape that was reduced."""
    if not keepdim and shape:
        axes = axes_of(dim, len(shape))
        g = F.reshape(g, tuple(1 if i in axes else size for i, size in enumerate(shape)))
    return F.broadcast_to(g, tuple(shape))


def reduce_dtype(array: Any, dtype: Any) -> Any:
    """Return the dtype that sums of `array` have: int64 for integers, as PyTorch."""
    if dtype is not None:
        return dtypes.to_dtype(dtype).numpy
    return dtypes.int64.numpy if array.dtype.kind in "iub" else array.dtype


def _sum_all(xp: Any, self: Any, dtype: Any = None) -> Any:
    return xp.add.reduce(self, axis=None, dtype=reduce_dtype(self, dtype))


def _sum_dim(xp: Any, self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return xp.add.reduce(self, axis=axes_of(dim, self.ndim), dtype=reduce_dtype(self, dtype), keepdims=keepdim)


operator("sum.all(Tensor self, *, dtype? dtype=None)", _sum_all, method=False, node="SumBackward0",
         derivatives={"self": lambda g, self_shape, F: F.broadcast_to(g, self_shape)}, doc="Add all elements.",
         samples=lambda make: [((make(2, 3),), {}), ((make(),), {}), ((make(0, 2),), {})])
operator("sum.dim(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)", _sum_dim, method=False,
         node="SumBackward1",
         derivatives={"self": lambda g, self_shape, dim, keepdim, F: spread(g, self_shape, dim, keepdim, F)},
         doc="Add along dimensions.",
         samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), (0, -1), True), {}), ((make(0, 2), 0), {})])


@public(arrays=_sum_dim)
def sum(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Add all elements, or those along dimension(s) `dim`; integers give ``int64``."""
    if dim is None:
        return OPERATORS["sum.all"].function(self, dtype=dtype)
    return OPERATORS["sum.dim"].function(self, dim, keepdim, dtype=dtype)


def _count(shape: Any, dim: Any) -> int:
    count = 1
    for axis in axes_of(dim, len(shape)):
        count *= shape[axis]
    return count


def _mean(xp: Any, self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if self.dtype.kind not in "fc" and dtype is None:
        name = dtypes.BY_NUMPY[self.dtype].legacy_name.removesuffix("Tensor")
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {name}"
        )
    total = _sum_dim(xp, self, dim, keepdim, dtype)
    return total / total.dtype.type(_count(self.shape, dim))


operator("mean.all(Tensor self, *, dtype? dtype=None)", lambda xp, self, dtype=None: _mean(xp, self, dtype=dtype),
         method=False, node="MeanBackward0",
         derivatives={"self": lambda g, self_shape, F: F.broadcast_to(g / max(_count(self_shape, None), 1),
                                                                      self_shape)},
         doc="Average all elements.", samples=lambda make: [((make(2, 3),), {}), ((make(),), {})])
operator("mean.dim(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)", _mean, method=False,
         node="MeanBackward1",
         derivatives={"self": lambda g, self_shape, dim, keepdim, F: spread(
             g / max(_count(self_shape, dim), 1), self_shape, dim, keepdim, F)},
         doc="Average along dimensions.",
         samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), (0, 2), True), {})])


@public(arrays=_mean)
def mean(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Average all elements, or those along dimension(s) `dim`."""
    if dim is None:
        return OPERATORS["mean.all"].function(self, dtype=dtype)
    return OPERATORS["mean.dim"].function(self, dim, keepdim, dtype=dtype)


@public(arrays=lambda xp, self, size: _sum_to(xp, self, size))
def sum_to_size(self: Any, *size: Any) -> Any:
    """Sum over the dimensions that broadcasting `size` to this shape would add or widen."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    extra = self._array.ndim - len(shape)
    dims = tuple(range(extra)) + tuple(
        i + extra for i, s in enumerate(shape) if s == 1 and self._array.shape[i + extra] != 1
    )
    if not dims:
        return self
    reduced = OPERATORS["sum.dim"].function(self, dims, True)
    return reduced.reshape(shape) if extra else reduced


def _sum_to(xp: Any, array: Any, size: Any) -> Any:
    from .arrays import sum_to

    return sum_to(array, tuple(size))
