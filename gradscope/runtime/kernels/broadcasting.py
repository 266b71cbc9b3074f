"""Tells which shapes broadcast to which; sums a gradient over the dimensions that were broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from ..memory.bfloat16 import BFloat16Array, rounded, widened
from .row_sums import sums

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["expandable", "sum_to"]


def sum_to(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum a bare array over the dimensions that broadcasting had added or widened."""
    if type(array) is BFloat16Array:
        return rounded(sum_to(widened(array), shape))
    if array.dtype.char == "e":  # half precision is computed in single precision and rounded once
        return sum_to(array.astype(numpy.float32), shape).astype(array.dtype)
    extra = array.ndim - len(shape)
    if extra:
        array = sums(array, tuple(range(extra)), keepdims=False)
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and array.shape[i] != 1)
    return sums(array, axes) if axes else array


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to the shape `to`."""
    if len(shape) > len(to):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
