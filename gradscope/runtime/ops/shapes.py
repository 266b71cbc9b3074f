"""Shapes: views, joining and splitting. A view shares memory and version with what it views."""

from __future__ import annotations

from typing import Any

from ..storage import element_strides
from .registry import METHODS, OPERATORS, operator, public

# --- helpers ----------------------------------------------------------------------------------------------------------


def axis_of(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return one or several dimensions, or all for None, counted from the front."""
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    axes = tuple(axis_of(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[-1]} appears multiple times in the list of dims {list(dims)}")
    return axes if ndim else ()


def sizes_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return a shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        return tuple(int(s) for s in size[0])
    return tuple(int(s) for s in size)


def full_shape(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return `shape` with -1 replaced by what makes `count` elements."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = 1
    for size in shape:
        known *= 1 if size == -1 else size
    if -1 not in shape:
        if known != count:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
        return shape
    if known == 0 or count % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return tuple(count // known if size == -1 else size for size in shape)


# --- reshaping --------------------------------------------------------------------------------------------------------


def _view(xp: Any, self: Any, size: Any) -> Any:
    shape = full_shape(tuple(size), self.size)
    if self.flags.c_contiguous:
        return self.reshape(shape)
    result = self.view()
    try:
        result.shape = shape
    except (AttributeError, ValueError):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. (shape {list(self.shape)}, strides "
            f"{list(element_strides(self))}, wanted {list(shape)})"
        ) from None
    return result


operator(
    "view.size(Tensor self, int[] size)",
    _view,
    view="always",
    node="ViewBackward0",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="View with another shape.",
    method=False,
    samples=lambda make: [((make(2, 6), (3, 4)), {}), ((make(4), (2, -1)), {}), ((make(0, 3), (3, 0)), {})],
)
operator(
    "reshape_alias(Tensor self, int[] size)",
    _view,
    view="always",
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="View with another shape, of a tensor that is not contiguous.",
    samples=lambda make: [((make(2, 3), (3, 2)), {})],
)
operator(
    "unsafe_view(Tensor self, int[] size)",
    lambda xp, self, size: self.reshape(size),
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Give a contiguous tensor that nobody else holds another shape; the result is no view.",
    samples=lambda make: [((make(2, 3), (3, 2)), {}), ((make(0, 2), (2, 0)), {})],
)


def _viewable(array: Any, shape: tuple[int, ...]) -> bool:
    probe = array.view()
    try:
        probe.shape = shape
    except (AttributeError, ValueError):
        return False
    return True


@public(arrays=lambda xp, self, shape: self.reshape(shape))
def reshape(self: Any, *shape: Any) -> Any:
    """Return the elements in another shape: a view where the strides allow, else a copy.

    Parameters
    ----------
    *shape : int
        Sizes; one may be -1.
    """
    wanted = full_shape(sizes_of(shape), self._array.size)
    if self._array.flags.c_contiguous:
        return OPERATORS["view.size"].function(self, wanted)
    if _viewable(self._array, wanted):
        return OPERATORS["reshape_alias"].function(self, wanted)
    return OPERATORS["unsafe_view"].function(self.clone(memory_format="contiguous"), wanted)


@public(function_too=False)
def view(self: Any, *shape: Any) -> Any:
    """Return a view with another shape, or (given a dtype) another dtype of the same itemsize.

    Raises
    ------
    RuntimeError
        If the strides do not allow it; :meth:`reshape` copies then.
    """
    from ..dtype import dtype

    if len(shape) == 1 and isinstance(shape[0], dtype):
        return OPERATORS["view.dtype"].function(self, shape[0])
    return OPERATORS["view.size"].function(self, sizes_of(shape))


operator(
    "view.dtype(Tensor self, dtype dtype)",
    lambda xp, self, dtype: self.view(dtype.numpy),
    view="always",
    method=False,
    doc="View the bytes as another dtype.",
)


@public(function_too=False)
def view_as(self: Any, other: Any) -> Any:
    """Return a view with the shape of `other`."""
    return view(self, *other.shape)


@public(function_too=False)
def reshape_as(self: Any, other: Any) -> Any:
    """Return the elements in the shape of `other`."""
    return reshape(self, *other.shape)


@public
def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join the dimensions from `start_dim` to `end_dim`."""
    ndim = self._array.ndim
    if ndim == 0:
        return reshape(self, 1)
    start, end = axis_of(start_dim, ndim), axis_of(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = self._array.shape
    joined = 1
    for size in shape[start : end + 1]:
        joined *= size
    return self if start == end else reshape(self, *shape[:start], joined, *shape[end + 1 :])


@public
def ravel(self: Any) -> Any:
    """Return the elements in one dimension."""
    return reshape(self, -1)


@public
def unflatten(self: Any, dim: int, sizes: Any) -> Any:
    """Split dimension `dim` into `sizes`."""
    axis = axis_of(dim, self._array.ndim)
    shape = self._array.shape
    return view(self, *shape[:axis], *full_shape(tuple(sizes), shape[axis]), *shape[axis + 1 :])


# --- moving dimensions ------------------------------------------------------------------------------------------------


def _transpose(xp: Any, self: Any, dim0: int, dim1: int) -> Any:
    ndim = self.ndim
    a, b = axis_of(dim0, ndim), axis_of(dim1, ndim)
    return self.swapaxes(a, b) if ndim else self.view()


def _permute(xp: Any, self: Any, dims: Any) -> Any:
    if len(dims) != self.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}".replace(
                "(sparse_coo)", ""
            )
        )
    return self.transpose(axes_of(tuple(dims), self.ndim))


