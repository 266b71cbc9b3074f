"""Memory, how views lie in it, and its version counter.

A tensor holds a bare array. Its storage is the memory of the array that owns it (:func:`memory_of`); another program's
array becomes such an owner by :func:`adopted`. Views by sizes, strides and an offset are made by :func:`strided_view`
alone, which keeps them inside of the storage.

Arrays that share memory share one :class:`VersionCounter`. It is made when a second tensor, or a saved output, first
needs it: a tensor that nobody shares has none and is at version 0.
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import dispatch
from . import device
from .allocator import keep_freed_memory
from .bfloat16 import plain

__all__ = ["Geometry", "Storage", "VersionCounter", "adopted", "strided_view"]

keep_freed_memory()

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Shape, strides and offset of a view, the latter two in elements."""

_FEW = 1 << 10  # elements

LONG_MAX = (1 << 63) - 1


class VersionCounter:
    """How often a piece of memory has been written in place.

    Attributes
    ----------
    writes : list or None
        The recorded writes, newest last; None while nobody records them.
    """

    __slots__ = ("__weakref__", "version", "writes")

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.writes: list[Any] | None = None


class Storage:
    """The memory behind a tensor, as ``tensor.untyped_storage()`` shows it."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = memory_of(array)

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return device.address(self._array)

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return bytes_of(self._array)

    size = nbytes

    def resize_(self, size: int) -> Storage:
        """Give the storage another size, of which all tensors in it know at once; what is added is uninitialised.

        Parameters
        ----------
        size : int
            In bytes.

        Raises
        ------
        RuntimeError
            If it is negative, the memory is another program's, or a tensor has elements in what would go.

        Examples
        --------
        >>> import gradscope as gs
        >>> x = gs.ones(2)
        >>> len(x.untyped_storage().resize_(16)), len(x.untyped_storage())
        (16, 16)
        """
        dispatch.resize_storage(self._array, size)
        return self

    def __len__(self) -> int:
        return self.nbytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        return f"<Storage of {self.nbytes()} bytes on {device.device_of(self._array)}>"


_SHAPES: dict[tuple[int, ...], tuple[int, ...]] = {}
_SHAPES_KEPT = 4096  # a program with more has shapes that never come again


def shared_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the one tuple that stands for a shape, so that operators can tell equal shapes by identity."""
    known = _SHAPES.get(shape)
    if known is None:
        if len(_SHAPES) == _SHAPES_KEPT:
            _SHAPES.clear()
        known = _SHAPES[shape] = shape
    return known


def memory_of(array: Any) -> Any:
    """Return the array that owns the memory of `array`; of one of bfloat16 that may be one of NumPy's own class."""
    base = array.base
    if base is None and type(array) is numpy.ndarray:
        return array
    kind = numpy.ndarray if isinstance(array, numpy.ndarray) else type(array)
    while base is not None:
        if isinstance(base, kind):
            array = base
        # Between a strided view and its memory NumPy puts an object of another type, which has a base too.
        base = getattr(base, "base", None)
    return array if kind is numpy.ndarray else device.backend_of(array).owner_of(array)


