"""Numbers as elements of arrays: what a dtype can hold, and PyTorch's complaints of what it cannot."""

from __future__ import annotations

import math
from typing import Any

import numpy

from . import bfloat16
from .dtype import BY_NUMPY

__all__ = ["as_element", "is_number"]

_LARGEST = {char: float(numpy.finfo(char).max) for char in "efF"} | {bfloat16.CHAR: (2 - 2.0**-7) * 2.0**127}


def as_element(value: Any, target: Any, *, wide: bool = False) -> Any:
    """Return a number as an element of the array `target`: cut where that has integers; -1 is the largest unsigned one.

    In half precision a `wide` one may become infinite: one that PyTorch reads in single precision.

    Raises
    ------
    TypeError
        For what is no number.
    RuntimeError
        For a number that has no place in an array of that dtype.
    """
    if not is_number(value) and (not hasattr(value, "dtype") or hasattr(value, "_array")):
        raise TypeError(f"argument 'value' must be Number, not {value.__class__.__name__}\nGive a number or a tensor.")
    kind, char = target.dtype.kind, target.dtype.char
    if not isinstance(value, (int, float, complex)):
        return value if kind == "c" or value.dtype.kind != "c" else _real_part(value, target)
    if kind == "b":
        return numpy.bool_(value)
    if isinstance(value, complex) and kind != "c":
        if value.imag:
            raise _overflow(target, "It is complex; give a real number.")
        value = value.real
    if kind in "iu":
        return _as_integer(value, target)
    if char in _LARGEST and not (wide and char == "e"):
        largest = _LARGEST[char]
        if any(abs(part) > largest and not math.isinf(part) for part in (value.real, value.imag)):
            raise _overflow(target, f"It is {value}; give one up to {largest}, an infinity, or convert the tensor.")
    return value


def _as_integer(value: float, target: Any) -> Any:
    limit = numpy.iinfo(target.dtype).max
    least = -limit - 1 if target.dtype.kind == "i" else -limit if isinstance(value, int) else 0
    if not least <= value <= limit:  # NaN is in no range
        raise _overflow(target, f"It is {value}; give a number up to {limit}, or convert the tensor.")
    return numpy.array(int(value)).astype(target.dtype)[()]


def _real_part(value: Any, target: Any) -> Any:
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.imag.any():
        raise _overflow(target, "It is complex; give a real number.")
    return value.real


def _overflow(target: Any, way_out: str) -> RuntimeError:
    name = BY_NUMPY[target.dtype].name
    return RuntimeError(f"value cannot be converted to type {name} without overflow\n{way_out}")


def is_number(value: Any) -> bool:
    """Return whether `value` is one number: Python's, NumPy's, or a tensor or array without dimensions."""
    if getattr(value, "ndim", 0):
        return False
    return hasattr(value, "__complex__") or isinstance(value, (int, float, complex))