def _inverse(dims: Any, ndim: int) -> tuple[int, ...]:
    axes = axes_of(tuple(dims), ndim)
    return tuple(sorted(range(ndim), key=axes.__getitem__))


operator(
    "transpose(Tensor self, int dim0, int dim1)",
    _transpose,
    view="always",
    derivatives={"self": lambda g, dim0, dim1, F: F.transpose(g, dim0, dim1)},
    doc="Swap two dimensions.",
    alias=("swapaxes", "swapdims"),
    samples=lambda make: [((make(2, 3), 0, 1), {}), ((make(2, 3, 4), -1, 0), {}), ((make(), 0, -1), {})],
)
operator(
    "t(Tensor self)",
    lambda xp, self: self.transpose(),
    view="always",
    node="TBackward0",
    derivatives={"self": lambda g, F: F.t(g)},
    doc="Transpose a matrix.",
    samples=lambda make: [((make(2, 3),), {}), ((make(3),), {})],
)
operator(
    "permute.dims(Tensor self, int[] dims)",
    _permute,
    view="always",
    node="PermuteBackward0",
    method=False,
    derivatives={"self": lambda g, dims, F: F.permute(g, _inverse(dims, len(g.shape)))},
    doc="Reorder the dimensions.",
    samples=lambda make: [((make(2, 3, 4), (2, 0, 1)), {}), ((make(2), (0,)), {})],
)


@public(arrays=_permute)
def permute(self: Any, *dims: Any) -> Any:
    """Return a view with the dimensions in another order."""
    return OPERATORS["permute.dims"].function(self, sizes_of(dims))


@public
def movedim(self: Any, source: Any, destination: Any) -> Any:
    """Move dimensions from `source` to `destination`; the others keep their order."""
    ndim = self._array.ndim
    from_axes, to_axes = axes_of(source, ndim), axes_of(destination, ndim)
    order = [axis for axis in range(ndim) if axis not in from_axes]
    for to, origin in sorted(zip(to_axes, from_axes, strict=True)):
        order.insert(to, origin)
    return permute(self, order)


def _expand_forward(xp: Any, self: Any, size: Any) -> Any:
    size = tuple(size)
    extra = len(size) - self.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(Tensor{list(self.shape)}, size={list(size)}): the number of sizes provided ({len(size)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({self.ndim})"
        )
    shape = []
    for position, wanted in enumerate(size):
        have = self.shape[position - extra] if position >= extra else 1
        if wanted == -1 and position >= extra:
            wanted = have
        if have not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: {list(self.shape)}"
            )
        shape.append(wanted)
    strides = [0] * extra + [
        0 if have == 1 and want != 1 else step
        for have, want, step in zip(self.shape, shape[extra:], self.strides, strict=True)
    ]
    return xp.lib.stride_tricks.as_strided(self, tuple(shape), tuple(strides))


operator(
    "expand.size(Tensor self, int[] size)",
    _expand_forward,
    view="always",
    node="ExpandBackward0",
    method=False,
    derivatives={"self": lambda g: g},
    doc="Repeat dimensions of size 1 without copying.",
    samples=lambda make: [((make(3, 1), (3, 4)), {}), ((make(3), (2, 3)), {}), ((make(2, 1), (-1, 5)), {})],
)


