"""Views by sizes and strides: as_strided, and its adjoint."""

from __future__ import annotations

from typing import Any

from .accumulation import accumulate_at
from .registry import OPERATORS, operator, public
from .shapes import sizes_of


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
    accumulate_at(xp, "add", buffer, xp.broadcast_to(index, self.shape).reshape(-1), self.reshape(-1))
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
    inplace=True,
    inplace_node="AsStridedBackward1",
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
    return as_strided_relative(self, size, stride, _offset_within(self, size, stride, storage_offset))


@public
def as_strided_(self: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """In-place form of :func:`as_strided`."""
    offset = _offset_within(self, size, stride, storage_offset)
    return OPERATORS["as_strided.relative"].inplace_function(  # type: ignore[misc]
        self, tuple(size), tuple(stride), offset
    )


def _offset_within(self: Any, size: Any, stride: Any, storage_offset: int | None) -> int:
    """Return the offset from the first element of `self`, after the check that the view stays in the storage."""
    size, stride = sizes_of((size,), "as_strided"), sizes_of((stride,), "as_strided", "stride")
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}\nIt is counted from the storage's start.")
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape\nThe size is {list(size)}, the stride {list(stride)}."
        )
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
    return offset - start
