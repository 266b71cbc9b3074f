"""Reductions: over all elements, or over some dimensions."""

from __future__ import annotations

from functools import partial

import numpy

from ...kernels import threads
from ...kernels.broadcasting import sum_to
from ...kernels.casts import cast
from ...kernels.elementwise import is_shared
from ...kernels.row_sums import reduced, row_products, sums
from ...memory import device
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import (
    Array,
    Dims,
    DType,
    Formula,
    Gradient,
    Namespace,
    Operand,
    Out,
    Results,
    Shape,
    Sizes,
)
from ..declaration.keywords import numpy_dims
from ..declaration.registry import OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import HALVES, conj, is_half, over, single
from ..shape.reshape import axes_of, axis_of


def spread(g: Gradient, shape: Shape, dim: Dims, keepdim: bool, F: Namespace) -> Gradient:
    """Return `g`, the gradient of a reduction over `dim`, expanded to the shape that was reduced."""
    if not keepdim and shape:
        axes = reduced_axes(dim, len(shape))
        g = F.reshape(g, tuple(1 if i in axes else size for i, size in enumerate(shape)))
    return F.broadcast_to(g, tuple(shape))


def reduced_axes(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dimensions of a reduction, counted from the front."""
    return (dim,) if type(dim) is int and 0 <= dim < ndim else axes_of(dims_or_all(dim), ndim)


def dims_or_all(dim: Dims) -> Dims:
    """Return the dimensions of a reduction, to most of which an empty list of them stands for all."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim


def reduce_dtype(array: Array, dtype: DType) -> numpy.dtype:
    """Return the dtype that sums of `array` have: int64 for integers, as PyTorch."""
    if dtype is not None:
        return dtypes.to_dtype(dtype).numpy
    return dtypes.int64.numpy if array.dtype.kind in "iub" else array.dtype


def _sum_all(xp: Namespace, self: Array, dtype: DType = None) -> Array:
    if dtype is None and self.dtype.char in "fdFD":
        return reduced(xp.add, self)
    return _sum_as(xp, self, None, False, reduce_dtype(self, dtype))


def _sum_dim(xp: Namespace, self: Array, dim: Dims = None, keepdim: bool = False, dtype: DType = None) -> Array:
    axes = reduced_axes(dim, self.ndim)
    if dtype is None and self.dtype.char in "fd":
        total = sums(self, axes, keepdim)
    else:
        total = _sum_as(xp, self, axes, keepdim, reduce_dtype(self, dtype))
    # In row-major order whatever that of self, as in PyTorch: what follows may view() it.
    return total if total.flags.c_contiguous else xp.ascontiguousarray(total)


def _sum_as(xp: Namespace, array: Array, axes: Dims, keepdim: bool, kind: numpy.dtype) -> Array:
    """Return sums of a dtype; those of half precision are made in single and rounded once, as PyTorch's are."""
    if kind.char in HALVES:
        return cast(xp.add.reduce(array, axis=axes, dtype="float32", keepdims=keepdim), kind)
    return xp.add.reduce(array, axis=axes, dtype=kind, keepdims=keepdim)


operator(
    "sum.all(Tensor self, *, dtype? dtype=None)",
    _sum_all,
    method=False,
    node="SumBackward0",
    derivatives={"self": lambda g, self_shape, F: F.broadcast_to(g, self_shape)},
    doc="Add all elements.",
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {}), ((make(0, 2),), {})],
    reference="numpy.sum",
)
operator(
    "sum.dim(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)",
    _sum_dim,
    method=False,
    node="SumBackward1",
    derivatives={"self": lambda g, self_shape, dim, keepdim, F: spread(g, self_shape, dim, keepdim, F)},
    doc="Add along dimensions.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), (0, -1), True), {}), ((make(0, 2), 0), {})],
    reference=lambda self, dim, keepdim=False: numpy.sum(self, dim, keepdims=keepdim),
)


_sum_of_all, _sum_along = OPERATORS["sum.all"].function, OPERATORS["sum.dim"].function


