"""Making tensors: factories, conversions from lists and arrays, ``*_like``.

What is given no device is made on the default one. `layout` and `pin_memory` are taken for PyTorch's sake: there is one
layout, and the host's memory is not pinned.
"""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy

from .. import dispatch, events, state
from ..memory import device as devices
from ..memory import dtype as dtypes
from ..memory.dtype import scalar_type
from ..memory.elements import as_element
from ..memory.memory_format import check_memory, check_rank, format_name
from ..memory.storage import adopted, extent_of, in_order, strided_view
from .from_python import to_array
from .overrides import overridable
from .tensor import Tensor, no_size, shape_of

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eye",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]


def finish(array: Any, requires_grad: bool, out: Any = None, name: str = "") -> Tensor:
    """Wrap `array`, with requires_grad and the marks of the current mode; or write it into `out`."""
    if out is not None:
        dispatch.refuse_out(name, [], out)
        return dispatch.store_out(name, array, [], out)
    result = Tensor._wrap(array)
    if state.local.inference:
        result._mark_inference()
    if not requires_grad:
        return result
    if array.dtype.kind not in dtypes.INEXACT:
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients, this one is {result.dtype}\n"
            "Give it a floating dtype, or convert it with .float()."
        )
    return result.requires_grad_()


def number_of(name: str, argument: str, position: int, value: Any) -> Any:
    """Return a number, also from a tensor of one element.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if isinstance(value, Tensor):
        return value.item()
    if not isinstance(value, (int, float, complex, numpy.number, numpy.bool_)):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Number, not {value.__class__.__name__}"
        )
    return value


def count_of(name: str, argument: str, position: int, value: Any) -> int:
    """Return an integer argument.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be int, not {value.__class__.__name__}"
        )
    return int(value)


def numpy_dtype(kind: Any, out: Any = None) -> numpy.dtype:
    """Return the NumPy dtype of a dtype argument; that of `out`, or the default one, for None."""
    if out is None:
        return dtypes.default_dtype.numpy if kind is None else dtypes.to_dtype(kind).numpy
    if kind is not None and dtypes.to_dtype(kind) is not out.dtype:
        raise RuntimeError(
            f"dtype {dtypes.to_dtype(kind).name} does not match dtype of out parameter ({out.dtype.name})\n"
            "Leave dtype away."
        )
    return out._dtype


# --- from data --------------------------------------------------------------------------------------------------------


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a leaf with a copy of `data`.

    Parameters
    ----------
    dtype : dtype, optional
        Inferred from the data: Python floats give the default dtype, integers ``int64``, booleans ``bool``.

    Raises
    ------
    ValueError
        If nested sequences are ragged, or a number does not fit.
    TypeError, RuntimeError
        If the data holds something that is no number.

    See Also
    --------
    as_tensor, from_numpy, Tensor.clone

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if pin_memory:
        check_memory("tensor", None, pin_memory)
    array = to_array(data, dtype)
    array = array.copy() if isinstance(data, (Tensor, numpy.ndarray)) or devices.is_array(data) else array
    result = finish(_place(array, device), requires_grad)
    if state.special and events.wanted(events.OperatorRecorded):
        _tell_copied(data, result)
    return result


def _tell_copied(data: Any, result: Tensor) -> None:
    """Tell the listeners which tensors' values were copied."""
    copied, rest = [], [data]
    while rest:
        item = rest.pop()
        if isinstance(item, Tensor):
            copied.append(item)
        elif isinstance(item, (list, tuple)):
            rest.extend(reversed(item))
    if copied:
        site = events.call_site_if_wanted()
        events.emit(events.OperatorRecorded(None, "tensor", tuple(copied), (result,), site))


def _place(array: Any, where: Any) -> Any:
    where = devices.wanted(where)
    return array if where is None else devices.to_device(array, where)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return `data` as a tensor, sharing memory (and history) where dtype and device allow.

    See Also
    --------
    tensor, asarray, from_numpy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        device = devices.wanted(device)
        return data.to(device=device, dtype=dtype) if dtype is not None or device is not None else data
    array, shared = _shared(data, dtype, device)
    result = finish(array, False)
    if shared:
        result._tell_shared("as_tensor()")
    return result


