"""Parts of a tensor, and tensors of parts: select, slice, cat, stack, unbind, split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...kernels.copies import joined
from ...kernels.threads import sharing
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.storage import empty_part
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Formula, Gradient, Index, Ints, Namespace, Operand, Shape, Sizes
from ..declaration.references import adjoint, placed
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.array_errors import BadValueError
from ..execution.bare_functions import in_rows
from .reshape import WHOLE, axis_of

# --- parts ------------------------------------------------------------------------------------------------------------


def _at(axis: int, index: Array) -> tuple[Index, ...]:
    return WHOLE * axis + (index,)


def _select(xp: Namespace, self: Array, dim: int, index: int) -> Array:
    if type(index) is int and dim == 0:  # what x[i] asks for
        try:
            return self[index, ...]
        except IndexError:
            pass
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, self.ndim)
    size = self.shape[axis]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    try:
        return self[(*_at(axis, index), Ellipsis)]
    except IndexError:
        raise TypeError(
            f"select(): argument 'index' must be int, not {index.__class__.__name__}\nRound it first: int(...)."
        ) from None


def _select_backward(xp: Namespace, self: Array, size: Sizes, dim: int, index: int) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    whole[_at(axis_of(dim, len(size)), index)] = self
    return whole


select = operator(
    "select(Tensor self, int dim, int index)",
    _select,
    view="always",
    derivatives={"self": lambda g, self_shape, dim, index, F: F.select_backward(g, self_shape, dim, index)},
    doc="View one index of one dimension.",
    samples=lambda make: [((make(3, 2), 0, 1), {}), ((make(2, 3), -1, -1), {}), ((make(3), 0, 2), {})],
    reference=lambda self, dim, index: numpy.take(self, index, dim),
)
operator(
    "select_backward(Tensor self, int[] size, int dim, int index)",
    _select_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.select(g, dim, index)},
    doc="The adjoint of select: zeros but for one index.",
    samples=lambda make: [((make(2), (3, 2), 0, 1), {})],
    reference=lambda self, size, dim, index: adjoint(lambda x: numpy.take(x, index, dim), size, self),
)


def _slice(xp: Namespace, self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    try:
        part = self[start:end:step] if dim == 0 else self[_at(axis_of(dim, self.ndim), slice(start, end, step))]
        return part if part.size else _without_elements(self, part, axis_of(dim, self.ndim), start)
    except IndexError:
        if self.ndim:
            raise
        raise IndexError("slice() cannot be applied to a 0-dim tensor.\nGive it one: tensor.reshape(1).") from None


def _without_elements(self: Array, part: Array, axis: int, start: int | None) -> Array:
    """Return the empty `part` of `self`, which begins at `start` of one dimension also if it ends there."""
    return part if part.shape[axis] else empty_part(self, axis, slice(start, None).indices(self.shape[axis])[0])


def _slice_backward(xp: Namespace, self: Array, size: Sizes, dim: int, start: Array, end: Array, step: int) -> Array:
    whole = xp.zeros(size, dtype=self.dtype)
    whole[_at(axis_of(dim, len(size)), slice(start, end, step))] = self
    return whole


def _slice_index(self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return (*[slice(None)] * (dim % self.ndim), slice(start, end, step))


def _slice_reference(self: Array, *part: Any) -> Array:
    return self[_slice_index(self, *part)]


slice_ = operator(
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)",
    _slice,
    view="always",
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, self_shape, dim, start, end, step, F: F.slice_backward(g, self_shape, dim, start, end, step)
    },
    doc="View a range of one dimension.",
    samples=lambda make: [((make(5, 2), 0, 1, 4, 2), {}), ((make(3), 0, None, None, 1), {})],
    reference=_slice_reference,
)
operator(
    "slice_backward(Tensor self, int[] size, int dim, int? start, int? end, int step)",
    _slice_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, start, end, step, F: F.slice(g, dim, start, end, step)},
    doc="The adjoint of slice.",
    samples=lambda make: [((make(2, 2), (5, 2), 0, 1, 4, 2), {})],
    reference=lambda self, size, *part: adjoint(lambda x: _slice_reference(x, *part), size, self),
)


@public
def narrow(self: Tensor, dim: int, start: Operand, length: int) -> Tensor:
    """View `length` indices of dimension `dim` from `start`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.narrow(gs.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    if self._array.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.\nGive it a dimension: tensor.reshape(1).")
    if hasattr(start, "_array"):
        if start._array.ndim or start._dtype.kind not in "iu":
            raise RuntimeError(
                f"start must be an 0-dim integral Tensor.\nIt is of {start.dtype}, with shape {list(start.shape)}."
            )
        start = int(start)
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative.\nIt is {length}.")
    axis = axis_of(dim, self._array.ndim)
    size = self._array.shape[axis]
    if not -size <= start <= size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})")
    begin = start + size if start < 0 else start
    if begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return OPERATORS["slice"].function(self, axis, begin, begin + length, 1)


