"""Copies: clone, dtype and device conversions, and the writes copy_, fill_, zero_."""

from __future__ import annotations

from typing import Any

import numpy

from ... import autocast, state
from ...kernels.casts import cast
from ...kernels.copies import copy_into, copy_of, row_major_copy
from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.elements import as_element
from ...memory.memory_format import check_rank, format_name
from ...memory.storage import in_order
from ...tensor import tangents
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, Device, DType, Gradient, MemoryFormat, Namespace, Number, Operand
from ..declaration.registry import METHODS, OPERATORS, Operator, operator, public
from ..declaration.samples import unary
from ..execution import general, inplace_and_out
from ..execution.array_errors import broadcast_mismatch


def _clone(xp: Namespace, self: Array, memory_format: MemoryFormat = None) -> Array:
    name = format_name(memory_format)
    if name == "channels_last":
        return _channels_last(self)
    if name == "contiguous_format" or (copy := in_order(self)) is self:
        if name != "contiguous_format":
            return copy_of(self) if self.__class__ is numpy.ndarray else self.copy(order="K")
        return row_major_copy(self) if self.__class__ is numpy.ndarray else self.copy(order="C")
    copy_into(copy, self)
    return copy


def _channels_last(array: Array) -> Array:
    check_rank(array.shape)
    last = array.transpose((0, 2, 3, 1))
    copy = row_major_copy(last) if array.__class__ is numpy.ndarray else last.copy(order="C")
    return copy.transpose((0, 3, 1, 2))


operator(
    "clone(Tensor self, *, memory_format? memory_format=None)",
    _clone,
    derivatives={"self": lambda g: g},
    doc="Copy, keeping the history.",
    samples=unary(),
    reference="numpy.copy",
)
autocast.scope["convert"] = operator(
    "to.dtype(Tensor self, dtype dtype)",
    lambda xp, self, dtype: cast(self, dtype.numpy),
    derivatives={"self": lambda g: g},
    node="ToCopyBackward0",
    method=False,
    samples=lambda make: [((make(2, 3), dtypes.complex128), {}), ((make(), dtypes.complex128), {})],
    doc="Convert to another dtype.",
    reference=lambda self, dtype: self.astype(dtype),
).function


def _back_to(g: Gradient, where_from: Device, F: Namespace) -> Gradient:
    return F.transfer(g, where_from, None)


operator(
    "transfer(Tensor self, device where, device? where_from)",
    lambda xp, self, where, where_from=None: devices.to_device(self, where),
    derivatives={"self": _back_to},
    node="ToCopyBackward0",
    method=False,
    public_name=False,
    doc="Copy to another device.",
)


def destination(args: tuple[Argument, ...], dtype: DType = None, device: Device = None) -> tuple[DType, Device]:
    """Return the dtype and the device that the arguments of ``to()`` name."""
    for argument in args:
        if argument is None or isinstance(argument, bool):
            continue
        if hasattr(argument, "_array"):
            dtype, device = argument.dtype, argument.device
        elif isinstance(argument, (str, int, devices.device)):
            device = argument
        else:
            dtype = argument
    return None if dtype is None else dtypes.to_dtype(dtype), device


@public(function_too=False)
def to(
    self: Tensor,
    *args: Any,
    dtype: DType = None,
    device: Device = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: MemoryFormat = None,
) -> Tensor:
    """Convert: ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``; itself if nothing changes.

    Parameters
    ----------
    *args
        A dtype, a device, both, or a tensor to be like; then `non_blocking` and `copy`.
    non_blocking : bool
        Taken for PyTorch's sake: a copy is there when the call returns.
    copy : bool
        Copy in any case.
    memory_format : memory_format, optional
        ``channels_last`` or ``contiguous_format``: how the elements of the result are to lie.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1, 2]).to(gs.float64).dtype
    gradscope.float64
    """
    dtype, device = destination(args, dtype, device)
    if len(args) > 1 and isinstance(args[-1], bool):
        copy = copy or (args[-1] and isinstance(args[-2], bool))
    result = self
    if device is not None:
        place = devices.device("cuda", device) if isinstance(device, int) else devices.device(device)
        if place != self.device:
            devices.resolve(place)
            result = OPERATORS["transfer"].function(result, place, self.device)
    if dtype is not None and dtype is not result.dtype:
        result = OPERATORS["to.dtype"].function(result, dtype)
    if format_name(memory_format) != "preserve_format":
        result = METHODS["contiguous"](result, memory_format)
    return OPERATORS["to.dtype"].function(self, self.dtype) if copy and result is self else result