@public(function_too=False)
def expand(self: Any, *size: Any, implicit: bool = False) -> Any:
    """Return a view in which dimensions of size 1 are repeated; -1 keeps a size."""
    return OPERATORS["expand.size"].function(self, sizes_of(size))


@public(function_too=False)
def expand_as(self: Any, other: Any) -> Any:
    """Expand to the shape of `other`."""
    return expand(self, *other.shape)


@public(method=True, arrays=lambda xp, self, size: _expand_forward(xp, self, size))
def broadcast_to(self: Any, size: Any) -> Any:
    """Expand to `size`."""
    return expand(self, *size)


def _squeeze(xp: Any, self: Any, dim: Any) -> Any:
    axes = tuple(a for a in axes_of(dim, self.ndim) if self.shape[a] == 1)
    return (
        self.reshape(tuple(s for i, s in enumerate(self.shape) if i not in axes))
        if _dense(self)
        else self.squeeze(axes)
    )


def _dense(array: Any) -> bool:
    return bool(array.flags.c_contiguous)


operator(
    "squeeze.dim(Tensor self, int[]? dim)",
    _squeeze,
    view="always",
    method=False,
    node="SqueezeBackward1",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Drop dimensions of size 1.",
    samples=lambda make: [((make(2, 1, 3), 1), {}), ((make(2, 1), 0), {})],
)
operator(
    "squeeze.all(Tensor self)",
    lambda xp, self: _squeeze(xp, self, None),
    view="always",
    method=False,
    node="SqueezeBackward0",
    doc="Drop all dimensions of size 1.",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    samples=lambda make: [((make(2, 1, 3),), {})],
)


@public(arrays=_squeeze)
def squeeze(self: Any, dim: Any = None) -> Any:
    """Drop dimension(s) `dim` where they have size 1, or all such dimensions."""
    if dim is None:
        return OPERATORS["squeeze.all"].function(self)
    return OPERATORS["squeeze.dim"].function(self, dim)


def _unsqueeze(xp: Any, self: Any, dim: int) -> Any:
    axis = axis_of(dim, self.ndim + 1)
    index = (slice(None),) * axis + (None,)
    return self[index]


operator(
    "unsqueeze(Tensor self, int dim)",
    _unsqueeze,
    view="always",
    derivatives={"self": lambda g, self_shape, F: F.reshape(g, self_shape)},
    doc="Insert a dimension of size 1.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2), -1), {}), ((make(), 0), {})],
)

# --- strided ----------------------------------------------------------------------------------------------------------


def _extent(size: Any, stride: Any) -> int:
    if any(s == 0 for s in size):
        return 0
    return 1 + sum((s - 1) * st for s, st in zip(size, stride, strict=True))


def _as_strided(xp: Any, self: Any, size: Any, stride: Any, offset: int) -> Any:
    # `offset` is counted from self's first element; as_strided does not check bounds, so this does.
    itemsize = self.dtype.itemsize
    start = xp.lib.stride_tricks.as_strided(self, (0,), (itemsize,)) if not self.size else self
    if offset or not self.size:
        flat = xp.lib.stride_tricks.as_strided(start, (max(offset + _extent(size, stride), 0),), (itemsize,))
        start = flat[offset:]
    return xp.lib.stride_tricks.as_strided(start, tuple(size), tuple(s * itemsize for s in stride))


def _scatter_strided(xp: Any, self: Any, length: int, stride: Any, offset: int) -> Any:
    index = xp.zeros((), dtype=xp.int64) + offset
    for axis, (size, step) in enumerate(zip(self.shape, stride, strict=True)):
        shape = [1] * self.ndim
        shape[axis] = size
        index = index + (xp.arange(size) * step).reshape(shape)
    buffer = xp.zeros(length, dtype=self.dtype)
    xp.add.at(buffer, xp.broadcast_to(index, self.shape).reshape(-1), self.reshape(-1))
    return buffer


def _as_strided_backward(
    g: Any, self_shape: Any, self_strides: Any, size: Any, stride: Any, offset: Any, F: Any
) -> Any:
    length = max(_extent(self_shape, self_strides), offset + _extent(size, stride))
    flat = F.scatter_strided(g, length, stride, offset)
    return F.as_strided_relative(flat, self_shape, self_strides, 0)