@public(arrays=_sum_dim)
def sum(
    self: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
    axis: Dims = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Add all elements, or those along dimension(s) `dim`; integers give ``int64``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.sum(gs.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    if axis is not None or keepdims is not None:
        dim, keepdim = numpy_dims("sum", dim, keepdim, axis, keepdims)
    if out is not None:
        return inplace_and_out.into(
            out, "sum", [self], partial(sum, self, dim, keepdim, dtype=inplace_and_out.dtype_of(out, dtype))
        )
    if dim is None and not keepdim:
        return _sum_of_all(self, dtype=dtype)
    return _sum_along(self, dim, keepdim, dtype=dtype)


def count_of(shape: Shape, dim: Dims) -> int:
    """Return how many elements of an array of `shape` a reduction over `dim` brings together."""
    count = 1
    for axis in reduced_axes(dim, len(shape)):
        count *= shape[axis]
    return count


def _need_inexact(name: str, kind: numpy.dtype) -> None:
    """Refuse a mean in a dtype that holds no fractions."""
    if kind.kind not in dtypes.INEXACT:
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type(kind)}\nConvert the result."
        )


def _mean(xp: Namespace, self: Array, dim: Dims = None, keepdim: bool = False, dtype: DType = None) -> Array:
    if self.dtype.kind not in "fc" and dtype is None:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type(self.dtype)}\nConvert it with .float(), or give dtype=."
        )
    kind = self.dtype if dtype is None else dtypes.to_dtype(dtype).numpy
    if kind.char in HALVES:  # the sum may be beyond what half precision holds
        return cast(_mean(xp, self, dim, keepdim, "float32"), kind)
    _need_inexact("mean", kind)
    total = _sum_dim(xp, self, dim, keepdim, dtype)
    return total / total.dtype.type(count_of(self.shape, dim))


def _mean_self(g: Gradient, self_shape: Shape, dim: Dims, keepdim: bool, F: Namespace) -> Gradient:
    """Return the gradient as an array of its own, which whoever receives it may write, as that of PyTorch."""
    part = spread(over(g, count_of(self_shape, dim) or 1), self_shape, dim, keepdim, F)
    return F.clone(part, memory_format="contiguous")


operator(
    "mean.all(Tensor self, *, dtype? dtype=None)",
    lambda xp, self, dtype=None: _mean(xp, self, dtype=dtype),
    method=False,
    node="MeanBackward0",
    derivatives={"self": lambda g, self_shape, F: _mean_self(g, self_shape, None, False, F)},
    doc="Average all elements.",
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {})],
    reference="numpy.mean",
)
operator(
    "mean.dim(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)",
    _mean,
    method=False,
    node="MeanBackward1",
    derivatives={"self": _mean_self},
    doc="Average along dimensions.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), (0, 2), True), {})],
    reference=lambda self, dim, keepdim=False: numpy.mean(self, dim, keepdims=keepdim),
)


_mean_of_all, _mean_along = OPERATORS["mean.all"].function, OPERATORS["mean.dim"].function


