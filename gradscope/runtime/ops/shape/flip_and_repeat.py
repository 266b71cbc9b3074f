"""Elements in other places: flips, rolls, repetitions, diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy

from ...kernels.copies import copy_into
from ...kernels.selection import reversed_rows, triangle
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.memory_format import check_memory
from ...memory.storage import in_order, restrided
from ...tensor.tensor import Tensor
from ..declaration.annotations import (
    Array,
    Device,
    Dims,
    DType,
    Formula,
    Gradient,
    Layout,
    Namespace,
    Number,
    Shape,
    Sizes,
)
from ..declaration.references import adjoint
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import in_rows
from .reshape import axes_of, axis_of, sizes_of

# --- flips and rolls --------------------------------------------------------------------------------------------------


def _flip(xp: Namespace, self: Array, dims: Dims) -> Array:
    axes = axes_of(tuple(dims), self.ndim)
    if axes == (self.ndim - 1,) and xp is numpy and self.flags.c_contiguous:
        return reversed_rows(self)
    back, forth = slice(None, None, -1), slice(None)
    result = xp.empty_like(in_order(self))
    copy_into(result, self[tuple(back if axis in axes else forth for axis in range(self.ndim))])
    return result


operator(
    "flip.dims(Tensor self, int[] dims)",
    _flip,
    method=False,
    derivatives={"self": lambda g, dims, F: F.flip(g, dims)},
    doc="Reverse dimensions.",
    samples=lambda make: [((make(2, 3), (0,)), {}), ((make(2, 3, 2), (0, -1)), {}), ((make(), ()), {})],
    reference="numpy.flip",
)


@public(arrays=_flip)
def flip(self: Tensor, *axes: Any, dims: Dims = None) -> Tensor:
    """Return a copy with dimensions reversed.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.flip(gs.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    if not axes and dims is None:
        raise TypeError('flip() missing 1 required positional arguments: "dims"\nSay which: flip(0).')
    return OPERATORS["flip.dims"].function(self, sizes_of(axes, "flip", "dims", dims))


@public
def fliplr(self: Tensor) -> Tensor:
    """Reverse the second dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fliplr(gs.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if self._array.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d.\nIts shape is {list(self.shape)}: use flip(0).")
    return OPERATORS["flip.dims"].function(self, (1,))


@public
def flipud(self: Tensor) -> Tensor:
    """Reverse the first dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.flipud(gs.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not self._array.ndim:
        raise RuntimeError("Input must be >= 1-d.\nA 0-d tensor has one element: there is nothing to reverse.")
    return OPERATORS["flip.dims"].function(self, (0,))


def _rot90(xp: Namespace, self: Array, k: int = 1, dims: Dims = (0, 1)) -> Array:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    first, second = (axis_of(dim, self.ndim) for dim in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if not turns:
        return self.copy()
    if turns == 2:
        return _flip(xp, self, (first, second))
    return _flip(xp, self.swapaxes(first, second), (first if turns == 1 else second,))


operator(
    "rot90(Tensor self, int k=1, int[] dims=(0, 1))",
    _rot90,
    derivatives={"self": lambda g, k, dims, F: F.rot90(g, -k, dims)},
    doc="Turn by 90 degrees, `k` times, in the plane of two dimensions, from the first towards the second.",
    samples=lambda make: [((make(2, 3), k), {}) for k in (1, 2, -1, 4)] + [((make(2, 3, 2), 1, (1, -1)), {})],
    reference=lambda self, k=1, dims=(0, 1): numpy.rot90(self, k, dims),
)


def _tuple(value: Dims) -> tuple[int, ...]:
    return (int(value),) if hasattr(value, "__index__") else tuple(value)


def _roll(xp: Namespace, self: Array, shifts: Sizes, dims: Dims = ()) -> Array:
    self, shifts, dims = in_rows(xp, self), _tuple(shifts), _tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required\nSay by how many places to roll.")
    if not dims and len(shifts) == 1:
        return xp.roll(self, shifts[0])
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return xp.roll(self, shifts, tuple(axis_of(dim, self.ndim) for dim in dims))


operator(
    "roll(Tensor self, int[] shifts, int[] dims=())",
    _roll,
    derivatives={"self": lambda g, shifts, dims, F: F.roll(g, tuple(-shift for shift in _tuple(shifts)), dims)},
    doc="Move elements along dimensions; what leaves at one end enters at the other.",
    samples=lambda make: [
        ((make(2, 3), (1,)), {}),
        ((make(2, 3), (1,), (1,)), {}),
        ((make(2, 3), (1, -2), (0, 1)), {}),
    ],
    reference=lambda self, shifts, dims=(): numpy.roll(self, shifts, dims or None),
)

# --- repetitions ------------------------------------------------------------------------------------------------------


def _repeat(xp: Namespace, self: Array, repeats: Sizes) -> Array:
    if len(repeats) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor\n"
            f"The repeats are {list(repeats)}, the shape {list(self.shape)}."
        )
    if any(count < 0 for count in repeats):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats {list(repeats)}")
    return in_rows(xp, xp.tile(self, tuple(repeats))) if repeats else self.copy()


def _repeat_self(g: Gradient, self_shape: Shape, repeats: Sizes, F: Namespace) -> Gradient:
    extra = len(repeats) - len(self_shape)
    shape: list[int] = []
    for count, size in zip(repeats, (*(1,) * extra, *self_shape), strict=True):
        shape += [count, size]
    summed = F.sum(F.reshape(g, tuple(shape)), tuple(range(0, len(shape), 2))) if shape else g
    return F.reshape(summed, self_shape)


operator(
    "repeat.sizes(Tensor self, int[] repeats)",
    _repeat,
    method=False,
    derivatives={"self": _repeat_self},
    doc="Repeat the tensor along its dimensions.",
    samples=lambda make: [((make(2, 3), (2, 1)), {}), ((make(3), (2, 2)), {}), ((make(), ()), {})],
    reference="numpy.tile",
)


@public(function_too=False)
def repeat(self: Tensor, *counts: Sizes, repeats: Sizes = None) -> Tensor:
    """Return a copy repeated so many times along each dimension, new ones in front.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1, 2]).repeat(2)
    tensor([1, 2, 1, 2])
    """
    return OPERATORS["repeat.sizes"].function(self, sizes_of(counts, "repeat", "repeats", repeats))


@public
def tile(self: Tensor, *repeats: Sizes, dims: Dims = None) -> Tensor:
    """Repeat along the last dimensions: as :meth:`repeat`, with 1 for the dimensions that are not named.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tile(gs.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    counts = sizes_of(repeats, "tile", "dims", dims)
    return OPERATORS["repeat.sizes"].function(self, (1,) * (self._array.ndim - len(counts)) + counts)


@public
def repeat_interleave(
    self: Tensor, repeats: Sizes = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element (each slice along `dim`) `repeats` times, a number or a tensor of one number each.

    Given one tensor of integers, return each position as often as it says. `output_size` is how many there will be:
    taken for PyTorch's sake, it spares nothing here.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return OPERATORS["positions"].function(self)
    if dim is None:
        self, dim = self.flatten(), 0
    axis = axis_of(dim, self._array.ndim)
    if hasattr(repeats, "_array") and repeats.numel() != 1:
        size = self._array.shape[axis]
        if repeats._array.shape != (size,):
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.numel()} and input.size({axis}) = {size}"
            )
        index = OPERATORS["positions"].function(repeats)
        return METHODS["index_select"](self, axis, index)
    count = int(repeats)
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = list(self._array.shape)
    spread = METHODS["unsqueeze"](self, axis + 1).expand(*shape[: axis + 1], count, *shape[axis + 1 :])
    return spread.clone(memory_format="contiguous").flatten(axis, axis + 1)


def _positions(xp: Namespace, repeats: Array) -> Array:
    if repeats.ndim != 1:
        raise RuntimeError(f"repeat_interleave only accept 1D vector as repeat\nIts shape is {list(repeats.shape)}.")
    refuse_kinds("repeat_interleave_cpu", repeats, "bfc")
    counts = devices.to_host(repeats)  # how large the result is depends on them
    if counts.size and counts.min() < 0:
        raise RuntimeError(f"repeats can not be negative\nThe smallest is {counts.min()}.")
    return xp.repeat(xp.arange(counts.size), counts.tolist())


operator(
    "positions(Tensor repeats)",
    _positions,
    method=False,
    public_name=False,
    doc="Return 0, 1, 2, ... each as often as `repeats` says.",
)

# --- diagonals --------------------------------------------------------------------------------------------------------


def _diagonal(xp: Namespace, self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    # A strided view: NumPy's own diagonal() may not be written.
    ndim = self.ndim
    a, b = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = self.shape[a], self.shape[b]
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    start = [slice(None)] * ndim
    if count > 0:
        start[a], start[b] = slice(max(-offset, 0), None), slice(max(offset, 0), None)
    corner = self[tuple(start)]
    kept = [axis for axis in range(ndim) if axis not in (a, b)]
    shape = (*(self.shape[axis] for axis in kept), max(count, 0))
    strides = (*(self.strides[axis] for axis in kept), self.strides[a] + self.strides[b])
    return restrided(corner, shape, strides)


def _diagonal_backward(xp: Namespace, self: Array, size: Sizes, offset: int, dim1: int, dim2: int) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    _diagonal(xp, whole, offset, dim1, dim2)[...] = self
    return whole


operator(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1)",
    _diagonal,
    view="always",
    derivatives={
        "self": lambda g, self_shape, offset, dim1, dim2, F: F.diagonal_backward(g, self_shape, offset, dim1, dim2),
    },
    doc="View a diagonal of two dimensions as the last dimension.",
    samples=lambda make: [
        ((make(3, 4),), {}),
        ((make(3, 4), 1), {}),
        ((make(2, 3, 3), -1, 1, 2), {}),
        ((make(2, 2), 5), {}),
    ],
    reference="numpy.diagonal",
)
operator(
    "diagonal_backward(Tensor self, int[] size, int offset, int dim1, int dim2)",
    _diagonal_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, offset, dim1, dim2, F: F.diagonal(g, offset, dim1, dim2)},
    doc="The adjoint of diagonal: zeros but for a diagonal.",
    samples=lambda make: [((make(3), (3, 4), 0, 0, 1), {})],
    reference=lambda self, size, *where: adjoint(lambda x: numpy.diagonal(x, *where), size, self),
)


def _diag_embed(xp: Namespace, self: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    ndim = self.ndim + 1
    a, b = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = self.shape[-1] + abs(offset)
    rest = list(self.shape[:-1])
    size = [side if axis in (a, b) else rest.pop(0) for axis in range(ndim)]
    return _diagonal_backward(xp, self, size, offset, a, b)


def _diag_embed_reference(self: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    size = self.shape[-1] + abs(offset)
    matrices = numpy.zeros((*self.shape[:-1], size, size), dtype=self.dtype)
    rows = numpy.arange(self.shape[-1])
    matrices[..., rows + max(0, -offset), rows + max(0, offset)] = self
    return numpy.moveaxis(matrices, (-2, -1), (dim1, dim2))


operator(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)",
    _diag_embed,
    derivatives={"self": lambda g, offset, dim1, dim2, F: F.diagonal(g, offset, dim1, dim2)},
    doc="Return matrices of zeros with the last dimension on a diagonal.",
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), -1, 0, 2), {})],
    reference=_diag_embed_reference,
)


def _diagonal_scatter(xp: Namespace, self: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    result = self.copy()
    part = _diagonal(xp, result, offset, dim1, dim2)
    if src.shape != part.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(part.shape)}\nIn diagonal_scatter()."
        )
    part[...] = src
    return result


def _diagonal_scatter_reference(self: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    result = self.copy()
    part = numpy.diagonal(result, offset, dim1, dim2)
    part.flags.writeable = True
    part[...] = src
    return result


operator(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)",
    _diagonal_scatter,
    derivatives={
        "self": lambda g, offset, dim1, dim2, F: F.diagonal_scatter(
            g, F.zeros_like(F.diagonal(g, offset, dim1, dim2)), offset, dim1, dim2
        ),
        "src": lambda g, offset, dim1, dim2, F: F.diagonal(g, offset, dim1, dim2),
    },
    out=True,
    doc="Return a copy of `self` with `src` on a diagonal.",
    samples=lambda make: [((make(3, 3), make(3)), {}), ((make(2, 3), make(2), 1), {})],
    reference=_diagonal_scatter_reference,
    supports="f",
)


@public(function_too=False)
def fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Fill the main diagonal with a number: of a matrix, or of a tensor whose dimensions have one size.

    Parameters
    ----------
    wrap : bool
        Begin anew after the last column of a tall matrix, one row below.
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1\nThe tensor needs two dimensions at least.")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"all dimensions of input must be of equal length\nThe shape is {list(shape)}.")
    count, strides = min(shape), self.stride()
    METHODS["fill_"](self.as_strided((count,), (sum(strides),), self.storage_offset()), fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        offset = self.storage_offset() + strides[0] * (shape[1] + 1)
        rest = self.as_strided((shape[0] - shape[1] - 1, shape[1]), strides, offset)
        fill_diagonal_(rest, fill_value, wrap)
    return self


@public
def diag(self: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.diag(gs.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if out is not None:
        return inplace_and_out.into(out, "diag", [self], lambda: diag(self, diagonal), exact=True)
    if self._array.ndim == 1:
        return OPERATORS["diag_embed"].function(self, diagonal)
    if self._array.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self._array.ndim}D")
    return OPERATORS["diagonal_copy"].function(self, diagonal)


@public
def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix with all elements on a diagonal.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.diagflat(gs.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return OPERATORS["diag_embed"].function(self.reshape(-1), offset)


def _trace(xp: Namespace, self: Array) -> Array:
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    refuse_kinds("trace", self, "b")
    return self.trace(dtype="int64" if self.dtype.kind in "iu" else self.dtype)


operator(
    "trace(Tensor self)",
    _trace,
    derivatives={
        "self": lambda g, self_shape, F: F.diagonal_backward(
            F.broadcast_to(g, (min(self_shape),)), self_shape, 0, 0, 1
        ),
    },
    doc="Add the elements on the diagonal of a matrix.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 4),), {})],
    reference="numpy.trace",
)

# --- windows ----------------------------------------------------------------------------------------------------------


def _unfold(xp: Namespace, self: Array, dimension: int, size: int, step: int) -> Array:
    axis = axis_of(dimension, self.ndim)
    length = self.shape[axis] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not self.ndim:
        return restrided(self, (size,), (self.itemsize,))
    shape, strides = list(self.shape), list(self.strides)
    shape[axis], strides[axis] = (length - size) // step + 1, strides[axis] * step
    return restrided(self, (*shape, size), (*strides, self.strides[axis]))


def _unfold_backward(xp: Namespace, self: Array, input_sizes: Shape, dim: int, size: int, step: int) -> Array:
    whole = xp.zeros(input_sizes, dtype=self.dtype)
    if not whole.ndim:
        return whole + self.sum()
    axis = axis_of(dim, whole.ndim)
    count = self.shape[axis]
    for position in range(size):
        window = slice(position, position + (count - 1) * step + 1, step)
        whole[(*(slice(None),) * axis, window)] += self[..., position]
    return whole


def _unfold_reference(self: Array, dimension: int, size: int, step: int) -> Array:
    windows = numpy.lib.stride_tricks.sliding_window_view(self, size, dimension)
    return numpy.take(windows, range(0, windows.shape[dimension], step), dimension)


operator(
    "unfold(Tensor self, int dimension, int size, int step)",
    _unfold,
    view="always",
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, self_shape, dimension, size, step, F: F.unfold_backward(g, self_shape, dimension, size, step)
    },
    doc="View all windows of `size` elements along a dimension, `step` apart, in a new last dimension.",
    samples=lambda make: [((make(5), 0, 2, 1), {}), ((make(2, 6), 1, 3, 2), {}), ((make(4, 2), 0, 2, 2), {})],
    reference=_unfold_reference,
)
operator(
    "unfold_backward(Tensor self, int[] input_sizes, int dim, int size, int step)",
    _unfold_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, size, step, F: F.unfold(g, dim, size, step)},
    doc="The adjoint of unfold: zeros, to which each window is added where it came from.",
    samples=lambda make: [((make(4, 2), (5,), 0, 2, 1), {}), ((make(2, 2, 3), (2, 6), 1, 3, 2), {})],
    reference=lambda self, sizes, *window: adjoint(lambda x: _unfold_reference(x, *window), sizes, self),
)
METHODS["unfold"] = OPERATORS["unfold"].function

# --- triangles --------------------------------------------------------------------------------------------------------


def _triangle(name: str) -> Formula:
    def forward(xp: Namespace, self: Array, diagonal: int = 0) -> Array:
        if self.ndim < 2:
            raise RuntimeError(
                f"{name}: input tensor must have at least 2 dimensions\nIts shape is {list(self.shape)}."
            )
        return triangle(self, diagonal, lower=name == "tril") if xp is numpy else getattr(xp, name)(self, diagonal)

    return forward


operator(
    "tril(Tensor self, int diagonal=0)",
    _triangle("tril"),
    inplace=True,
    expanded="allowed",
    out=True,
    derivatives={"self": lambda g, diagonal, F: F.tril(g, diagonal)},
    doc="Return the lower triangle of matrices; the rest is 0.",
    samples=lambda make: [((make(3, 4),), {}), ((make(2, 3, 3), -1), {})],
    reference="numpy.tril",
)
operator(
    "triu(Tensor self, int diagonal=0)",
    _triangle("triu"),
    inplace=True,
    expanded="allowed",
    out=True,
    derivatives={"self": lambda g, diagonal, F: F.triu(g, diagonal)},
    doc="Return the upper triangle of matrices; the rest is 0.",
    samples=lambda make: [((make(3, 4),), {}), ((make(2, 3, 3), 1), {})],
    reference="numpy.triu",
)


@public(method=True)
def outer(self: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the outer product of two vectors.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.outer(gs.tensor([1.0, 2.0]), gs.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for position, vector in enumerate((self, vec2), 1):
        if vector._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {'self' if position == 1 else 'vec2'}, but got {vector._array.ndim}-D"
            )
    return METHODS["mul"](self.reshape(self.numel(), 1), vec2, out=out)


def _triangle_indices(name: str, row: int, col: int, offset: int, dtype: DType, device: Device) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}(): row and col must be non-negative, got {row} and {col}")
    xp = devices.module_for(devices.wanted(device))
    found = getattr(xp, name)(row, offset, col)
    kind = dtypes.int64 if dtype is None else dtypes.to_dtype(dtype)
    return _wrapped(xp.stack(found).astype(kind.numpy))


def _wrapped(array: Array) -> Array:
    return Tensor._wrap(array)


@public(method=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = None,
    device: Device = None,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return the indices of the lower triangle of a matrix, rows above columns.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    if layout is not None or pin_memory:
        check_memory("tril_indices", layout, pin_memory)
    return _triangle_indices("tril_indices", row, col, offset, dtype, device)


@public(method=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = None,
    device: Device = None,
    layout: Layout = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return the indices of the upper triangle of a matrix, rows above columns.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    if layout is not None or pin_memory:
        check_memory("triu_indices", layout, pin_memory)
    return _triangle_indices("triu_indices", row, col, offset, dtype, device)
