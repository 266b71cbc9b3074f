"""Making tensors: factories, conversions from lists and arrays, ``*_like``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from . import device as devices
from . import dtype as dtypes
from . import state
from .storage import in_order
from .tensor import Tensor

__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
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


def finish(array: Any, requires_grad: bool) -> Tensor:
    """Wrap `array`, with requires_grad and the marks of the current mode."""
    result = Tensor._wrap(array)
    if state.local.inference:
        result._mark_inference()
    return result.requires_grad_() if requires_grad else result


def shape_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f(size=...)``."""
    if len(size) == 1 and not isinstance(size[0], (int, numpy.integer, Tensor)):
        size = tuple(size[0])
    shape = tuple(int(s) for s in size)
    if any(s < 0 for s in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension in {list(shape)}\nSizes must be >= 0.")
    return shape


def numpy_dtype(kind: Any) -> numpy.dtype:
    """Return the NumPy dtype of a dtype argument; the default one for None."""
    return dtypes.default_dtype.numpy if kind is None else dtypes.to_dtype(kind).numpy


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a leaf with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence, numpy.ndarray or Tensor
    dtype : dtype, optional
        Inferred from the data: Python floats give the default dtype, integers ``int64``, booleans ``bool``.
    device : str or device, optional
    requires_grad : bool

    Raises
    ------
    ValueError
        If nested sequences are ragged.
    TypeError
        If the data holds something that is no number.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    array = to_array(data, dtype)
    array = array.copy() if isinstance(data, (Tensor, numpy.ndarray)) or devices.is_array(data) else array
    return finish(_place(array, device), requires_grad)


def _place(array: Any, where: Any) -> Any:
    return array if where is None else devices.to_device(array, where)


def to_array(data: Any, kind: Any = None) -> Any:
    """Return `data` as an array of a supported dtype; PyTorch's inference for Python numbers."""
    if isinstance(data, Tensor):
        array = data._array
    elif devices.is_array(data):
        array = data
    else:
        array = _from_python(data)
        if kind is None and array.dtype.kind in "fc" and not isinstance(data, numpy.generic) and _all_python(data):
            array = array.astype(_default_of(array.dtype.kind))
    if kind is not None:
        array = array.astype(dtypes.to_dtype(kind).numpy, copy=False)
    if array.dtype not in dtypes.BY_NUMPY:
        names = ", ".join(d.name for d in dtypes.ALL_DTYPES)
        raise TypeError(
            f"can't convert data of type {array.dtype}. The only supported types are: {names}.\n"
            "Convert it first, e.g. with .astype()."
        )
    if any(step < 0 for step in array.strides) and array.size > 1:
        array = array.copy()
    return array


def _default_of(kind: str) -> numpy.dtype:
    return dtypes.default_dtype.numpy if kind == "f" else dtypes.default_dtype.numpy_complex


def _from_python(data: Any) -> numpy.ndarray:
    try:
        array = numpy.array(_without_tensors(data))
    except ValueError as error:
        raise ValueError(f"expected sequences of equal length in every dimension\n{error}") from None
    if array.dtype == object or array.dtype.kind in "USmM":
        raise TypeError(f"new(): invalid data type '{type(data).__name__}': tensors hold numbers only")
    return array.astype(dtypes.default_dtype.numpy) if array.size == 0 and array.dtype == numpy.float64 else array


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._array if data._array.ndim else data.item()
    if isinstance(data, (list, tuple)):
        return [_without_tensors(item) for item in data]
    return data


def _all_python(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return not isinstance(data, (numpy.generic, numpy.ndarray, Tensor))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return `data` as a tensor, sharing memory (and history) where dtype and device allow."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype) if dtype is not None or device is not None else data
    return Tensor._wrap(_place(to_array(data, dtype), device))


def from_numpy(array: numpy.ndarray) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Raises
    ------
    TypeError
        If it is no array, or has a dtype without a counterpart.
    ValueError
        If a stride is negative.
    """
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if array.dtype not in dtypes.BY_NUMPY:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}\nConvert it with .astype().")
    return Tensor._wrap(array)


def from_dlpack(source: Any) -> Tensor:
    """Return a tensor that shares the memory of any object with ``__dlpack__``."""
    kind, _ = source.__dlpack_device__()
    module = numpy if kind == 1 else devices.module_for("cuda")
    return Tensor._wrap(module.from_dlpack(source))


def _filled(function: str, size: tuple[Any, ...], kind: Any, where: Any, requires_grad: bool) -> Tensor:
    module = devices.module_for(where)
    return finish(getattr(module, function)(shape_of(size), dtype=numpy_dtype(kind)), requires_grad)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros."""
    return _filled("zeros", size, dtype, device, requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones."""
    return _filled("ones", size, dtype, device, requires_grad)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return an uninitialised tensor."""
    return _filled("empty", size, dtype, device, requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor filled with one number."""
    kind = dtypes.scalar_dtype(fill_value) if dtype is None else numpy_dtype(dtype)
    return finish(devices.module_for(device).full(shape_of((size,)), fill_value, dtype=kind), requires_grad)


def _like(function: str, source: Tensor, kind: Any, where: Any, requires_grad: bool) -> Tensor:
    module = devices.array_module(source._array) if where is None else devices.module_for(where)
    target = source._array.dtype if kind is None else numpy_dtype(kind)
    if module is devices.array_module(source._array):
        array = getattr(module, function + "_like")(in_order(source._array), dtype=target)
    else:
        array = getattr(module, function)(source._array.shape, dtype=target)
    return finish(array, requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return zeros of the shape, dtype and device of `input`."""
    return _like("zeros", input, dtype, device, requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return ones of the shape, dtype and device of `input`."""
    return _like("ones", input, dtype, device, requires_grad)


def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return an uninitialised tensor of the shape, dtype and device of `input`."""
    return _like("empty", input, dtype, device, requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor like `input` filled with one number."""
    result = _like("empty", input, dtype, device, False)
    result._array[...] = fill_value
    return result.requires_grad_() if requires_grad else result


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return the values from `start` (0) to `end`, exclusive, in steps of `step`."""
    start, end = (0, start) if end is None else (start, end)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: ({start}, {end}, {step})")
    if dtype is None:
        floating = any(isinstance(v, float) for v in (start, end, step))
        kind = dtypes.default_dtype.numpy if floating else dtypes.int64.numpy
    else:
        kind = numpy_dtype(dtype)
    return finish(devices.module_for(device).arange(start, end, step, dtype=kind), requires_grad)


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return `steps` values from `start` to `end`, both included."""
    return finish(devices.module_for(device).linspace(start, end, steps, dtype=numpy_dtype(dtype)), requires_grad)


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` values from ``base**start`` to ``base**end``, evenly spaced in the exponent."""
    exponents = devices.module_for(device).linspace(start, end, steps)
    return finish((base**exponents).astype(numpy_dtype(dtype)), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return the identity matrix of `n` rows and `m` (or `n`) columns."""
    return finish(devices.module_for(device).eye(n, n if m is None else m, dtype=numpy_dtype(dtype)), requires_grad)


def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a 0-d tensor of the default dtype."""
    return full(
        (),
        value,
        dtype=dtypes.get_default_dtype() if dtype is None else dtype,
        device=device,
        requires_grad=requires_grad,
    )


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all of `shapes` broadcast to.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    try:
        return numpy.broadcast_shapes(*(tuple(s) for s in shapes))
    except ValueError:
        found = " and ".join(str(list(s)) for s in shapes)
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape: {found}\n"
            "Counted from the right, sizes must be equal or 1."
        ) from None
