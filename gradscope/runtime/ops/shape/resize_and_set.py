"""Methods that give a tensor other memory, or other elements, past autograd: resize_, set_, apply_, map_."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable

import numpy

from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.memory_format import channels_last, check_rank, format_name
from ...memory.storage import (
    LONG_MAX,
    Storage,
    bytes_of,
    contiguous_strides,
    extent_of,
    geometry_of,
    memory_copy,
    memory_of,
    offset_of,
    resized_bytes,
    strided_view,
)
from ...tensor.inplace_checks import check_inplace
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, MemoryFormat, Number, Operand, Sizes
from ..declaration.registry import public
from ..execution import general
from ..execution.inplace_and_out import check_overlap
from .reshape import sizes_of

# --- other memory -----------------------------------------------------------------------------------------------------


@public(function_too=False)
def resize_(self: Tensor, *size: Sizes, memory_format: MemoryFormat = None) -> Tensor:
    """Give the tensor another shape; its storage keeps its elements, and grows where it is too small.

    Nothing changes where it has the shape already, whatever its strides are. Memory of an array cannot grow in place:
    the tensors that share the storage are given the new memory then, and NumPy arrays that share it keep the old one.

    Parameters
    ----------
    memory_format : memory_format, optional
        The order of the elements, rows unless given.

    Raises
    ------
    RuntimeError
        If the tensor requires grad, a size is negative, or the memory that should grow is another program's.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(6).reshape(2, 3).t().resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    shape = sizes_of(size, "resize_")
    format = "contiguous_format" if memory_format is None else format_name(memory_format)
    if format == "preserve_format":
        raise RuntimeError("Unsupported memory formatPreserve\nUse contiguous_format or channels_last.")
    return _resize(self, "resize_", shape, format)


@public
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: MemoryFormat = None) -> Tensor:
    """Give the tensor the shape of another one, as :meth:`Tensor.resize_` does.

    Parameters
    ----------
    memory_format : memory_format, optional
        The order of the elements; rows unless given, ``preserve_format`` for that of the template.
    """
    format = "contiguous_format" if memory_format is None else format_name(memory_format)
    if format == "preserve_format":
        format = "channels_last" if the_template.is_contiguous(memory_format=channels_last) else "contiguous_format"
    return _resize(self, "resize_as_", the_template._array.shape, format)


def _resize(self: Array, name: str, shape: tuple[int, ...], format: str) -> Array:
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to resize a tensor to the negative size {list(shape)}\nSizes must be >= 0.")
    if math.prod(shape) * self._dtype.itemsize > LONG_MAX:
        raise RuntimeError(f"numel: integer multiplication overflow\nNo memory holds a tensor of size {list(shape)}.")
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad\nResize a detach()ed tensor.")
    strides = contiguous_strides(shape)
    if format == "channels_last":
        check_rank(shape)
        batch, *rest = contiguous_strides((shape[0], *shape[2:], shape[1]))
        strides = (batch, rest[-1], *rest[:-1])
    if shape != self._shape or (format == "channels_last" and strides != self.stride()):
        before = weakref.ref(memory_of(self._memory))
        self.data = self._around(_resized(name, self._memory, shape, strides))
        self._bump(name)
        old, new = before(), memory_of(self._memory)
        if old is not None and old is not new:
            _move(_sharers(old), old, new)
    return self