@public(arrays=_mean)
def mean(
    self: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
    axis: Dims = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Average all elements, or those along dimension(s) `dim`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.mean(gs.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    tensor([3.0000, 2.5000])
    """
    if axis is not None or keepdims is not None:
        dim, keepdim = numpy_dims("mean", dim, keepdim, axis, keepdims)
    if out is not None:
        return inplace_and_out.into(out, "mean", [self], partial(mean, self, dim, keepdim, dtype=dtype))
    if dim is None and not keepdim:
        return _mean_of_all(self, dtype=dtype)
    return _mean_along(self, dim, keepdim, dtype=dtype)


@public(arrays=lambda xp, self, size: _sum_to(xp, self, size))
def sum_to_size(self: Tensor, *size: Sizes) -> Tensor:
    """Sum over the dimensions that broadcasting `size` to this shape would add or widen.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    extra = self._array.ndim - len(shape)
    dims = tuple(range(extra)) + tuple(
        i + extra for i, s in enumerate(shape) if s == 1 and self._array.shape[i + extra] != 1
    )
    if not shape:
        return _sum_of_all(self)
    if not dims:
        return self
    reduced = OPERATORS["sum.dim"].function(self, dims, True)
    return reduced.reshape(shape) if extra else reduced


def _sum_to(xp: Namespace, array: Array, size: Sizes) -> Array:
    return sum_to(array, tuple(size))


# --- products ---------------------------------------------------------------------------------------------------------


def _prod(xp: Namespace, self: Array, dim: Dims = None, keepdim: bool = False, dtype: DType = None) -> Array:
    axes, kind = axes_of(dim, self.ndim), reduce_dtype(self, dtype)
    if xp is numpy and axes == (self.ndim - 1,) and self.ndim > 1 and kind == self.dtype:
        found = row_products(self)
        return found[..., None] if keepdim else found
    return xp.multiply.reduce(self, axis=axes, dtype=kind, keepdims=keepdim)


def _prod_self(g: Gradient, self: Array, result: Array, dim: Dims, keepdim: bool, F: Namespace) -> Gradient:
    if not len(self.shape):
        return g
    zeros = _count_of_zeros(self, result)
    if not zeros:
        others = spread(result, self.shape, dim, keepdim, F) / self
    elif dim is not None:
        others = _products_of_others(self, dim, F)
    elif zeros > 1 and device.is_array(self):
        return F.zeros_like(self)  # beside an infinity too; where nobody differentiates it again
    else:
        others = _products_of_others(self.reshape(-1), 0, F).reshape(self.shape)
    return spread(g, self.shape, dim, keepdim, F) * conj(others)


def _count_of_zeros(factors: Array, products: Array) -> int:
    """Return how many factors are 0."""
    # A factor of 0 makes its product 0, or NaN where another factor is infinite: without such products there is none.
    array, product = (getattr(x, "_array", x) for x in (factors, products))
    lost: Array = (product == 0) | (product != product)
    if not device.to_host(lost.any()):
        return 0
    return int(device.to_host(device.array_module(array).count_nonzero(array == 0)))


def _products_of_others(self: Array, dim: int, F: Namespace) -> Array:
    """Return for each element the product of those before it and those after it along `dim`."""
    if self.shape[dim] == 1:
        return F.ones_like(self)

    def before(x: Array) -> Array:
        first = F.ones_like(F.slice(x, dim, 0, 1, 1))
        return F.cumprod(F.cat([first, F.slice(x, dim, 0, x.shape[dim] - 1, 1)], dim), dim)

    return before(self) * F.flip(before(F.flip(self, (dim,))), (dim,))


operator(
    "prod.all(Tensor self, *, dtype? dtype=None)",
    lambda xp, self, dtype=None: _prod(xp, self, dtype=dtype),
    method=False,
    derivatives={"self": lambda g, self, result, F: _prod_self(g, self, result, None, False, F)},
    doc="Multiply all elements.",
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {}), ((make(0, 2),), {})],
    reference="numpy.prod",
)
operator(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, dtype? dtype=None)",
    _prod,
    method=False,
    node="ProdBackward1",
    derivatives={"self": _prod_self},
    doc="Multiply along a dimension.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), -2, True), {}), ((make(0, 2), 0), {})],
    reference=lambda self, dim, keepdim=False: numpy.prod(self, dim, keepdims=keepdim),
)


@public(arrays=_prod)
def prod(
    self: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType = None, out: Tensor | None = None
) -> Tensor:
    """Multiply all elements, or those along dimension `dim`; integers give ``int64``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.prod(gs.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([3, 8])
    """
    if out is not None:
        return inplace_and_out.into(
            out, "prod", [self], partial(prod, self, dim, keepdim, dtype=inplace_and_out.dtype_of(out, dtype))
        )
    if dim is None:
        result = OPERATORS["prod.all"].function(self, dtype=dtype)
        return result.reshape((1,) * self._array.ndim) if keepdim else result
    return OPERATORS["prod.dim_int"].function(self, dim, keepdim, dtype=dtype)


# --- extremes ---------------------------------------------------------------------------------------------------------


def evenly(g: Gradient, self: Array, result: Array, F: Namespace) -> Gradient:
    """Return the gradient of a choice among all elements, shared by those equal to the result, or NaN as it."""
    mask = (self == result) | (self != self) & (result != result)
    # The others get 0, which an infinite gradient times a mask would not give them.
    return F.where(mask, g / F.sum(mask), F.zeros_like(self))


def _evenly_along(g: Gradient, self: Array, result: Array, dim: Dims, keepdim: bool, F: Namespace) -> Gradient:
    # Nothing is equal to NaN: it makes all shares NaN, as in PyTorch.
    mask = self == spread(result, self.shape, dim, keepdim, F)
    return mask * (spread(g, self.shape, dim, keepdim, F) / F.sum(mask, dim, True))


