"""The dtype that a binary operator computes in, where its operands differ: looked up once for each pair of dtypes.

Generated functions ask here before they leave their common path. What has rules of its own (half precision that is
scaled, bfloat16, bools that are subtracted) stays with :func:`~.general.promote`, which a None says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy

from ...memory.bfloat16 import KIND
from ...memory.dtype import INEXACT, default_dtype, int64, outranked, promote_numpy
from ..declaration.annotations import DType, Shape
from .bare_functions import HALVES

if TYPE_CHECKING:
    from ..declaration.registry import Operator

__all__ = ["SCALES", "common_dtype", "number_dtype"]

SCALES = frozenset({"mul", "div.true"})
"""Operators that take a number beside half precision as it is, and round once, as PyTorch's kernels do."""

_ABSENT: DType = object()
_DEFAULT: DType = object()  # stands for the default dtype, which may change
_RANGES = {char: numpy.iinfo(char) for char in "bBhilq"}


def common_dtype(op: Operator) -> Callable[[numpy.dtype, Shape, numpy.dtype, Shape], DType]:
    """Return what tells the dtype of `op` on arrays of two dtypes and shapes, or None where it is to be asked of it."""
    return _common_dtype(*_traits(op))


def number_dtype(op: Operator) -> Callable[[numpy.dtype, float], DType]:
    """Return what tells the dtype of `op` on an array of integers or bools and a Python number; None as above."""
    return _number_dtype(*_traits(op))


def _traits(op: Operator) -> tuple[bool, bool, bool]:
    return op.promote == "float", op.name in SCALES, op.name.startswith(("sub", "rsub."))


@cache
def _common_dtype(
    floats: bool, scales: bool, subtracts: bool
) -> Callable[[numpy.dtype, Shape, numpy.dtype, Shape], DType]:
    alike: dict[str, DType] = {}
    first_outranks: dict[str, DType] = {}
    second_outranks: dict[str, DType] = {}

    def decide(a: numpy.dtype, a_shape: Shape, b: numpy.dtype, b_shape: Shape) -> DType:
        if KIND in (a.kind, b.kind) or (subtracts and "b" in (a.kind, b.kind)):
            return None
        if bool(a_shape) == bool(b_shape):
            kind = promote_numpy(a, b)
        else:
            kind = outranked(a, b) if a_shape else outranked(b, a)
        if floats and kind.kind not in INEXACT:
            return _DEFAULT
        return None if scales and kind.char in HALVES else kind

    def common(a: numpy.dtype, a_shape: Shape, b: numpy.dtype, b_shape: Shape) -> DType:
        table = (alike if b_shape else first_outranks) if a_shape else (second_outranks if b_shape else alike)
        pair = a.char + b.char
        found = table.get(pair, _ABSENT)
        if found is _ABSENT:
            found = table[pair] = decide(a, a_shape, b, b_shape)
        return _default() if found is _DEFAULT else found

    return common


@cache
def _number_dtype(floats: bool, scales: bool, subtracts: bool) -> Callable[[numpy.dtype, float], DType]:
    def beside(kind: numpy.dtype, number: float) -> DType:
        if type(number) is float and kind.kind == "i":
            return _default()
        if subtracts and kind.kind == "b":
            return None
        if floats or type(number) is float:
            return _default() if kind.kind in "iub" else None
        if kind.kind == "b":
            kind = int64.numpy
        span = _RANGES.get(kind.char)
        return kind if span is not None and span.min <= number <= span.max else None

    return beside


def _default() -> numpy.dtype | None:
    kind = default_dtype.numpy
    return kind if kind.char in "fd" else None