def _resized(name: str, array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    geometry = (shape, strides, offset_of(array))
    owner, needed = memory_of(array), extent_of(geometry)
    nbytes = needed * array.itemsize
    if nbytes <= bytes_of(owner):
        return strided_view(array, geometry)
    _check_resizable(owner, nbytes)
    try:
        return strided_view(memory_copy(array, needed), geometry)
    except MemoryError:
        raise _no_memory(nbytes, f"{name}() was asked for the size {list(shape)}.") from None


def resize_storage(owner: Array, size: int) -> None:
    """Give the storage that `owner` is another size in bytes, and the tensors in it the new memory."""
    if size < 0 or size > LONG_MAX:
        raise RuntimeError(f"Trying to resize a storage to {size} bytes\nIt must be >= 0, and what memory holds.")
    _check_resizable(owner, size)
    tensors, storages = _sharers(owner)
    for tensor in tensors:
        needed = extent_of(geometry_of(tensor._memory, owner)) * tensor._dtype.itemsize
        if needed > size:
            raise RuntimeError(
                f"Trying to resize a storage to {size} bytes of which a tensor of shape {list(tensor._shape)} takes "
                f"{needed}\nLet go of the tensor, or give it other memory, first."
            )
    try:
        new = resized_bytes(owner, size)
    except MemoryError:
        raise _no_memory(size, "The storage was asked for that size.") from None
    _move((tensors, storages), owner, new)


def _check_resizable(owner: Array, nbytes: int) -> None:
    if devices.backend_of(owner).is_foreign(owner):
        raise RuntimeError(
            f"Trying to resize storage that is not resizable\nOf its memory, which belongs to another program's array, "
            f"{nbytes} bytes are wanted: clone() the tensor first."
        )


def _no_memory(nbytes: int, why: str) -> RuntimeError:
    return RuntimeError(f"can't allocate memory: you tried to allocate {nbytes} bytes\n{why}")


Sharers = tuple[list[Tensor], list[Storage]]


def _sharers(owner: Array) -> Sharers:
    """Return the tensors and the storages that show the memory of `owner`.

    Nobody keeps a list of them, for every view would have to be put on it: all objects that there are are looked at.
    """
    tensors, storages = [], []
    for found in gc.get_objects():
        kind = type(found)
        if kind is Storage:
            if found._array is owner:
                storages.append(found)
        elif issubclass(kind, Tensor):
            memory = getattr(found, "_memory", None)  # another thread may be about to make the tensor
            if memory is not None and memory_of(memory) is owner:
                tensors.append(found)
    return tensors, storages


def _move(sharers: Sharers, old: Array, new: Array) -> None:
    """Have tensors and storages that show the memory `old` show `new` in the same places."""
    tensors, storages = sharers
    for tensor in tensors:
        part = tensor._memory
        tensor._move_to(strided_view(new, geometry_of(part, old), part.dtype))
    for storage in storages:
        storage._array = new


@public(function_too=False)
def set_(
    self: Tensor, source: Tensor | None = None, storage_offset: int = 0, size: Sizes = None, stride: Sizes = None
) -> Tensor:
    """Let the tensor be what `source` is: its memory, shape and strides. The versions stay apart, as in PyTorch.

    Parameters
    ----------
    source : Tensor or Storage, optional
        Nothing gives an empty tensor.
    storage_offset, size, stride
        Which elements of the storage, in elements; all of them unless given.

    Raises
    ------
    RuntimeError
        If all of `source` is wanted and has another dtype, or a part of one that is not contiguous, or history would be
        lost: the operator has no derivative.
    """
    recording = general.wants_grad([self, source])
    check_inplace(self, recording, expanded=True)
    if recording:
        raise RuntimeError(
            "derivative for aten::set_ is not implemented: the tensor or its source requires grad.\n"
            "Use detach(), or gradscope.no_grad()."
        )
    self.data = self._around(_chosen_part(self, source, storage_offset, size, stride))
    self._forget_leaf()
    self._bump("set_")
    return self


def _source_of(self: Array, source: Array) -> Array:
    """Return the array that set_() is to show."""
    if source is None:
        return devices.array_module(self._memory).empty((0,), dtype=self._dtype)
    if isinstance(source, Storage):
        return strided_view(source._array, ((source.nbytes() // self._dtype.itemsize,), (1,), 0), self._dtype)
    if not hasattr(source, "_array"):
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    return source._memory


def _chosen_part(self: Array, source: Array, storage_offset: int, size: Sizes, stride: Sizes) -> Array:
    """Return what set_() is to show: the offset is the storage's where `source` is one, else that of the tensor."""
    array = _source_of(self, source)
    if size is None:
        if storage_offset:
            raise TypeError("set_() received an offset without a size\nSay which elements: set_(source, offset, size).")
        if array.dtype != self._dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.name} to a tensor of type {self.dtype.name}\n"
                "Convert the source with .to()."
            )
        return array.view()
    if not isinstance(source, Storage) and not array.flags.c_contiguous:
        raise RuntimeError(
            "passed in tensor to be used as storage must be contiguous\n"
            "Give its untyped_storage() and an offset into that, or a contiguous() copy."
        )
    shape = sizes_of((size,), "set_")
    steps = contiguous_strides(shape) if stride is None else sizes_of((stride,), "set_", "stride")
    start = 0 if isinstance(source, Storage) else offset_of(array)
    return strided_view(array, (shape, steps or contiguous_strides(shape), start + storage_offset), self._dtype)


# --- other elements ---------------------------------------------------------------------------------------------------


def _refuse_grad(name: str, *tensors: Operand) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.\n"
            "Autograd does not see what a Python function does to each element."
        )


def _replace(self: Array, name: str, function: Callable[..., Number], *others: Operand) -> Array:
    """Write what `function` returns for each element, one Python call each."""
    _refuse_grad(name, self, *others)
    if type(self._array) is not devices.ndarray:
        raise TypeError(f"{name} is only implemented on CPU tensors\nMove it there with .cpu().")
    for other in others:
        if other._dtype != self._dtype:
            found, wanted = (dtypes.BY_NUMPY[t._dtype].legacy_name for t in (other, self))
            raise TypeError(f"{name}: expected {wanted} for 'other' (got {found})\nConvert it with .to().")
        check_overlap(self._memory, other._memory)
    arrays = [self._array, *(other.expand(*self._array.shape)._array for other in others)]
    columns = [array.reshape(-1).tolist() for array in arrays]
    values = [function(*elements) for elements in zip(*columns, strict=True)]
    for value in values:
        if not isinstance(value, dtypes.NUMBERS):
            kind = type(value).__name__
            raise TypeError(f"must be real number, not {kind}\nThe function given to {name}() returned it.")
    self._write(numpy.array(values).astype(self._dtype).reshape(self._shape))
    self._bump(name)
    return self


@public(function_too=False)
def apply_(self: Tensor, callable: Callable[[Number], Number]) -> Tensor:
    """Replace each element by what a Python function makes of it: slow, on the CPU only, without gradients.

    Unlike PyTorch it counts as a write: a tensor saved for backward is found changed.
    """
    return _replace(self, "apply_", callable)


@public(function_too=False)
def map_(self: Tensor, other: Tensor, callable: Callable[[Number, Number], Number]) -> Tensor:
    """Replace each element by what a Python function makes of it and that of `other`, as :meth:`Tensor.apply_`."""
    if not hasattr(other, "_array"):
        raise TypeError(f"map_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return _replace(self, "map_", callable, other)


@public(function_too=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Number, Number, Number], Number]) -> Tensor:
    """Replace each element by what a Python function makes of it and those of `x` and `y`, as :meth:`Tensor.apply_`."""
    return _replace(self, "map2_", callable, x, y)
