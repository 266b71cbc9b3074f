"""Ufuncs of large arrays of half precision: NumPy converts one number after the other, these a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy

from .. import loading, threads
from ..elementwise import kind_of_ufunc, simplified
from . import write_half, write_single

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["MANY", "in_single"]

MANY = 1 << 12
"""How many elements arrays have for which the calls are worth it."""

_HALF, _SINGLE = numpy.dtype(numpy.float16), numpy.dtype(numpy.float32)
_BLOCK = 1 << 15
_LOOPS: dict[Any, str] = {
    numpy.add: "add", numpy.subtract: "subtract", numpy.multiply: "multiply", numpy.true_divide: "divide",
}  # fmt: skip


def in_single(function: Callable[..., Array], *arguments: Any) -> Array:
    """Return what a function makes of arrays of half precision, to the bit: it is computed in single and rounded once.

    Parameters
    ----------
    function : callable
        A ufunc, or a formula. One that is no product or quotient of two of its arguments is called as it is.
    *arguments : ndarray or object
        Arrays of one shape in row-major order, and numbers. Of others the function is called as it is.

    Examples
    --------
    >>> in_single(numpy.multiply, numpy.array([1.5, 2.0], "e"), numpy.array([3.0, 3.0], "e"))
    array([4.5, 6. ], dtype=float16)
    """
    if max(a.size if type(a) is numpy.ndarray else 1 for a in arguments) < MANY:
        return function(*arguments)
    ufunc: Any
    ufunc, operands = simplified(function, arguments)
    if type(ufunc) is FunctionType:
        return function(*arguments)
    operands = tuple(map(_as_number, operands))
    shapes = {a.shape for a in operands if type(a) is numpy.ndarray and a.ndim}
    if len(shapes) != 1 or not all(map(_is_taken, operands)) or kind_of_ufunc(ufunc, operands) is not _HALF:
        return function(*arguments)
    result = numpy.empty(shapes.pop(), _HALF)
    to = result.reshape(-1)
    with numpy.errstate(over="ignore"):  # beside half precision NumPy rounds a number to it
        vectors: list[Any] = [a.reshape(-1) if getattr(a, "ndim", 0) else _SINGLE.type(_HALF.type(a)) for a in operands]
    write = _loop(ufunc, vectors) or _in_blocks(ufunc)
    threads.over(result.size, lambda part: write(*[a[part] if a.ndim else a for a in (*vectors, to)]), step=_BLOCK)
    return result


def _as_number(operand: Any) -> Any:
    """Return an expanded number, as the gradient of a sum is, without its dimensions."""
    expanded = type(operand) is numpy.ndarray and operand.ndim and operand.size and not any(operand.strides)
    return operand[(0,) * operand.ndim + (...,)] if expanded else operand


def _is_taken(operand: Any) -> bool:
    if type(operand) is numpy.ndarray:
        return operand.dtype is _HALF and operand.flags.c_contiguous
    return type(operand) is float or type(operand) is int


def _loop(ufunc: Any, operands: list[Any]) -> Callable[..., None] | None:
    """Return a compiled loop, where there is one for the ufunc and both operands are arrays."""
    loop: Callable[..., None] | None = getattr(loading.compiled("half_precision_loops"), _LOOPS.get(ufunc, ""), None)
    if loop is None or not all(a.ndim for a in operands):
        return None
    return lambda *arrays: loop(*[a.view(numpy.uint16) for a in arrays])


def _in_blocks(ufunc: Any) -> Callable[..., None]:
    def write(*arrays: Array) -> None:
        *operands, result = arrays
        singles = [numpy.empty(_BLOCK, _SINGLE) if a.ndim else a for a in operands]
        found = numpy.empty(_BLOCK, _SINGLE)
        for some in threads.blocks(slice(0, result.size), _BLOCK):
            size, given = some.stop - some.start, []
            for operand, single in zip(operands, singles, strict=True):
                if operand.ndim:
                    write_single(operand[some], single[:size])
                given.append(single[:size] if operand.ndim else single)
            with numpy.errstate(all="ignore"):
                ufunc(*given, out=found[:size])
            write_half(found[:size], result[some])

    return write