def _need_elements(name: str, array: Array, dim: Dims) -> None:
    if array.size:
        return
    if dims_or_all(dim) is None:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            f"the 'dim' argument.\nThe shape is {list(array.shape)}."
        )
    for axis in axes_of(dim, array.ndim):
        if not array.shape[axis]:
            raise IndexError(
                f"{name}(): Expected reduction dim {axis} to have non-zero size.\nThe shape is {list(array.shape)}."
            )


def _best(name: str) -> tuple[Formula, Formula, Formula]:
    """Return forwards of a maximum or minimum: of all, along dimensions, and along one with the indices."""

    def of_all(xp: Namespace, self: Array) -> Array:
        _need_elements(name, self, None)
        refuse_kinds(f"{name}_all", self, "c")
        if type(self) is numpy.ndarray:
            return reduced(getattr(numpy, f"{name}imum"), self)
        return getattr(self, name)()

    def along(xp: Namespace, self: Array, dim: Dims = (), keepdim: bool = False) -> Array:
        _need_elements("a" + name, self, dim)
        refuse_kinds(f"{name}_values_cpu", self, "c")
        axes = reduced_axes(dim, self.ndim)
        if len(axes) == 1 and is_shared(self):
            found = _along_lines(name, self, axes[0], self.dtype)
            return xp.expand_dims(found, axes) if keepdim else found
        return getattr(self, name)(axis=axes, keepdims=keepdim)

    def with_indices(xp: Namespace, self: Array, dim: int, keepdim: bool = False) -> Array:
        axis = axis_of(dim, self.ndim)
        refuse_kinds(f"{name}_cpu", self, "c")
        if self.ndim == 0:
            return self.copy(), xp.zeros((), dtype=xp.int64)
        _need_elements(name, self, dim)
        indices = xp.expand_dims(_along_lines("arg" + name, self, axis, _INDEX), axis)
        values = xp.take_along_axis(self, indices, axis=axis)
        if keepdim:
            return values, indices
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return values.reshape(shape), indices.reshape(shape)

    return of_all, along, with_indices


_INDEX = numpy.dtype(numpy.int64)


def _along_lines(name: str, array: Array, axis: int, kind: DType) -> Array:
    """Return what a method of arrays gives along an axis, as an array of a dtype; threads share the lines."""
    if not is_shared(array) or array.ndim < 2:
        return getattr(array, name)(axis=axis)
    result = numpy.empty(array.shape[:axis] + array.shape[axis + 1 :], kind)

    def work(lines: tuple[slice, ...]) -> None:
        lines += (slice(None),) * (axis + 1 - len(lines))
        getattr(array[lines], name)(axis=axis, out=result[lines[:axis] + lines[axis + 1 :]])

    threads.over_lines(array.shape, axis, work, quick=True)
    return result


def _chosen_self(g: Gradient, self_shape: Shape, dim: int, keepdim: bool, indices: Array, F: Namespace) -> Gradient:
    chosen = g[0]
    if not keepdim and len(self_shape):
        chosen, indices = F.unsqueeze(chosen, dim), F.unsqueeze(indices, dim)
    return F.gather_backward(chosen, self_shape, dim, indices)


def _along_reference(name: str) -> Formula:
    return lambda self, dim=None, keepdim=False: getattr(numpy, name)(self, axis=dim, keepdims=keepdim)


def _best_along(name: str) -> Formula:
    return lambda self, dim=(), keepdim=False: getattr(numpy, name)(self, dim or None, keepdims=keepdim)


def _first_of_best(name: str) -> Formula:
    def reference(self: Array, dim: int, keepdim: bool = False) -> Results:
        if not self.ndim:
            return self, numpy.int64(0)
        found = getattr(numpy, name), getattr(numpy, f"arg{name}")
        return [function(self, axis=dim, keepdims=keepdim) for function in found]

    return reference