def _shared(data: Any, dtype: Any, device: Any) -> tuple[Any, bool]:
    """Return an array of what is no tensor, and whether it shares the memory: it is another object in any case."""
    array = _place(to_array(data, dtype), device)
    if array is not data:
        return array, False
    return adopted(array), True


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Return `obj`, a tensor, array or nested sequence, as a tensor that shares its memory where it can.

    Parameters
    ----------
    copy : bool, optional
        True copies always; False raises where the memory cannot be shared.
    requires_grad : bool, optional
        A tensor is a part of its graph, as without this argument, if true; it is detached if false. What has no history
        becomes a leaf that requires grad if true.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed.

    See Also
    --------
    as_tensor, from_numpy, from_dlpack

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.asarray([1.0, 2.0])
    tensor([1., 2.])
    """
    if isinstance(obj, Tensor):
        result = as_tensor(obj.detach() if requires_grad is False else obj, dtype, device)
        shared = result._memory is obj._memory
    else:
        array, shared = _shared(obj, dtype, device)
        result = finish(array, False)
    if copy and shared:
        return result.clone()
    if copy is False and not shared:
        raise ValueError("can't alias arbitrary sequence into a tensor.\nLeave copy away, or give it an array.")
    if shared and not isinstance(obj, Tensor):
        result._tell_shared("asarray()")
    return result.requires_grad_() if requires_grad else result


def from_numpy(array: numpy.ndarray) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    The storage is what lies between the first and the last element of the array, not the memory that it is a part of.

    Raises
    ------
    TypeError
        If it is no array, or has a dtype without a counterpart.
    ValueError
        If a stride is negative or no multiple of the element size, or the byte order is not the machine's.

    See Also
    --------
    as_tensor, Tensor.numpy, from_dlpack

    Examples
    --------
    >>> import gradscope as gs
    >>> import numpy
    >>> gs.from_numpy(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=gradscope.float64)
    """
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {array.__class__.__name__})")
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported.\nConvert it with .astype(array.dtype.newbyteorder('='))."
        )
    if array.dtype not in dtypes.BY_NUMPY:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}\nConvert it with .astype().")
    tensor = finish(adopted(array), False)
    tensor._tell_shared("from_numpy()")
    return tensor


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a tensor with one dimension that shares the memory of an object with Python's buffer protocol.

    Of memory that is read-only the tensor gets a copy, where PyTorch's would write what must not be written.

    Parameters
    ----------
    buffer : bytearray, memoryview, array.array or another
        What holds the numbers.
    count : int
        How many numbers; all that there are, if negative.
    offset : int
        How many bytes to pass over.

    Raises
    ------
    ValueError
        If it is no buffer, or has too few bytes, or a number would be cut off.

    See Also
    --------
    from_numpy, asarray

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.frombuffer(bytearray([1, 2, 3]), dtype=gs.uint8, offset=1)
    tensor([2, 3], dtype=gradscope.uint8)
    """
    kind = numpy_dtype(dtype)
    try:
        there = memoryview(buffer)
    except TypeError:
        raise ValueError(
            "object does not implement Python buffer protocol.\nPass a bytearray, a memoryview or an array."
        ) from None
    _check_buffer(there.nbytes, kind.itemsize, count, offset)
    array = numpy.frombuffer(there, kind, max(count, -1), offset)
    result = finish(adopted(array if array.flags.writeable else array.copy()), requires_grad)
    if array.flags.writeable:
        result._tell_shared("frombuffer()")
    return result


def _check_buffer(size: int, item: int, count: int, offset: int) -> None:
    """Raise ValueError where a buffer has not the numbers that are asked for."""
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0\nPass a buffer with numbers.")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1\n"
            "Pass one within the buffer."
        )
    if count > 0 and count * item > size - offset:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)\nAsk for fewer numbers."
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})\n"
            "Pass count, or another offset."
        )


def from_dlpack(source: Any) -> Tensor:
    """Return a tensor that shares the memory of any object with ``__dlpack__``, or of a capsule that has made one.

    Raises
    ------
    ValueError
        If a stride is negative.
    RuntimeError
        If the capsule has been used, or its dtype has no place in NumPy.

    See Also
    --------
    from_numpy, asarray

    Examples
    --------
    >>> import gradscope as gs
    >>> import numpy
    >>> gs.from_dlpack(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=gradscope.float64)
    """
    if type(source).__name__ == "PyCapsule":
        return finish(adopted(_unpacked(source)), False)
    if not hasattr(source, "__dlpack_device__"):
        raise RuntimeError(
            f"from_dlpack() needs a tensor, an array or a DLPack capsule, not {type(source).__name__}\n"
            "tensor() makes a tensor of numbers and lists."
        )
    kind, _ = source.__dlpack_device__()
    if kind == 1:
        return finish(adopted(numpy.from_dlpack(source)), False)
    return finish(adopted(devices.module_for("cuda").from_dlpack(source)), False)


def _unpacked(capsule: Any) -> numpy.ndarray:
    """Return an array in the memory of a capsule, which is used up."""
    try:
        array = numpy.from_dlpack(_Capsule(capsule))
    except ValueError:
        raise RuntimeError(
            "from_dlpack() was given an invalid capsule\nA capsule can be used once; pass the tensor itself instead."
        ) from None
    # NumPy writes nothing that came in a capsule, which cannot tell whether it may be written; PyTorch does.
    facts = array.__array_interface__
    lent = SimpleNamespace(__array_interface__={**facts, "data": (facts["data"][0], False)}, array=array)
    return numpy.asarray(lent)


class _Capsule:
    """What lends a capsule the methods by which NumPy asks for one; it is of the CPU's memory, as all that we make."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