def is_viewable(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether the strides of `array` allow a view of another shape, of as many elements.

    Dimensions that lie in memory as one can be cut anew; each such run must be cut by itself.
    """
    if not array.size:
        return True
    if array.size <= _FEW and type(array) is numpy.ndarray:  # to copy them takes less than to follow the strides
        base, found = array.base, array.reshape(shape)
        return found.base is (array if base is None else base) or memory_of(found) is memory_of(array)
    sizes, strides = array.shape, array.strides
    left, taken = list(shape), 1
    run, step = 1, strides[-1] if sizes else 0
    for axis in range(len(sizes) - 1, -1, -1):
        run *= sizes[axis]
        if axis and (sizes[axis - 1] == 1 or strides[axis - 1] == run * step):
            continue
        while left and (taken < run or left[-1] == 1):
            taken *= left.pop()
        if taken != run:
            return False
        if axis:
            run, taken, step = 1, 1, strides[axis - 1]
    return True


def bytes_of(owner: Any) -> int:
    """Return how many bytes lie from the first to the last element of an array that owns its memory."""
    if owner.flags.forc or not owner.size:
        return int(owner.nbytes)
    return owner.itemsize + sum((n - 1) * step for n, step in zip(owner.shape, owner.strides, strict=True))


def geometry_of(array: Any, base: Any) -> Geometry:
    """Return shape, strides and offset (in elements) of `array`, counted from the first element of `base`."""
    itemsize = array.dtype.itemsize
    strides = tuple([s // itemsize for s in array.strides])
    if array is base:
        return array.shape, strides, 0
    return array.shape, strides, (device.address(array) - device.address(base)) // itemsize


def offset_of(array: Any) -> int:
    """Return the number of elements before the first one in the storage."""
    if array.base is None:
        return 0
    return (device.address(array) - device.address(memory_of(array))) // array.dtype.itemsize


def extent_of(geometry: Geometry) -> int:
    """Return how many elements lie before the end of the last one that `geometry` describes."""
    size, stride, offset = geometry
    return 0 if 0 in size else offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


def strided_view(array: Any, geometry: Geometry, dtype: Any = None) -> Any:
    """View the storage of `array` by sizes, strides and offset.

    Every view that is not made by an array's own indexing is made here, inside of the storage. One without elements
    keeps its offset as far as the storage goes.

    Parameters
    ----------
    array : ndarray
        Any array of the storage.
    geometry : tuple
        Shape, strides and offset, the latter two in elements of `dtype`, the offset from the start of the storage.
    dtype : numpy.dtype, optional
        That of `array` unless given.

    Raises
    ------
    RuntimeError
        If the view would leave the storage.

    Examples
    --------
    >>> import numpy
    >>> tail = numpy.arange(6)[4:]
    >>> strided_view(tail, ((2, 2), (3, 1), 0))
    array([[0, 1],
           [3, 4]])
    """
    size, stride, offset = geometry
    kind = array.dtype if dtype is None else dtype
    itemsize = kind.itemsize
    owner = memory_of(array)
    have = bytes_of(owner)
    _check_inside(geometry, itemsize, have)
    start = min(offset * itemsize, have)
    longest = LONG_MAX // itemsize  # a step that is never taken may be too long for an array
    steps = tuple([min(step, longest) * itemsize for step in stride])
    if isinstance(owner, numpy.ndarray):
        plainly = type(owner) is numpy.ndarray and owner.flags.c_contiguous
        return numpy.ndarray(size, kind, owner if plainly else flat_memory(owner), start, steps)
    return device.backend_of(owner).part(owner, start, size, kind, steps)


def empty_part(array: Any, axis: int, start: int) -> Any:
    """View none of the indices of one dimension, from `start` on: an array's own slice would forget where that is."""
    shape = (*array.shape[:axis], 0, *array.shape[axis + 1 :])
    strides = tuple(step // array.itemsize for step in array.strides)
    return strided_view(array, (shape, strides, offset_of(array) + start * strides[axis]))


def restrided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """View the storage from the first element of `array` on, by sizes and strides; the latter in bytes, as it has."""
    itemsize = array.itemsize
    return strided_view(array, (tuple(shape), tuple(step // itemsize for step in strides), offset_of(array)))


def flat_memory(owner: Any) -> Any:
    """Return the bytes that `owner`, an array without a base, holds as a flat array of uint8."""
    if not owner.flags.c_contiguous:
        strided = device.array_module(owner).lib.stride_tricks.as_strided
        owner = strided(owner, (bytes_of(owner) // owner.itemsize,), (owner.itemsize,))
    return plain(owner).reshape(-1).view("uint8")


def memory_copy(array: Any, count: int) -> Any:
    """Return a copy of the storage behind `array` as a flat array of its dtype, of `count` elements at least."""
    memory = flat_memory(memory_of(array))
    whole = -(-memory.size // array.itemsize)
    copy = device.array_module(array).empty(max(count, whole), dtype=array.dtype)
    copy.view("uint8")[: memory.size] = memory
    return copy


def resized_bytes(owner: Any, size: int) -> Any:
    """Return a copy of the memory of `owner` as `size` bytes: cut off, or with uninitialised ones at its end."""
    memory = flat_memory(owner)[:size]
    copy = device.array_module(owner).empty(size, dtype="uint8")
    copy[: memory.size] = memory
    return copy


def _check_inside(geometry: Geometry, itemsize: int, have: int) -> None:
    """Raise unless the elements that `geometry` describes lie inside `have` bytes."""
    size, stride, offset = geometry
    if _fits(geometry, have // itemsize):
        return
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape\nThe size is {list(size)}, the stride {list(stride)}."
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}\nIt is counted from the storage's start.")
    needed = extent_of(geometry) * itemsize
    if any(n < 0 for n in size) or any(step < 0 for step in stride) or needed > LONG_MAX:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}\n"
            f"Sizes and strides must be >= 0, and stay inside the storage of {have} bytes."
        )
    if needed > have:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {have}\n"
            "The offset is counted from the storage's start, not from that of a view."
        )


def _fits(geometry: Geometry, have: int) -> bool:
    """Whether a geometry that has elements has them inside of `have`: what is asked of nearly all views."""
    size, stride, last = geometry
    if last < 0 or len(size) != len(stride):
        return False
    for n, step in zip(size, stride):
        if n <= 0 or step < 0:
            return False
        last += (n - 1) * step
    return last < have


def adopted(array: Any) -> Any:
    """Return another program's array as one whose storage begins and ends with the array's own elements.

    What lies around them in that program's memory cannot be reached from there.

    Raises
    ------
    ValueError
        For strides that are negative, or no multiple of the element size.
    """
    itemsize = array.itemsize
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if any(step % itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            f"memory.\nThe strides are {array.strides} bytes, an element has {itemsize}."
        )
    if not array.size:
        return device.array_module(array).empty(array.shape, dtype=array.dtype)
    geometry = (array.shape, tuple(step // itemsize for step in array.strides), 0)
    return strided_view(device.backend_of(array).foreign(array, extent_of(geometry)), geometry)


def element_strides(array: Any) -> tuple[int, ...]:
    """Return PyTorch's strides, in elements, of a non-empty or empty array.

    NumPy reports arbitrary strides along axes of length 0 and 1; PyTorch's are those of the contiguous layout.
    """
    itemsize = array.dtype.itemsize
    if array.flags.c_contiguous:
        return contiguous_strides(array.shape)
    strides = [s // itemsize for s in array.strides]
    for axis in reversed(range(array.ndim)):
        if array.shape[axis] == 1 and strides[axis] == 0:
            # This is a new axis: PyTorch gives it the stride that a longer one would have.
            strides[axis] = strides[axis + 1] * array.shape[axis + 1] if axis + 1 < array.ndim else 1
    return tuple(strides)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array of `shape`."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def overlaps_itself(array: Any) -> bool:
    """Whether two elements of `array` may lie at one address (an expanded tensor)."""
    if array.size < 2 or array.flags.forc:
        return False
    return has_overlap(array.shape, array.strides, array.dtype.itemsize)


def has_overlap(shape: tuple[int, ...], strides: tuple[int, ...], extent: int = 1) -> bool:
    """Whether two elements of a view may lie at one address; `extent` is that of one element, in the strides' unit."""
    for step, size in sorted((abs(step), size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step < extent:
            return True
        extent = step * (size - 1) + extent
    return False


def without_repeats(array: Any) -> Any:
    """View one of the elements that lie at one address along each dimension of stride 0."""
    return array[tuple([slice(1) if step == 0 else slice(None) for step in array.strides])]


def overlap_error(what: str = "more than one element of the written-to tensor refers") -> RuntimeError:
    """Return the error for a write into memory that several elements share, or that is read at the same time."""
    return RuntimeError(
        f"unsupported operation: {what} to a single memory location. Please clone() the tensor before performing the "
        "operation."
    )


def shared_part(a: Any, b: Any) -> str:
    """Return how much memory two arrays share: ``"all"``, ``"part"`` or ``"none"``; ``""`` where gaps hide it."""
    if a is b:
        return "all"
    if memory_of(a) is not memory_of(b) or not (a.size and b.size):
        return "none"
    if not (is_dense(a) and is_dense(b)):
        return ""
    start, other = device.address(a), device.address(b)
    if start == other and a.nbytes == b.nbytes:
        layouts = ([(n, step) for n, step in zip(x.shape, x.strides, strict=True) if n != 1] for x in (a, b))
        return "all" if a.ndim == b.ndim and next(layouts) == next(layouts) else "part"
    return "part" if start < other + b.nbytes and other < start + a.nbytes else "none"


def in_order(array: Any) -> Any:
    """Return `array`; where its strides give no order, an uninitialised array in that which PyTorch gives a copy of it.

    Of two dimensions of one stride, as unfold() makes them, the smaller lies inside. One of stride 0 has no place in
    that order and stays where it stands; NumPy and CuPy make it the innermost.
    """
    strides, shape = array.strides, array.shape
    if 0 not in strides and (len(set(strides)) == len(strides) or array.flags.forc):
        return array
    order = list(range(array.ndim))[::-1]  # from the innermost, sorted by insertion as in PyTorch
    for end in range(1, array.ndim):
        current = end
        for inner in range(end - 1, -1, -1):
            a, b = order[inner], order[current]
            if not (strides[a] and strides[b]):
                continue
            if (strides[a], shape[a]) <= (strides[b], shape[b]):
                if strides[a] < strides[b]:
                    break
                continue
            order[inner], order[current] = b, a
            current = inner
    outermost_first = order[::-1]
    empty = device.array_module(array).empty([shape[axis] for axis in outermost_first], dtype=array.dtype)
    return empty.transpose(sorted(range(array.ndim), key=outermost_first.__getitem__))


def is_dense(array: Any) -> bool:
    """Whether the elements of `array` fill a piece of memory without gaps or overlaps, in whatever order."""
    if array.flags.forc or array.size == 0:
        return True
    expected = array.dtype.itemsize
    for step, size in sorted((step, size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True