for _name, _word in (("max", "largest"), ("min", "smallest")):
    _of_all, _along, _with_indices = _best(_name)
    operator(
        f"{_name}.all(Tensor self)",
        _of_all,
        out="castable",
        method=False,
        node=f"{_name.title()}Backward1",
        derivatives={"self": evenly},
        doc=f"Return the {_word} element; equal ones share the gradient.",
        samples=lambda make: [((make(2, 3),), {}), ((make(),), {})],
        reference=f"numpy.{_name}",
        supports="f",
    )
    operator(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False)",
        _with_indices,
        out=True,
        method=False,
        outputs=("values", "indices"),
        node=f"{_name.title()}Backward0",
        derivatives={"self": _chosen_self},
        doc=f"Return the {_word} elements along a dimension, and where they are.",
        samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), -2, True), {}), ((make(), 0), {})],
        reference=_first_of_best(_name),
        supports="f",
    )
    operator(
        f"a{_name}(Tensor self, int[]? dim=(), bool keepdim=False)",
        _along,
        out="exact",
        derivatives={
            "self": lambda g, self, result, dim, keepdim, F: _evenly_along(
                g, self, result, dims_or_all(dim), keepdim, F
            )
        },
        doc=f"Return the {_word} elements along dimensions; equal ones share the gradient.",
        samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 1), {}), ((make(2, 3, 4), (0, -1), True), {})],
        reference=_best_along(_name),
        supports="f",
    )


def _aminmax(xp: Namespace, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    dims = () if dim is None else dim
    return tuple(OPERATORS[name].run_forward(xp, self, dims, keepdim) for name in ("amin", "amax"))


def _aminmax_self(g: Gradient, self: Array, min: Array, max: Array, dim: Dims, keepdim: bool, F: Namespace) -> Gradient:
    dims = dims_or_all(() if dim is None else dim)
    found = [
        _evenly_along(gradient, self, result, dims, keepdim, F)
        for gradient, result in zip(g, (min, max), strict=True)
        if gradient is not None
    ]
    return found[0] if len(found) == 1 else found[0] + found[1]


operator(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False)",
    _aminmax,
    out=True,
    outputs=("min", "max"),
    graded=2,
    derivatives={"self": _aminmax_self},
    doc="Return the smallest and the largest element, of all or along a dimension; equal ones share the gradient.",
    samples=lambda make: [
        ((make(2, 3),), {}),
        ((make(2, 3),), {"dim": 1}),
        ((make(2, 3),), {"dim": 0, "keepdim": True}),
    ],
    reference=lambda self, dim=None, keepdim=False: [
        _along_reference(name)(self, dim, keepdim) for name in ("min", "max")
    ],
    supports="f",
)


def _extreme(name: str, self: Array, dim: Dims, keepdim: bool, other: Array, out: Out) -> Array:
    if other is not None or hasattr(dim, "_array"):
        return OPERATORS[f"{name}imum"].function(self, dim if other is None else other, out=out)
    if dim is None:
        return OPERATORS[f"{name}.all"].function(self, out=out)
    return OPERATORS[f"{name}.dim"].function(self, dim, keepdim, out=out)


@public
def max(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, other: Operand = None, out: Tensor | None = None
) -> Results:
    """Return the largest element, those along `dim` with indices, or (given a tensor) the elementwise maximum.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.max(gs.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    max(values=tensor([5., 3.]), indices=tensor([1, 0]))
    """
    return _extreme("max", self, dim, keepdim, other, out)


@public
def min(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, other: Operand = None, out: Tensor | None = None
) -> Results:
    """Return the smallest element, those along `dim` with indices, or (given a tensor) the elementwise minimum.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.min(gs.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    min(values=tensor([1., 2.]), indices=tensor([0, 1]))
    """
    return _extreme("min", self, dim, keepdim, other, out)


def _arg_best(name: str) -> Formula:
    def forward(xp: Namespace, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if self.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support bool input\nConvert it with .long().")
        refuse_kinds(f"{name}_cpu", self, "c")
        if dim is None and not self.size:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0.\n"
                f"The shape is {list(self.shape)}."
            )
        _need_elements(name, self, dim)
        if dim is None:
            found = xp.asarray(getattr(self.reshape(-1), name)())
            return found.reshape((1,) * self.ndim) if keepdim else found
        axis = axis_of(dim, self.ndim)
        if self.ndim == 0:
            return xp.zeros((), dtype=xp.int64)
        found = _along_lines(name, self, axis, _INDEX)
        return xp.expand_dims(found, axis) if keepdim else found

    return forward


for _name, _word in (("argmax", "largest"), ("argmin", "smallest")):
    operator(
        f"{_name}(Tensor self, int? dim=None, bool keepdim=False)",
        _arg_best(_name),
        out="exact",
        doc=f"Return where the {_word} element is: its flat position, or its index along `dim`.",
        samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), 0, True), {})],
        reference=_along_reference(_name),
    )