operator(
    "as_strided.relative(Tensor self, int[] size, int[] stride, int offset)",
    _as_strided,
    view="always",
    node="AsStridedBackward0",
    method=False,
    derivatives={"self": _as_strided_backward},
    doc="View memory by sizes and strides, from self's first element.",
    samples=lambda make: [((make(6), (2, 2), (3, 1), 1), {}), ((make(2, 3), (3,), (1,), 0), {})],
)
operator(
    "scatter_strided(Tensor self, int length, int[] stride, int offset)",
    _scatter_strided,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self_shape, stride, offset, F: F.as_strided_relative(g, self_shape, stride, offset)},
    doc="Add into a flat buffer at strided places: the adjoint of as_strided.",
    samples=lambda make: [((make(2, 2), 6, (3, 1), 1), {})],
)


@public(method=False, function_too=True, arrays=_as_strided)
def as_strided_relative(self: Any, size: Any, stride: Any, offset: int) -> Any:
    """View memory by sizes and strides, counted from the first element of `self`."""
    return OPERATORS["as_strided.relative"].function(self, tuple(size), tuple(stride), offset)


@public
def as_strided(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """View the storage by sizes, strides and offset, all in elements.

    Raises
    ------
    RuntimeError
        If the view would leave the storage.
    """
    start = self.storage_offset()
    offset = start if storage_offset is None else storage_offset
    have = len(self.untyped_storage()) // self.element_size()
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment")
    if offset + _extent(size, stride) > have:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} require more than the "
            f"storage's {have} elements"
        )
    return as_strided_relative(self, size, stride, offset - start)


# --- parts ------------------------------------------------------------------------------------------------------------


def _at(axis: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (index,)


def _select(xp: Any, self: Any, dim: int, index: int) -> Any:
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, self.ndim)
    size = self.shape[axis]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    return self[(*_at(axis, index), Ellipsis)]


def _select_backward(xp: Any, self: Any, size: Any, dim: int, index: int) -> Any:
    whole = xp.zeros(size, dtype=self.dtype)
    whole[_at(axis_of(dim, len(size)), index)] = self
    return whole


operator(
    "select(Tensor self, int dim, int index)",
    _select,
    view="always",
    derivatives={"self": lambda g, self_shape, dim, index, F: F.select_backward(g, self_shape, dim, index)},
    doc="View one index of one dimension.",
    samples=lambda make: [((make(3, 2), 0, 1), {}), ((make(2, 3), -1, -1), {}), ((make(3), 0, 2), {})],
)
operator(
    "select_backward(Tensor self, int[] size, int dim, int index)",
    _select_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, index, F: F.select(g, dim, index)},
    doc="The adjoint of select: zeros but for one index.",
    samples=lambda make: [((make(2), (3, 2), 0, 1), {})],
)


def _slice(xp: Any, self: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    return self[_at(axis_of(dim, self.ndim), slice(start, end, step))]


def _slice_backward(xp: Any, self: Any, size: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    whole = xp.zeros(size, dtype=self.dtype)
    whole[_at(axis_of(dim, len(size)), slice(start, end, step))] = self
    return whole


operator(
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
)
operator(
    "slice_backward(Tensor self, int[] size, int dim, int? start, int? end, int step)",
    _slice_backward,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, dim, start, end, step, F: F.slice(g, dim, start, end, step)},
    doc="The adjoint of slice.",
    samples=lambda make: [((make(2, 2), (5, 2), 0, 1, 4, 2), {})],
)


@public
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    """View `length` indices of dimension `dim` from `start`."""
    if self._array.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.\nGive it a dimension: tensor.reshape(1).")
    axis = axis_of(dim, self._array.ndim)
    size = self._array.shape[axis]
    if not -size <= start <= size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})")
    begin = start + size if start < 0 else start
    if length < 0 or begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return OPERATORS["slice"].function(self, axis, begin, begin + length, 1)


# --- joining and splitting --------------------------------------------------------------------------------------------


def _cat(xp: Any, tensors: Any, dim: int) -> Any:
    arrays = [a for a in tensors if a.ndim != 1 or a.shape[0]] or tensors
    if not arrays:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors".replace("torch.", ""))
    if any(a.ndim == 0 for a in arrays):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    return _in_rows(xp, xp.concatenate(arrays, axis=axis_of(dim, arrays[0].ndim)))


def _in_rows(xp: Any, array: Any) -> Any:
    """Return `array` in row-major order, which PyTorch gives what it joins."""
    return array if array.flags.c_contiguous else xp.ascontiguousarray(array)


