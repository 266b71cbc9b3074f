"""Python's numbers and nested sequences as arrays, of the dtypes and with the complaints that PyTorch has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from ..memory import device as devices
from ..memory import dtype as dtypes
from .tensor import Tensor

__all__ = ["to_array"]


def to_array(data: Any, kind: Any = None) -> Any:
    """Return `data` as an array of a supported dtype; PyTorch's inference for Python numbers."""
    if isinstance(data, Tensor):
        array = data._array
    elif devices.is_array(data):
        array = data
    else:
        array = _from_python(data, kind)
    if kind is not None:
        array = _converted(array, dtypes.to_dtype(kind).numpy)
    if array.dtype not in dtypes.BY_NUMPY:
        names = ", ".join(d.name for d in dtypes.ALL_DTYPES)
        raise TypeError(
            f"can't convert data of type {array.dtype}. The only supported types are: {names}.\n"
            "Convert it first, e.g. with .astype()."
        )
    if any(step < 0 for step in array.strides) and array.size > 1:
        array = array.copy()
    return array


def _converted(array: Any, target: numpy.dtype) -> Any:
    if array.dtype.kind == "c" and target.kind in "biuf":
        raise TypeError(f"must be real number, not complex\nThe dtype asked for is {target.name}.")
    return array.astype(target, copy=False)


_NUMBERS: dict[type, Callable[[], numpy.dtype]] = {
    bool: lambda: dtypes.bool_.numpy,
    int: lambda: dtypes.int64.numpy,
    float: lambda: dtypes.default_dtype.numpy,
    complex: lambda: dtypes.default_dtype.numpy_complex,
}


def _from_python(data: Any, kind: Any) -> numpy.ndarray:
    """Return numbers and nested sequences of them as an array, of the dtype that PyTorch infers."""
    kinds = _kinds_in(data)
    plain = _without_tensors(data)
    try:
        array = numpy.array(plain)
    except ValueError:
        raise _ragged(data) from None
    # NumPy makes int64 of Python's integers, and something else where one is too large.
    whole = kinds == {dtypes.int64.numpy} and (kind is None or dtypes.to_dtype(kind).category == 1)
    if array.dtype == object or (whole and array.dtype != numpy.int64):
        raise ValueError("Overflow when unpacking long long\nAn integer does not fit 64 bits.")
    if kind is not None:
        _check_fits(array, dtypes.to_dtype(kind).numpy)
        return array
    if not kinds:
        return array.astype(dtypes.default_dtype.numpy)
    return array.astype(functools.reduce(dtypes.promote_numpy, kinds), copy=False)


def _check_fits(array: numpy.ndarray, target: numpy.dtype) -> None:
    """Raise for Python integers that a narrow dtype cannot hold; negative ones wrap around in unsigned dtypes."""
    if array.dtype != numpy.int64 or target.kind not in "iu" or target == numpy.int64 or not array.size:
        return
    limits = numpy.iinfo(target)
    low = -limits.max if target.kind == "u" else limits.min
    if array.min() < low or array.max() > limits.max:
        raise RuntimeError(
            f"value cannot be converted to type {target.name} without overflow\nIt holds {low} to {limits.max}."
        )


def _kinds_in(data: Any) -> set[numpy.dtype]:
    """Return the dtypes of the numbers in nested sequences; raise where something is no number."""
    if isinstance(data, (list, tuple, range)):
        types = set(map(type, data))
        if types <= _NUMBERS.keys():
            return {_NUMBERS[kind]() for kind in types}
        if str in types:
            raise ValueError("too many dimensions 'str'\nTensors hold numbers only.")
        return set().union(*map(_kinds_in, data))
    if isinstance(data, (Tensor, numpy.generic)) or devices.is_array(data):
        return {data._dtype if isinstance(data, Tensor) else data.dtype}
    for kind, found in _NUMBERS.items():
        if isinstance(data, kind):
            return {found()}
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'\nTensors hold numbers only.")
    if hasattr(data, "__array__"):
        return {numpy.asarray(data).dtype}
    raise RuntimeError(f"Could not infer dtype of {data.__class__.__name__}\nTensors hold numbers only.")


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        if data._array.size != 1:
            raise ValueError(
                f"only one element tensors can be converted to Python scalars\n"
                f"One has shape {list(data.shape)}; use stack()."
            )
        return data.item()
    if isinstance(data, (list, tuple)) and not set(map(type, data)) <= _NUMBERS.keys():
        return [_without_tensors(item) for item in data]
    return data


def _ragged(data: Any, dim: int = 0) -> Exception:
    """Return PyTorch's complaint of nested sequences that do not have one shape."""
    if not hasattr(data[0], "__len__"):
        wrong = next(item for item in data if hasattr(item, "__len__"))
        return TypeError(
            f"'{wrong.__class__.__name__}' object cannot be interpreted as an integer\nA number is wanted."
        )
    if any(not hasattr(item, "__len__") for item in data):
        return TypeError(f"not a sequence\nAn item at dim {dim + 1} is a number, the first one is a sequence.")
    length = len(data[0])
    for item in data:
        if len(item) != length:
            return ValueError(f"expected sequence of length {length} at dim {dim + 1} (got {len(item)})")
    return _ragged([part for item in data for part in item], dim + 1)
