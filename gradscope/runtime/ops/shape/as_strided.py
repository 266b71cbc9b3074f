"""Views by sizes and strides: as_strided, and its adjoint."""

from __future__ import annotations

import operator as operators

import numpy

from ...memory.storage import (
    LONG_MAX,
    Geometry,
    contiguous_strides,
    element_strides,
    extent_of,
    has_overlap,
    offset_of,
    overlaps_itself,
    strided_view,
)
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Ints, Namespace, Shape, Sizes
from ..declaration.references import placed
from ..declaration.registry import OPERATORS, operator, public
from ..index.accumulate_at import accumulate_at
from .reshape import sizes_of


def _as_strided(xp: Namespace, self: Array, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Array:
    offset = offset_of(self) if storage_offset is None else storage_offset
    return strided_view(self, (tuple(size), tuple(stride), offset))


def _scatter_strided(xp: Namespace, self: Array, length: int, stride: Sizes, offset: int) -> Array:
    buffer = xp.zeros(length, dtype=self.dtype)
    places = strided_view(buffer, (self.shape, tuple(stride), offset))
    if not overlaps_itself(places):
        places[...] = self
        return buffer
    index = strided_view(xp.arange(length), (self.shape, tuple(stride), offset))
    accumulate_at(xp, "add", buffer, index.reshape(-1), self.reshape(-1))
    return buffer


def _as_strided_backward(
    g: Gradient,
    self_shape: Shape,
    self_strides: Ints,
    self_offset: int,
    size: Sizes,
    stride: Sizes,
    storage_offset: int | None,
    F: Namespace,
) -> Gradient:
    """Add the gradient up in memory, where `self` then reads its own.

    Elements of `self` that lie at one address share what arrived there in equal parts, so that the base which they show
    gets it once. PyTorch's note "as_strided Backward and layout-aware/agnostic autograd" derives this.
    """
    offset = self_offset if storage_offset is None else storage_offset
    first = min(offset, self_offset)
    shown: Geometry = (self_shape, self_strides, self_offset - first)
    length = max(extent_of(shown), extent_of((size, stride, offset - first)))
    flat = F.scatter_strided(g, length, stride, offset - first)
    whole = F.as_strided(flat, *shown)
    if 0 in size:
        return F.zeros_like(whole)  # of a gradient without elements: as in PyTorch it does not require grad itself
    if not has_overlap(self_shape, self_strides):
        return whole
    ones = F.ones_like(whole)
    return whole / F.as_strided(F.scatter_strided(ones, length, self_strides, shown[2]), *shown)


def _flat_places(size: Sizes, stride: Sizes, offset: int) -> Array:
    return offset + sum(numpy.indices(size)[axis] * step for axis, step in enumerate(stride))


def _as_strided_reference(self: Array, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Array:
    return self.reshape(-1)[_flat_places(size, stride, storage_offset or 0)]


def _scatter_strided_reference(self: Array, length: int, stride: Sizes, offset: int) -> Array:
    return placed(numpy.zeros(length, self.dtype), _flat_places(self.shape, stride, offset), self, add=True)


operator(
    "as_strided.size(Tensor self, int[] size, int[] stride, int? storage_offset=None)",
    _as_strided,
    view="always",
    inplace=True,
    inplace_node="AsStridedBackward1",
    node="AsStridedBackward0",
    method=False,
    derivatives={"self": _as_strided_backward},
    doc="View the storage by sizes, strides and offset, all in elements.",
    samples=lambda make: [
        ((make(6), (2, 2), (3, 1), 1), {}),
        ((make(2, 3), (3,), (1,)), {}),
    ],
    reference=_as_strided_reference,
)
operator(
    "scatter_strided(Tensor self, int length, int[] stride, int offset)",
    _scatter_strided,
    method=False,
    public_name=False,
    derivatives={
        "self": lambda g, self_shape, stride, offset, F: F.as_strided(
            F.clone(g, memory_format="contiguous"), self_shape, stride, offset
        )
    },
    doc="Add into a flat buffer at strided places: the adjoint of as_strided.",
    samples=lambda make: [((make(2, 2), 6, (3, 1), 1), {}), ((make(2, 2), 6, (1, 1), 1), {})],
    reference=_scatter_strided_reference,
)


@public(arrays=_as_strided)
def as_strided(self: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Tensor:
    """View the storage by sizes, strides and offset, all in elements.

    Parameters
    ----------
    storage_offset : int, optional
        Counted from the start of the storage, not of `self`; that of `self` unless given.

    Raises
    ------
    RuntimeError
        If the view would leave the storage.

    Examples
    --------
    >>> import gradscope as gs
    >>> tail = gs.arange(6)[4:]
    >>> tail.as_strided((2, 2), (3, 1), 0)
    tensor([[0, 1],
            [3, 4]])
    """
    return OPERATORS["as_strided.size"].function(self, *_checked(size, stride, storage_offset))


@public
def as_strided_(self: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Tensor:
    """In-place form of :func:`as_strided`."""
    arguments = _checked(size, stride, storage_offset)
    return OPERATORS["as_strided.size"].inplace_function(self, *arguments)  # type: ignore[misc]


def _checked(size: Sizes, stride: Sizes, storage_offset: int | None) -> tuple[Shape, Shape, int | None]:
    size, stride = sizes_of((size,), "as_strided"), sizes_of((stride,), "as_strided", "stride")
    if storage_offset is None:
        return size, stride, None
    if isinstance(storage_offset, bool) or not hasattr(storage_offset, "__index__"):
        raise TypeError(
            f"as_strided(): argument 'storage_offset' (position 3) must be int, not {type(storage_offset).__name__}"
        )
    offset = operators.index(storage_offset)
    if abs(offset) > LONG_MAX:
        raise ValueError(f"Overflow when unpacking long long\nThe storage offset {offset} does not fit 64 bits.")
    return size, stride, offset


# --- writing through such a view --------------------------------------------------------------------------------------


def _own_geometry(array: Array) -> Geometry:
    """Return where the elements of `array` lie in its storage; of those that share addresses, in a copy of it."""
    if overlaps_itself(array):
        return array.shape, contiguous_strides(array.shape), 0
    return array.shape, element_strides(array), offset_of(array)


def _as_strided_scatter(
    xp: Namespace, self: Array, src: Array, size: Sizes, stride: Sizes, storage_offset: int | None = None
) -> tuple[Array, Geometry, Geometry]:
    own = _own_geometry(self)
    part = (tuple(size), tuple(stride), own[2] if storage_offset is None else storage_offset)
    source = self.copy() if overlaps_itself(self) else self
    memory = strided_view(source, ((extent_of(own),), (1,), 0)).copy()
    target = strided_view(memory, part)
    if src.shape != target.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(target.shape)}\nIn as_strided_scatter()."
        )
    target[...] = src
    return strided_view(memory, own), own, part


def _as_strided_scatter_reference(
    self: Array, src: Array, size: Sizes, stride: Sizes, storage_offset: int = 0
) -> Array:
    result = numpy.array(self, order="C")
    result.reshape(-1)[strided_view(numpy.arange(result.size), (tuple(size), tuple(stride), storage_offset))] = src
    return result


def _zero_strided(xp: Namespace, self: Array, own: Geometry, part: Geometry) -> Array:
    kept = xp.ones(max(extent_of(own), extent_of(part)), dtype=bool)
    strided_view(kept, part)[...] = False
    return xp.where(strided_view(kept, own), self, xp.zeros((), dtype=self.dtype))


def _gathered(g: Gradient, own: Geometry, part: Geometry, F: Namespace) -> Gradient:
    flat = F.scatter_strided(g, max(extent_of(own), extent_of(part)), own[1], own[2])
    return F.as_strided(flat, *part)


operator(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None)",
    _as_strided_scatter,
    aux=("own", "part"),
    derivatives={
        "self": lambda g, own, part, F: F.zero_strided(g, own, part),
        "src": lambda g, own, part, F: _gathered(g, own, part, F),
    },
    out=True,
    doc="Return a copy of `self` in whose storage `src` is written by sizes, strides and offset, all in elements.",
    samples=lambda make: [
        ((make(6), make(2, 2), (2, 2), (3, 1), 1), {}),
        ((make(2, 3), make(3), (3,), (1,)), {}),
    ],
    reference=_as_strided_scatter_reference,
)
operator(
    "zero_strided(Tensor self, Geometry own, Geometry part)",
    _zero_strided,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, own, part, F: F.zero_strided(g, own, part)},
    doc="Put zeros where `part` of a storage lies, into what lies in it as `own` says.",
    samples=lambda make: [((make(2, 3), ((2, 3), (3, 1), 0), ((2,), (3,), 1)), {})],
    reference=lambda self, own, part: numpy.where(numpy.isin(_flat_places(*own), _flat_places(*part)), 0, self),
)