@public(function_too=False)
def type(self: Tensor, dtype: DType = None, non_blocking: bool = False) -> Tensor | str:
    """Return the name of the tensor type, or convert to `dtype`, a dtype or such a name.

    Raises
    ------
    ValueError
        If there is no type of that name.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1.0]).type()
    'gradscope.FloatTensor'
    """
    if dtype is None:
        return f"gradscope.{self.dtype.legacy_name}"
    return to(self, dtype=_type_named(dtype) if isinstance(dtype, str) else getattr(dtype, "element_type", dtype))


def _type_named(name: str) -> dtypes.dtype:
    """Return the dtype of a tensor type's name, e.g. ``"gradscope.FloatTensor"``; PyTorch's prefix will do too."""
    module, _, kind = name.rpartition(".")
    found = next((d for d in dtypes.ALL_DTYPES if d.legacy_name == kind), None)
    if found is None or module not in ("gradscope", "torch"):
        names = ", ".join(d.legacy_name for d in dtypes.ALL_DTYPES)
        raise ValueError(f"invalid type: '{name}'\nIt is gradscope. and one of: {names}.")
    return found


@public(function_too=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype of `other`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1, 2]).type_as(gs.zeros(1))
    tensor([1., 2.])
    """
    return to(self, other.dtype)


@public(function_too=False)
def cpu(self: Tensor, memory_format: MemoryFormat = None) -> Tensor:
    """Return the tensor in host memory.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2).cpu().device
    device(type='cpu')
    """
    return to(self, device="cpu", memory_format=memory_format)


@public(function_too=False)
def cuda(self: Tensor, device: Device = None, non_blocking: bool = False, memory_format: MemoryFormat = None) -> Tensor:
    """Return the tensor on a CUDA device.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    return to(self, device="cuda" if device is None else device, memory_format=memory_format)