# --- parts written into a copy ----------------------------------------------------------------------------------------


def _need_shape(name: str, src: Array, shape: Shape) -> None:
    if src.shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(shape)}\nIn {name}()."
        )


def _scattering(name: str, view: Formula) -> Formula:
    """Return the forward that writes `src` into the part of a copy of `self` that `view` shows."""

    def forward(xp: Namespace, self: Array, src: Array, *where: Any) -> Array:
        result = self.copy()
        part = view(xp, result, *where)
        _need_shape(name, src, part.shape)
        part[...] = src
        return result

    return forward


operator(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)",
    _scattering(
        "slice_scatter", lambda xp, self, dim=0, start=None, end=None, step=1: _slice(xp, self, dim, start, end, step)
    ),
    derivatives={
        "self": lambda g, dim, start, end, step, F: F.slice_scatter(
            g, F.zeros_like(F.slice(g, dim, start, end, step)), dim, start, end, step
        ),
        "src": lambda g, dim, start, end, step, F: F.slice(g, dim, start, end, step),
    },
    out=True,
    doc="Return a copy of `self` with `src` in a range of one dimension.",
    samples=lambda make: [((make(5, 2), make(2, 2), 0, 1, 4, 2), {}), ((make(3), make(3)), {})],
    reference=lambda self, src, *part: placed(self, _slice_index(self, *part), src),
    supports="f",
)
operator(
    "select_scatter(Tensor self, Tensor src, int dim, int index)",
    _scattering("select_scatter", _select),
    derivatives={
        "self": lambda g, dim, index, F: F.select_scatter(g, F.zeros_like(F.select(g, dim, index)), dim, index),
        "src": lambda g, dim, index, F: F.select(g, dim, index),
    },
    out=True,
    doc="Return a copy of `self` with `src` at one index of one dimension.",
    samples=lambda make: [((make(3, 2), make(2), 0, 1), {}), ((make(2, 3), make(2), -1, -1), {})],
    reference=lambda self, src, dim, index: placed(self, (*[slice(None)] * (dim % self.ndim), index), src),
    supports="f",
)

# --- joining and splitting --------------------------------------------------------------------------------------------


def _cat(xp: Namespace, tensors: Array, dim: int) -> Array:
    kind = tensors[0].dtype if tensors else None
    for array in tensors:
        if array.dtype is not kind:
            kind = None
    if xp is numpy and type(dim) is int and kind is not None and tensors[0].size:
        try:
            if sharing:
                return joined(tensors, dim)
            whole = xp.concatenate(tensors, dim)
            return whole if whole.flags.c_contiguous else in_rows(xp, whole)
        except (ValueError, TypeError):
            pass  # something does not fit, which is told in PyTorch's words, or a tensor is empty and does not count
    arrays = _joinable(tensors, dim)
    return in_rows(xp, xp.concatenate(arrays, axis_of(dim, arrays[0].ndim)))


def _joinable(tensors: list[Array], dim: int) -> list[Array]:
    """Return what of arrays is joined, in one dtype; raise where they do not fit."""
    arrays = [a for a in tensors if a.ndim != 1 or a.shape[0]] or tensors
    if not arrays:
        raise BadValueError("cat(): expected a non-empty list of Tensors")
    for position, array in enumerate(tensors):
        if array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    axis = axis_of(dim, arrays[0].ndim)
    if any(a.shape != arrays[0].shape for a in arrays):
        _check_joinable(tensors, arrays[0], axis)
    found: list[Array] = _of_one_dtype(arrays, tensors)
    return found


def _of_one_dtype(arrays: Array, among: Sequence[Array] | None = None) -> list[Array]:
    """Return the arrays in the dtype that they and those they are `among` promote to."""
    among = arrays if among is None else among
    if all(a.dtype == arrays[0].dtype for a in among):
        return arrays
    kind = dtypes.result_numpy(list(among))
    return [a.astype(kind, copy=False) for a in arrays]