# --- truth and counts -------------------------------------------------------------------------------------------------


def _truth(name: str) -> Formula:
    def forward(xp: Namespace, self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
        found = getattr(self, name)(axis=axes_of(dim, self.ndim), keepdims=keepdim)
        return found.astype(self.dtype) if self.dtype.name == "uint8" else found

    return forward


for _name, _word in (("any", "any element is"), ("all", "all elements are")):
    operator(
        f"{_name}(Tensor self, int[]? dim=None, bool keepdim=False)",
        _truth(_name),
        out="castable",
        doc=f"Say whether {_word} nonzero.",
        samples=lambda make: [((make(2, 3) > 0,), {}), ((make(2, 3) > 0, 1), {}), ((make(2, 3), (0, 1), True), {})],
        reference=_along_reference(_name),
    )
operator(
    "count_nonzero(Tensor self, int[]? dim=None)",
    lambda xp, self, dim=None: (self != 0).sum(axis=reduced_axes(dim, self.ndim), dtype="int64"),
    doc="Count the elements that are not 0.",
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3) > 0, (1,)), {})],
    reference="numpy.count_nonzero",
)

# --- sums that skip NaN, and logarithms of sums -----------------------------------------------------------------------


def _nansum(xp: Namespace, self: Array, dim: Dims = None, keepdim: bool = False, dtype: DType = None) -> Array:
    if self.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs\nSum the real and the imaginary part.")
    return _sum_dim(xp, xp.where(self != self, xp.zeros_like(self), self), dim, keepdim, dtype)


operator(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    _nansum,
    derivatives={
        "self": lambda g, self, dim, keepdim, F: (self == self) * spread(g, self.shape, dim, keepdim, F),
    },
    out="castable",
    doc="Add the elements that are not NaN.",
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 1, True), {}), ((make(2, 3, 2), (0, 2)), {})],
    reference=lambda self, dim=None, keepdim=False: numpy.nansum(self, dim, keepdims=keepdim),
    supports="f",
)


@public
def nanmean(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType = None, out: Tensor | None = None
) -> Tensor:
    """Average the elements that are not NaN.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nanmean(gs.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    if out is not None:
        return inplace_and_out.into(out, "nanmean", [self], lambda: nanmean(self, dim, keepdim, dtype=dtype))
    if self._dtype.kind not in dtypes.INEXACT:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{scalar_type(self._dtype)}\nConvert it with .float()."
        )
    if dtype is not None:
        _need_inexact("nanmean", dtypes.to_dtype(dtype).numpy)
    count = (~OPERATORS["isnan"].function(self.detach())).sum(dim, keepdim)
    return OPERATORS["nansum"].function(self, dim, keepdim, dtype=dtype) / count


def _logsumexp(xp: Namespace, self: Array, dim: Dims, keepdim: bool = False) -> Array:
    if self.dtype.kind not in "fc":
        self = self.astype(dtypes.default_dtype.numpy)
    if is_half(self):
        return _logsumexp(xp, single(self), dim, keepdim).astype(self.dtype)
    axes = reduced_axes(dim, self.ndim)
    if not count_of(self.shape, dim):
        return xp.full(xp.add.reduce(self, axis=axes, keepdims=keepdim).shape, float("-inf"), dtype=self.dtype)
    top = self.real.max(axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    result = xp.log(sums(xp.exp(self - top), axes)) + top
    return result if keepdim else result.reshape(tuple(s for i, s in enumerate(self.shape) if i not in axes))


def _logsumexp_reference(self: Array, dim: Dims, keepdim: bool = False) -> Array:
    # SciPy loads when a test asks for the reference.
    from scipy.special import logsumexp

    return logsumexp(self, dim if self.ndim else None, keepdims=keepdim)


operator(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False)",
    _logsumexp,
    out="castable",
    alias=("special.logsumexp",),
    derivatives={
        "self": lambda g, self, result, dim, keepdim, F: (
            spread(g, self.shape, dim, keepdim, F) * conj(F.exp(self - spread(result, self.shape, dim, keepdim, F)))
        ),
    },
    doc="Return the logarithm of the sum of exponentials along dimensions, without overflow.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 4), (0, -1), True), {}), ((make(), 0), {})],
    reference=_logsumexp_reference,
)

del _name, _word, _of_all, _along, _with_indices