# --- filled -----------------------------------------------------------------------------------------------------------


def _filled(
    name: str, size: tuple[Any, ...], given: Any, out: Any, kind: Any, where: Any, requires_grad: bool
) -> Tensor:
    module = devices.module_for(devices.wanted(where))
    array = getattr(module, name)(shape_of(size, name, given), dtype=numpy_dtype(kind, out))
    return finish(array, requires_grad, out, name)


def zeros(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    See Also
    --------
    zeros_like, ones, empty, full

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if layout is not None or pin_memory:
        check_memory("zeros", layout, pin_memory)
    return _filled("zeros", sizes, size, out, dtype, device, requires_grad)


def ones(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of ones.

    See Also
    --------
    ones_like, zeros, full

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if layout is not None or pin_memory:
        check_memory("ones", layout, pin_memory)
    return _filled("ones", sizes, size, out, dtype, device, requires_grad)


def empty(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return an uninitialised tensor.

    See Also
    --------
    zeros, empty_like, empty_strided

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.empty(2, 3).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("empty", layout, pin_memory)
    if memory_format is None or format_name(memory_format) != "channels_last":
        return _filled("empty", sizes, size, out, dtype, device, requires_grad)
    rows = _filled("empty", _channels_last(shape_of(sizes, "empty", size)), None, None, dtype, device, False)
    return finish(rows._array.transpose((0, 3, 1, 2)), requires_grad, out, "empty")


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialised tensor with given strides, in elements.

    Raises
    ------
    RuntimeError
        If there are not as many strides as sizes, or one is negative.

    See Also
    --------
    empty_permuted, as_strided

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.empty_strided((2, 3), (1, 2)).is_contiguous()
    False
    """
    check_memory("empty_strided", layout, pin_memory)
    shape, strides = shape_of((), "empty_strided", size), tuple(map(operators.index, stride))
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})\n"
            "Give one stride for each dimension."
        )
    if any(step < 0 for step in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}\n"
            "Give strides that are not negative; flip() copies."
        )
    geometry = (shape, strides, 0)
    memory = empty(extent_of(geometry), dtype=dtype, device=device)._array
    return finish(strided_view(memory, geometry), requires_grad)


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialised tensor whose dimensions lie in memory in the order of `physical_layout`.

    Parameters
    ----------
    physical_layout : tuple of int
        The dimensions, from the outermost in memory to the innermost.

    Raises
    ------
    RuntimeError
        If `physical_layout` is no order of the dimensions.

    See Also
    --------
    empty_strided, empty

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    check_memory("empty_permuted", layout, pin_memory)
    shape, order = shape_of((), "empty_permuted", size), tuple(map(operators.index, physical_layout))
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(
            f"empty_permuted(): physical_layout {list(order)} is no order of the {len(shape)} dimensions of size "
            f"{list(shape)}\nName each dimension once, from 0 to {len(shape) - 1}."
        )
    memory = empty(tuple(shape[dim] for dim in order), dtype=dtype, device=device)._array
    return finish(memory.transpose(sorted(range(len(order)), key=order.__getitem__)), requires_grad)


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the memory in which a tensor of this shape has its channels last."""
    check_rank(shape)
    n, c, h, w = shape
    return n, h, w, c


def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor filled with one number.

    See Also
    --------
    full_like, zeros, ones

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.full((2, 2), 7.0)
    tensor([[7., 7.],
            [7., 7.]])
    """
    if layout is not None or pin_memory:
        check_memory("full", layout, pin_memory)
    if not isinstance(size, (list, tuple)):
        raise no_size("full", size)
    value = number_of("full", "fill_value", 2, fill_value)
    inferred = fill_value._dtype if isinstance(fill_value, Tensor) else dtypes.scalar_dtype(value)
    kind = inferred if dtype is None and out is None else numpy_dtype(dtype, out)
    array = devices.module_for(devices.wanted(device)).empty(shape_of((size,), "full"), dtype=kind)
    array[...] = as_element(value, array)
    return finish(array, requires_grad, out, "full")


def array_like(function: str, source: Tensor, kind: Any, where: Any, memory_format: Any, name: str = "") -> Any:
    """Return what ``zeros``, ``ones`` or ``empty`` makes in the shape of `source`, laid out as `memory_format` says."""
    if not isinstance(source, Tensor):
        name = name or f"{function}_like"
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {source.__class__.__name__}")
    array, layout = source._array, format_name(memory_format)
    module = devices.array_module(array) if where is None else devices.module_for(where)
    target = array.dtype if kind is None else numpy_dtype(kind)
    if layout == "channels_last":
        return getattr(module, function)(_channels_last(array.shape), dtype=target).transpose((0, 3, 1, 2))
    if layout == "preserve_format" and module is devices.array_module(array):
        return getattr(module, function + "_like")(in_order(array), dtype=target)
    return getattr(module, function)(array.shape, dtype=target)


@overridable
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return zeros of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    zeros, ones_like, empty_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros_like(gs.tensor([5, 6]))
    tensor([0, 0])
    """
    if layout is not None or pin_memory:
        check_memory("zeros_like", layout, pin_memory)
    return finish(array_like("zeros", input, dtype, device, memory_format), requires_grad)


@overridable
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return ones of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    ones, zeros_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ones_like(gs.tensor([5, 6]))
    tensor([1, 1])
    """
    if layout is not None or pin_memory:
        check_memory("ones_like", layout, pin_memory)
    return finish(array_like("ones", input, dtype, device, memory_format), requires_grad)


@overridable
def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return an uninitialised tensor of the shape, dtype, device and memory order of `input`.

    See Also
    --------
    empty, zeros_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.empty_like(gs.ones(2, 3)).shape
    gradscope.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_memory("empty_like", layout, pin_memory)
    return finish(array_like("empty", input, dtype, device, memory_format), requires_grad)


@overridable
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor like `input` filled with one number.

    See Also
    --------
    full, zeros_like

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.full_like(gs.ones(2), 7.0)
    tensor([7., 7.])
    """
    if layout is not None or pin_memory:
        check_memory("full_like", layout, pin_memory)
    value = number_of("full_like", "fill_value", 2, fill_value)
    array = array_like("empty", input, dtype, device, memory_format, "full_like")
    array[...] = as_element(value, array)
    return finish(array, requires_grad)


# --- sequences --------------------------------------------------------------------------------------------------------


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return the values from `start` (0) to `end`, exclusive, in steps of `step`.

    See Also
    --------
    linspace, logspace, randperm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if layout is not None or pin_memory:
        check_memory("arange", layout, pin_memory)
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    start, end, step = range_numbers("arange", start, end, step)
    if dtype is None and out is None:
        floating = any(isinstance(v, (float, numpy.floating)) for v in (start, end, step))
        kind = dtypes.default_dtype.numpy if floating else dtypes.int64.numpy
    else:
        kind = numpy_dtype(dtype, out)
    need_kind("arange", kind, "iufV")
    array = _sequence(devices.module_for(devices.wanted(device)), start, end, step, kind)
    return finish(array, requires_grad, out, "arange")


def _sequence(module: Any, start: Any, end: Any, step: Any, kind: numpy.dtype) -> Any:
    """Return the values of arange(): integers are cut first, for int64 before the values are counted, as in PyTorch."""
    if kind.kind in dtypes.FLOATING:
        values = module.arange(math.ceil((end - start) / step), dtype="float64") * step + start
        return values.astype(kind, copy=False)
    first, last, stride = int(start), int(end), int(step)
    if kind.itemsize < 8:
        count = math.ceil((end - start) / step)
    elif stride:
        count = max(-((first - last) // stride), 0)
    else:
        raise ValueError(f"step must be nonzero\nAs an integer {step} is 0.")
    if not stride:
        return module.full(count, first, dtype="int64").astype(kind)
    return module.arange(first, first + count * stride, stride, dtype="int64").astype(kind, copy=False)


def need_kind(name: str, kind: numpy.dtype, kinds: str) -> None:
    """Raise where a sequence is asked for in a dtype that it has no kernel for."""
    if kind.kind not in kinds:
        raise NotImplementedError(
            f"\"{name}_cpu\" not implemented for '{scalar_type(kind)}'\nConvert the result: gradscope.{name}(...).to()."
        )


def range_numbers(name: str, start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """Return the three arguments of arange(), or of another function, as numbers, checked."""
    numbers = tuple(
        number_of(name, argument, position, value)
        for position, (argument, value) in enumerate((("start", start), ("end", end), ("step", step)), 1)
    )
    if any(isinstance(number, complex) for number in numbers):
        raise RuntimeError(f"value cannot be converted to type double without overflow\n{name}() takes real numbers.")
    start, end, step = numbers
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: ({start}, {end}, {step})")
    return numbers


def _ends(name: str, start: Any, end: Any, steps: Any, kind: Any, out: Any) -> tuple[numpy.ndarray, int, numpy.dtype]:
    """Return the two ends of linspace() or logspace() as elements of its dtype, the number of steps, and that dtype."""
    count = count_of(name, "steps", 3, steps)
    if count < 0:
        raise RuntimeError(f"number of steps must be non-negative\nIt is {count}.")
    ends = [_end_of(name, word, place, v) for place, (word, v) in enumerate((("start", start), ("end", end)), 1)]
    complex_ends = any(isinstance(number, (complex, numpy.complexfloating)) for number in ends)
    inferred = dtypes.default_dtype.numpy_complex if complex_ends else dtypes.default_dtype.numpy
    target = inferred if kind is None and out is None else numpy_dtype(kind, out)
    if complex_ends and target.kind != "c":
        raise RuntimeError(
            f"{name}(): inferred dtype {dtypes.BY_NUMPY[inferred].name} can't be safely cast to passed dtype "
            f"{dtypes.BY_NUMPY[target].name}\nGive a complex dtype, or real numbers."
        )
    need_kind(name, target, "iufVc" if count > 1 else "biufVc")
    elements = [as_element(number, numpy.empty(0, target)) for number in ends] if count else [0, 0]
    return numpy.array(elements).astype(target), count, target


def _evenly(module: Any, ends: numpy.ndarray, count: int) -> Any:
    """Return `count` values from one end to the other, counted in the precision of these and from the nearer one."""
    kind = ends.dtype
    first, last = ends
    with numpy.errstate(over="ignore", invalid="ignore"):
        steps = kind.type(max(count - 1, 1))
        step = (last - first) / steps
        if not abs(step) < math.inf:  # their distance may overflow where the ends do not
            step = last / steps - first / steps
        places = module.arange(count).astype(kind)
        low, high = places * step + first, last - places[::-1] * step
    return module.where(module.arange(count) < max(count // 2, 1), low, high)  # a single value is the first


def _end_of(name: str, word: str, place: int, value: Any) -> Any:
    """Return one end of linspace() or logspace() as a number."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got {word} with {value.ndim} "
            "dimension(s).\nGive numbers, or tensors of one element as x.squeeze()."
        )
    return number_of(name, word, place, value)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return `steps` values from `start` to `end`, both included.

    See Also
    --------
    logspace, arange

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if layout is not None or pin_memory:
        check_memory("linspace", layout, pin_memory)
    module = devices.module_for(devices.wanted(device))
    ends, count, kind = _ends("linspace", start, end, steps, dtype, out)
    array = _evenly(module, ends.astype(float) if kind.kind in "biu" else ends, count)
    return finish(array.astype(kind), requires_grad, out, "linspace")


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return `steps` values from ``base**start`` to ``base**end``, evenly spaced in the exponent.

    See Also
    --------
    linspace, arange

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if layout is not None or pin_memory:
        check_memory("logspace", layout, pin_memory)
    module = devices.module_for(devices.wanted(device))
    if isinstance(base, complex):
        raise TypeError("logspace(): argument 'base' must be float, not complex\nGive a real base.")
    ends, count, kind = _ends("logspace", start, end, steps, dtype, out)
    exponents = _evenly(module, ends.astype(complex if kind.kind == "c" else float), count)
    return finish((base**exponents).astype(kind), requires_grad, out, "logspace")


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return the identity matrix of `n` rows and `m` (or `n`) columns.

    See Also
    --------
    diag, nn.functional.one_hot

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if layout is not None or pin_memory:
        check_memory("eye", layout, pin_memory)
    rows = count_of("eye", "n", 1, n)
    columns = rows if m is None else count_of("eye", "m", 2, m)
    for name, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    array = devices.module_for(devices.wanted(device)).eye(rows, columns, dtype=numpy_dtype(dtype, out))
    return finish(array, requires_grad, out, "eye")


def scalar_tensor(
    value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a 0-d tensor of the default dtype.

    See Also
    --------
    tensor, full

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.scalar_tensor(3.0)
    tensor(3.)
    """
    if layout is not None or pin_memory:
        check_memory("scalar_tensor", layout, pin_memory)
    array = devices.module_for(devices.wanted(device)).empty((), dtype=numpy_dtype(dtype))
    array[...] = as_element(number_of("scalar_tensor", "s", 1, value), array, wide=True)
    return finish(array, requires_grad)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all of `shapes` broadcast to; an integer is a shape of one dimension.

    Raises
    ------
    RuntimeError
        If there is none.

    See Also
    --------
    broadcast_tensors, broadcast_to

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return numpy.broadcast_shapes(*(operators.index(s) if hasattr(s, "__index__") else tuple(s) for s in shapes))
    except ValueError:
        found = " and ".join(str([s] if hasattr(s, "__index__") else list(s)) for s in shapes)
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape: {found}\n"
            "Counted from the right, sizes must be equal or 1."
        ) from None