def _check_joinable(tensors: Sequence[Array], first: Array, axis: int) -> None:
    """Raise where tensors differ in another dimension than that which they are joined along."""
    for position, array in enumerate(tensors):
        if array.shape == (0,):
            continue
        if array.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for dim, (wanted, size) in enumerate(zip(first.shape, array.shape, strict=True)):
            if dim != axis and size != wanted:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {wanted} but got size "
                    f"{size} for tensor number {position} in the list.\nThey differ in dimension {dim}."
                )


def _cat_backward(g: Gradient, tensors_shape: list[Shape], dim: int, F: Namespace) -> list[Gradient]:
    parts: list[Gradient] = []
    start = 0
    for shape in tensors_shape:
        if shape == (0,):  # which fits beside any shape, and whose gradient has no history, as in PyTorch
            parts.append(F.zeros_like(F.slice(F.reshape(g, (-1,)), 0, 0, 0, 1)))
            continue
        size = shape[dim]
        parts.append(F.slice(g, dim, start, start + size, 1))
        start += size
    return parts


cat = operator(
    "cat(Tensor[] tensors, int dim=0)",
    _cat,
    images=1,
    method=False,
    out="apart",
    alias=("concat", "concatenate"),
    derivatives={"tensors": _cat_backward},
    doc="Join tensors along a dimension.",
    samples=lambda make: [(([make(2, 3), make(1, 3)], 0), {}), (([make(2, 1), make(2, 2)], -1), {})],
    reference=lambda tensors, dim=0: numpy.concatenate(tensors, dim),
)


def _stack_backward(g: Gradient, tensors_shape: list[Shape], dim: int, F: Namespace) -> list[Gradient]:
    return [F.select(g, dim, i) for i in range(len(tensors_shape))]


def _stack(xp: Namespace, tensors: Array, dim: int) -> Array:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for position, array in enumerate(tensors):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )
    axis, arrays = axis_of(dim, len(first) + 1), _of_one_dtype(tensors)
    if sharing and xp is numpy:
        return joined([numpy.expand_dims(array, axis) for array in arrays], axis)
    return in_rows(xp, xp.stack(arrays, axis=axis))


operator(
    "stack(Tensor[] tensors, int dim=0)",
    _stack,
    method=False,
    out="castable",
    derivatives={"tensors": _stack_backward},
    doc="Join tensors along a new dimension.",
    samples=lambda make: [(([make(2, 3), make(2, 3)], 1), {}), (([make(), make()], 0), {})],
    reference=lambda tensors, dim=0: numpy.stack(tensors, dim),
)


def _unbind(xp: Namespace, self: Array, dim: int) -> list[Array]:
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions\nA 0-d tensor has one value: item().")
    axis = axis_of(dim, self.ndim)
    return [self[(*_at(axis, i), Ellipsis)] for i in range(self.shape[axis])]


def _zero_filled(g: list[Gradient], F: Namespace) -> list[Gradient]:
    known = next(x for x in g if x is not None)
    return [F.zeros_like(known) if x is None else x for x in g]


operator(
    "unbind(Tensor self, int dim=0)",
    _unbind,
    view="multi",
    output_list=True,
    derivatives={"self": lambda g, dim, F: F.stack(_zero_filled(g, F), dim)},
    doc="Return a view of each index of a dimension.",
    samples=lambda make: [((make(3, 2), 0), {}), ((make(2, 3), 1), {})],
    reference=lambda self, dim=0: list(numpy.moveaxis(self, dim, 0)),
)


def _need_dimension(name: str, array: Array) -> None:
    if array.ndim == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor\nGive it one: tensor.reshape(1).")


def _split_sizes(size: int, split: Sizes) -> list[int]:
    if hasattr(split, "__index__"):
        split = int(split)
        if split < 0 or (split == 0 and size):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split}")
        count = max(-(-size // split), 1) if split else 1
        return [min(split, size - i * split) for i in range(count)]
    if sum(split) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension), but "
            f"got split_sizes={list(split)}"
        )
    return list(split)


def _split(xp: Namespace, self: Array, split_size: Sizes, dim: int) -> list[Array]:
    _need_dimension("split", self)
    axis = axis_of(dim, self.ndim)
    parts, start = [], 0
    for size in _split_sizes(self.shape[axis], split_size):
        parts.append(self[_at(axis, slice(start, start + size))] if size else empty_part(self, axis, start))
        start += size
    return parts


