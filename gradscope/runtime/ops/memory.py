"""Methods that give a tensor other memory, or other elements, past autograd: resize_, set_, apply_, map_."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .. import device as devices
from .. import dtype as dtypes
from ..storage import Storage, contiguous_strides, geometry_of, memory_of
from . import general
from .registry import OPERATORS, public
from .shapes import sizes_of
from .writes import check_overlap

# --- other memory -----------------------------------------------------------------------------------------------------


@public(function_too=False)
def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Give the tensor another shape; its storage keeps its elements, and grows where it is too small.

    Memory of an array cannot grow in place: a tensor that shares the storage keeps the old memory then.

    Parameters
    ----------
    *size : int

    Raises
    ------
    RuntimeError
        If the tensor requires grad, or a size is negative.
    """
    shape = sizes_of(size, "resize_")
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to resize a tensor to the negative size {list(shape)}\nSizes must be >= 0.")
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad\nResize a detach()ed tensor.")
    self.data = type(self)._wrap(_resized(self._array, shape))
    self._bump("resize_")
    return self


def _resized(array: Any, shape: tuple[int, ...]) -> Any:
    owner = memory_of(array)
    start = geometry_of(array, owner)[2]
    wanted = 1
    for length in shape:
        wanted *= length
    xp = devices.array_module(array)
    kept = owner.nbytes // array.itemsize - start
    as_strided = OPERATORS["as_strided.relative"].run_forward
    if wanted <= kept:
        return as_strided(xp, array, shape, contiguous_strides(shape), 0)
    fresh = xp.empty(wanted, dtype=array.dtype)
    fresh[:kept] = as_strided(xp, array, (kept,), (1,), 0)
    return fresh.reshape(shape)


@public
def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Give the tensor the shape of another one, as :meth:`Tensor.resize_` does."""
    return resize_(self, *the_template._array.shape)


@public(function_too=False)
def set_(self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
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
        If `source` has another dtype, or history would be lost: the operator has no derivative.
    """
    recording = general.wants_grad([self, source])
    self._check_inplace(recording)
    if recording:
        raise RuntimeError(
            "derivative for aten::set_ is not implemented: the tensor or its source requires grad.\n"
            "Use detach(), or gradscope.no_grad()."
        )
    self.data = type(self)._wrap(_chosen_part(self, _source_of(self, source), storage_offset, size, stride))
    self._bump("set_")
    return self


def _source_of(self: Any, source: Any) -> Any:
    """Return the array that set_() is to show."""
    if source is None:
        return devices.array_module(self._array).empty((0,), dtype=self._dtype)
    if isinstance(source, Storage):
        flat = source._array.reshape(-1) if source._array.flags.c_contiguous else source._array.ravel(order="K")
        return flat.view(self._dtype)
    if not hasattr(source, "_array"):
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    if source._dtype != self._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.name} to a tensor of type {self.dtype.name}\n"
            "Convert the source with .to()."
        )
    return source._array


def _chosen_part(self: Any, array: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    if size is None:
        return array[storage_offset:] if storage_offset else array.view()
    shape = tuple(size)
    steps = contiguous_strides(shape) if stride is None else tuple(stride)
    return type(self)._wrap(array).as_strided(shape, steps, storage_offset)._array


# --- other elements ---------------------------------------------------------------------------------------------------


def _refuse_grad(name: str, *tensors: Any) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.\n"
            "Autograd does not see what a Python function does to each element."
        )


def _replace(self: Any, name: str, function: Callable[..., Any], *others: Any) -> Any:
    """Write what `function` returns for each element, one Python call each."""
    _refuse_grad(name, self, *others)
    if type(self._array) is not devices.ndarray:
        raise TypeError(f"{name} is only implemented on CPU tensors\nMove it there with .cpu().")
    for other in others:
        if other._dtype != self._dtype:
            found, wanted = (dtypes.BY_NUMPY[t._dtype].legacy_name for t in (other, self))
            raise TypeError(f"{name}: expected {wanted} for 'other' (got {found})\nConvert it with .to().")
        check_overlap(self._array, other._array)
    arrays = [self._array, *(other.expand(*self._array.shape)._array for other in others)]
    columns = [array.reshape(-1).tolist() for array in arrays]
    values = [function(*elements) for elements in zip(*columns, strict=True)]
    for value in values:
        if not isinstance(value, general.NUMBERS):
            kind = type(value).__name__
            raise TypeError(f"must be real number, not {kind}\nThe function given to {name}() returned it.")
    self._array[...] = numpy.array(values).astype(self._dtype).reshape(self._array.shape)
    self._bump(name)
    return self


@public(function_too=False)
def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Replace each element by what a Python function makes of it: slow, on the CPU only, without gradients.

    Unlike PyTorch it counts as a write: a tensor saved for backward is found changed.
    """
    return _replace(self, "apply_", callable)


@public(function_too=False)
def map_(self: Any, other: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Replace each element by what a Python function makes of it and that of `other`, as :meth:`Tensor.apply_`."""
    if not hasattr(other, "_array"):
        raise TypeError(f"map_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return _replace(self, "map_", callable, other)


@public(function_too=False)
def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Replace each element by what a Python function makes of it and those of `x` and `y`, as :meth:`Tensor.apply_`."""
    return _replace(self, "map2_", callable, x, y)