def _conversion(name: str, kind: dtypes.dtype) -> None:
    def convert(self: Array, memory_format: MemoryFormat = None) -> Array:
        return to(self, dtype=kind, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"Convert to ``{kind.name}``."
    public(convert, function_too=False)


for _name, _kind in (
    ("float", dtypes.float32),
    ("double", dtypes.float64),
    ("half", dtypes.float16),
    ("bfloat16", dtypes.bfloat16),
    ("int", dtypes.int32),
    ("long", dtypes.int64),
    ("short", dtypes.int16),
    ("char", dtypes.int8),
    ("byte", dtypes.uint8),
    ("bool", dtypes.bool_),
    ("cfloat", dtypes.complex64),
    ("cdouble", dtypes.complex128),
):
    _conversion(_name, _kind)


@public(function_too=False)
def contiguous(self: Tensor, memory_format: MemoryFormat = "contiguous_format") -> Tensor:
    """Return the tensor itself if its elements lie in row-major order, else a copy in which they do.

    Parameters
    ----------
    memory_format : memory_format
        ``contiguous_format``, or ``channels_last``: the order of ``permute(0, 2, 3, 1)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2, 3).T.contiguous().stride()
    (2, 1)
    """
    name = format_name(memory_format)
    if name == "preserve_format":
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator\nUse clone().")
    if name == "channels_last":
        check_rank(self._shape)
    array = self._memory if name == "contiguous_format" else self._memory.transpose((0, 2, 3, 1))
    return self if array.flags.c_contiguous else METHODS["clone"](self, memory_format=memory_format)


# --- writes -----------------------------------------------------------------------------------------------------------

operator(
    "copy(Tensor self, Tensor src)",
    lambda xp, self, src: xp.broadcast_to(src, self.shape).astype(self.dtype),
    derivatives={"self": lambda g, F: F.zeros_like(g), "src": lambda g: g},
    node="CopyBackwards",
    method=False,
    samples=lambda make: [((make(2, 3), make(2, 3)), {}), ((make(2, 3), make(3)), {}), ((make(), make()), {})],
    public_name=False,
    doc="Return `src` in the shape and dtype of `self`.",
    reference=lambda self, src: numpy.broadcast_to(src, self.shape).astype(self.dtype),
)


@public(function_too=False)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the elements of `src` (broadcast, converted) into this tensor; gradients flow to `src`."""
    if not hasattr(src, "_array"):
        raise TypeError(f"copy_(): argument 'other' must be Tensor, not {src.__class__.__name__}")
    op = OPERATORS["copy"]
    if type_differs(self._memory, src._memory):
        src = to(src, device=self.device)
    recording = self._dtype.kind in dtypes.INEXACT and general.wants_grad([self, src])
    if recording and self._shape == src._shape and (self._flags | src._flags) < state.INERT:
        return inplace_and_out.run_inplace(op, (self, src))  # which checks all but the shapes
    self._check_inplace(recording)
    inplace_and_out.check_overlap(self._memory, src._memory)
    _check_broadcast(self, src)
    if not recording and not (state.special and tangents.active()):
        return inplace_and_out.commit_inplace(op, self, _written(self, src._array), None, [self, src])
    return inplace_and_out.run_inplace(op, (self, src))


def _written(target: Tensor, values: Array) -> Array | None:
    """Return values that are still to be written into a tensor; None where this has done it."""
    memory = target._memory
    if memory.__class__ is not numpy.ndarray or memory.dtype is not values.dtype or target._flags & state.MATH_BITS:
        return values
    copy_into(memory, values)
    return None


def type_differs(a: Array, b: Array) -> bool:
    """Whether two arrays belong to different array modules."""
    return a.__class__ is not b.__class__


def _check_broadcast(target: Array, source: Array) -> None:
    have, want = source._shape, target._shape
    fits = len(have) <= len(want) and all(a in (1, b) for a, b in zip(reversed(have), reversed(want), strict=False))
    if not fits:
        mismatch = broadcast_mismatch([want, have])
        raise RuntimeError(
            (mismatch or f"The expanded size of the tensor {list(want)} does not fit the source {list(have)}")
            + f"\nIn copy_() of shape {list(have)} into shape {list(want)}."
        )


def _full(xp: Namespace, self: Array, value: Number) -> Array:
    return xp.full_like(self, as_element(value, self))


def _write_number(xp: Namespace, self: Array, value: Number = 0) -> None:
    copy_into(self, as_element(value, self))


def _fill_with(xp: Namespace, self: Array, value: Array) -> Array:
    if value.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.\n"
            "Use copy_(), which broadcasts."
        )
    return xp.broadcast_to(value, self.shape).astype(self.dtype)


operator(
    "fill.Scalar(Tensor self, Scalar value)",
    _full,
    inplace=True,
    write=_write_number,
    inplace_node="FillBackward2",
    expanded="allowed",
    method=False,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Return a tensor like `self` filled with a number.",
    samples=lambda make: [((make(2, 3), 1.5), {}), ((make(), 2), {})],
    reference=lambda self, value: numpy.full_like(self, value),
)
operator(
    "fill.Tensor(Tensor self, Tensor value)",
    _fill_with,
    inplace=True,
    inplace_node="FillBackward3",
    method=False,
    node="FillBackward1",
    derivatives={"self": lambda g, F: F.zeros_like(g), "value": lambda g: g},
    doc="Return a tensor like `self` filled with the element of a 0-d tensor.",
    samples=lambda make: [((make(2, 3), make()), {})],
    reference=lambda self, value: numpy.full_like(self, value),
)
operator(
    "zero(Tensor self)",
    lambda xp, self: xp.zeros_like(self),
    inplace=True,
    write=_write_number,
    expanded="allowed",
    method=False,
    public_name=False,
    derivatives={"self": lambda g, F: F.zeros_like(g)},
    doc="Return zeros like `self`.",
    samples=unary(),
    reference="numpy.zeros_like",
)


def _fill_form(value: Operand) -> Operator:
    return OPERATORS["fill.Tensor" if hasattr(value, "_array") else "fill.Scalar"]


@public(method=False)
def fill(self: Tensor, value: Operand) -> Tensor:
    """Return a tensor like `self` filled with a number, or with the element of a 0-d tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fill(gs.zeros(2), 7.0)
    tensor([7., 7.])
    """
    return _fill_form(value).function(self, value)


@public
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Fill with a number, or with the element of a 0-d tensor."""
    return _fill_form(value).inplace_function(self, value)  # type: ignore[misc]


@public(function_too=False)
def zero_(self: Tensor) -> Tensor:
    """Fill with zeros."""
    return OPERATORS["zero"].inplace_function(self)  # type: ignore[misc]


del _name, _kind