def _split_backward(g: Gradient, self_shape: Shape, split_size: Sizes, dim: int, F: Namespace) -> Gradient:
    axis = axis_of(dim, len(self_shape))
    if all(part is not None for part in g):
        return F.cat(g, axis)
    total, start = None, 0
    for part, size in zip(g, _split_sizes(self_shape[axis], split_size), strict=True):
        if part is not None:
            whole = F.slice_backward(part, self_shape, axis, start, start + size, 1)
            total = whole if total is None else total + whole
        start += size
    return total


def _split_sizes_backward(g: Gradient, self_shape: Shape, split_sizes: Ints, dim: int, F: Namespace) -> Gradient:
    return _split_backward(g, self_shape, split_sizes, dim, F)


operator(
    "split.size(Tensor self, int split_size, int dim=0)",
    _split,
    view="multi",
    output_list=True,
    node="SplitBackward0",
    method=False,
    derivatives={"self": _split_backward},
    doc="Return views of consecutive parts of a dimension, of one size.",
    samples=lambda make: [((make(5, 2), 2), {}), ((make(2, 5), 2, -1), {})],
    reference=lambda self, size, dim=0: numpy.split(self, range(size, self.shape[dim], size), dim),
)
operator(
    "split.sizes(Tensor self, int[] split_sizes, int dim=0)",
    _split,
    view="multi",
    output_list=True,
    node="SplitWithSizesBackward0",
    method=False,
    derivatives={"self": _split_sizes_backward},
    doc="Return views of consecutive parts of a dimension, of given sizes.",
    samples=lambda make: [((make(5, 2), [1, 1, 3]), {}), ((make(2, 5), [1, 1, 3], -1), {})],
    reference=lambda self, sizes, dim=0: numpy.split(self, numpy.cumsum(sizes)[:-1], dim),
)
operator(
    "unsafe_split(Tensor self, int split_size, int dim=0)",
    lambda xp, self, split_size, dim=0: _split(xp, devices.own(self), split_size, dim),
    output_list=True,
    derivatives={"self": _split_backward},
    doc="Return consecutive parts of a dimension, of one size; autograd does not know that they share memory.",
    samples=lambda make: [((make(5, 2), 2), {}), ((make(2, 4), 2, -1), {})],
    reference=lambda self, size, dim=0: numpy.split(self, range(size, self.shape[dim], size), dim),
)
operator(
    "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0)",
    lambda xp, self, split_sizes, dim=0: _split(xp, devices.own(self), split_sizes, dim),
    output_list=True,
    derivatives={"self": _split_sizes_backward},
    doc="Return consecutive parts of a dimension, of given sizes; autograd does not know that they share memory.",
    samples=lambda make: [((make(5, 2), [1, 1, 3]), {}), ((make(2, 5), [1, 1, 3], -1), {})],
    reference=lambda self, sizes, dim=0: numpy.split(self, numpy.cumsum(sizes)[:-1], dim),
)


@public
def split(
    self: Tensor, split_size: Sizes = None, dim: int = 0, *, split_size_or_sections: Sizes = None
) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of a dimension, each `split_size` long, or as long as a list says.

    The function calls it `split_size_or_sections` in PyTorch, the method `split_size`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.split(gs.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    split_size = split_size_or_sections if split_size is None else split_size
    form = "size" if hasattr(split_size, "__index__") else "sizes"
    return OPERATORS[f"split.{form}"].function(self, split_size, dim)


@public
def split_with_sizes(self: Tensor, split_sizes: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of a dimension, as long as `split_sizes` say.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(5).split_with_sizes((2, 3))
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return OPERATORS["split.sizes"].function(self, split_sizes, dim)


def _chunk_size(self: Array, chunks: int, dim: int) -> int:
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    _need_dimension("chunk", self._array)
    size = self._array.shape[axis_of(dim, self._array.ndim)]
    return -(-size // chunks)


def _chunks(self: Array, chunks: int, dim: int, name: str) -> tuple[Tensor, ...]:
    size = _chunk_size(self, chunks, dim)
    if size:
        return METHODS[name](self, size, dim)
    return METHODS[f"{name}_with_sizes"](self, [0] * chunks, dim)  # as many as are wanted


@public
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` views of equal parts (the last may be smaller).

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.chunk(gs.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _chunks(self, chunks, dim, "split")


@public
def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` equal parts, see :func:`unsafe_split`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.unsafe_chunk(gs.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _chunks(self, chunks, dim, "unsafe_split")