def _cat_backward(g: Any, tensors_shape: Any, dim: int, F: Any) -> list[Any]:
    parts: list[Any] = []
    start = 0
    for shape in tensors_shape:
        if len(shape) == 1 and shape[0] == 0 and len(g.shape) != 1:
            parts.append(None)
            continue
        size = shape[dim]
        parts.append(F.slice(g, dim, start, start + size, 1))
        start += size
    return parts


operator(
    "cat(Tensor[] tensors, int dim=0)",
    _cat,
    method=False,
    out=True,
    alias=("concat", "concatenate"),
    derivatives={"tensors": _cat_backward},
    doc="Join tensors along a dimension.",
    samples=lambda make: [(([make(2, 3), make(1, 3)], 0), {}), (([make(2, 1), make(2, 2)], -1), {})],
)


def _stack_backward(g: Any, tensors_shape: Any, dim: int, F: Any) -> list[Any]:
    return [F.select(g, dim, i) for i in range(len(tensors_shape))]


def _stack(xp: Any, tensors: Any, dim: int) -> Any:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for position, array in enumerate(tensors):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )
    return _in_rows(xp, xp.stack(tensors, axis=axis_of(dim, len(first) + 1)))


operator(
    "stack(Tensor[] tensors, int dim=0)",
    _stack,
    method=False,
    out=True,
    derivatives={"tensors": _stack_backward},
    doc="Join tensors along a new dimension.",
    samples=lambda make: [(([make(2, 3), make(2, 3)], 1), {}), (([make(), make()], 0), {})],
)


def _unbind(xp: Any, self: Any, dim: int) -> list[Any]:
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions\nA 0-d tensor has one value: item().")
    axis = axis_of(dim, self.ndim)
    return [self[(*_at(axis, i), Ellipsis)] for i in range(self.shape[axis])]


def _zero_filled(g: list[Any], shape: Any, F: Any) -> list[Any]:
    known = next(x for x in g if x is not None)
    return [F.zeros_like(known) if x is None else x for x in g]


operator(
    "unbind(Tensor self, int dim=0)",
    _unbind,
    view="multi",
    output_list=True,
    derivatives={"self": lambda g, dim, F: F.stack(_zero_filled(g, None, F), dim)},
    doc="Return a view of each index of a dimension.",
    samples=lambda make: [((make(3, 2), 0), {}), ((make(2, 3), 1), {})],
)


def _need_dimension(name: str, array: Any) -> None:
    if array.ndim == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor\nGive it one: tensor.reshape(1).")


def _split_sizes(size: int, split: Any) -> list[int]:
    if isinstance(split, int):
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


def _split(xp: Any, self: Any, split_size: Any, dim: int) -> list[Any]:
    _need_dimension("split", self)
    axis = axis_of(dim, self.ndim)
    parts, start = [], 0
    for size in _split_sizes(self.shape[axis], split_size):
        parts.append(self[_at(axis, slice(start, start + size))])
        start += size
    return parts


def _split_backward(g: Any, self_shape: Any, split_size: Any, dim: int, F: Any) -> Any:
    axis = axis_of(dim, len(self_shape))
    total, start = None, 0
    for part, size in zip(g, _split_sizes(self_shape[axis], split_size), strict=True):
        if part is not None:
            whole = F.slice_backward(part, self_shape, axis, start, start + size, 1)
            total = whole if total is None else total + whole
        start += size
    return total


for _schema, _node, _sample in (
    ("split.size(Tensor self, int split_size, int dim=0)", "SplitBackward0", 2),
    ("split.sizes(Tensor self, int[] split_size, int dim=0)", "SplitWithSizesBackward0", [1, 1, 3]),
):
    operator(
        _schema,
        _split,
        view="multi",
        output_list=True,
        node=_node,
        method=False,
        derivatives={"self": _split_backward},
        doc="Return views of consecutive parts of a dimension.",
        samples=lambda make, parts=_sample: [((make(5, 2), parts), {}), ((make(2, 5), parts, -1), {})],
    )


@public
def split(self: Any, split_size: Any, dim: int = 0) -> Any:
    """Return views of consecutive parts of a dimension, each `split_size` long, or as long as a list says."""
    form = "size" if isinstance(split_size, int) else "sizes"
    return OPERATORS[f"split.{form}"].function(self, split_size, dim)


@public
def chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    """Return at most `chunks` views of equal parts (the last may be smaller)."""
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    _need_dimension("chunk", self._array)
    size = self._array.shape[axis_of(dim, self._array.ndim)]
    return METHODS["split"](self, max(-(-size // chunks), 1), dim)
