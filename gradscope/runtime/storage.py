"""Memory and its version counter.

A tensor holds a bare array; arrays that share memory share one :class:`VersionCounter`. It is made when a second
tensor, or a saved output, first needs it: a tensor that nobody shares has none and is at version 0.
"""

from __future__ import annotations

from typing import Any

from . import device

__all__ = ["Storage", "VersionCounter"]


class VersionCounter:
    """How often a piece of memory has been written in place.

    Attributes
    ----------
    version : int
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
        return int(self._array.nbytes)

    size = nbytes

    def __len__(self) -> int:
        return self.nbytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        return f"<Storage of {self.nbytes()} bytes on {device.device_of(self._array)}>"


_SHAPES: dict[tuple[int, ...], tuple[int, ...]] = {}
_SHAPES_KEPT = 4096  # more are those of a program whose shapes never come again


def shared_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the one tuple that stands for a shape, so that operators can tell equal shapes by identity."""
    known = _SHAPES.get(shape)
    if known is None:
        if len(_SHAPES) == _SHAPES_KEPT:
            _SHAPES.clear()
        known = _SHAPES[shape] = shape
    return known


def memory_of(array: Any) -> Any:
    """Return the array that owns the memory of `array`."""
    kind = type(array)
    base = array.base
    while base is not None:
        if type(base) is kind:
            array = base
        # Between a strided view and its memory NumPy puts an object of another type, which has a base too.
        base = getattr(base, "base", None)
    return array


def is_viewable(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether the strides of `array` allow a view of another shape, of as many elements.

    Dimensions that lie in memory as one can be cut anew; each such run must be cut by itself.
    """
    if not array.size:
        return True
    left, taken = list(shape), 1
    run, step = 1, array.strides[-1] if array.ndim else 0
    for axis in reversed(range(array.ndim)):
        run *= array.shape[axis]
        if axis and (array.shape[axis - 1] == 1 or array.strides[axis - 1] == run * step):
            continue
        while left and (taken < run or left[-1] == 1):
            taken *= left.pop()
        if taken != run:
            return False
        if axis:
            run, taken, step = 1, 1, array.strides[axis - 1]
    return True


def geometry_of(array: Any, base: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides and offset (in elements) of `array` inside the memory that `base` starts."""
    itemsize = array.dtype.itemsize
    strides = tuple(s // itemsize for s in array.strides)
    if array.size == 0:
        return array.shape, strides, 0
    return array.shape, strides, (device.address(array) - device.address(base)) // itemsize


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
            # A new axis: PyTorch gives it the stride that a longer one would have.
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
    axes = sorted((abs(step), size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1)
    extent = array.dtype.itemsize
    for step, size in axes:
        if step < extent:
            return True
        extent = step * (size - 1) + extent
    return False


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
    """Return `array`; of an expanded one, an uninitialised array in the memory order that PyTorch gives a copy of it.

    A dimension of stride 0 has no place in that order and stays where it stands; NumPy and CuPy make it the innermost.
    """
    if 0 not in array.strides:
        return array
    strides, shape = array.strides, array.shape
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
