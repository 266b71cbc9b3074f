"""Elementwise functions of large arrays, a part of the arrays at a time on as many threads as there are.

Each element is computed as in a single call: a part begins at a multiple of what processors take at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from . import threads
from .arithmetic.broadcast_arithmetic import OPERATIONS, arithmetic
from .threads.spin_waits import waits_awake

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, DType, Formula

__all__ = [
    "LARGE", "add_to", "in_blocks", "in_parts", "is_shared", "kind_of_ufunc", "of_two", "shared", "simplified", "whole",
    "with_checks",
]  # fmt: skip

LARGE = 1 << 20
"""How many elements an array has for which several threads are worth it, where there are any."""

_WRITES: dict[Any, int] = {
    **dict.fromkeys(
        (numpy.equal, numpy.not_equal, numpy.less, numpy.less_equal, numpy.greater, numpy.greater_equal), 0
    ),
    **dict.fromkeys((numpy.logical_and, numpy.logical_or, numpy.logical_xor, numpy.logical_not), 0),
    **dict.fromkeys((numpy.isnan, numpy.isinf, numpy.isfinite, numpy.signbit), 0),
    **dict.fromkeys((numpy.abs, numpy.negative, numpy.positive, numpy.square, numpy.invert), 1),
    **dict.fromkeys(
        (numpy.add, numpy.subtract, numpy.multiply, numpy.maximum, numpy.minimum, numpy.fmax, numpy.fmin), 1
    ),
    **dict.fromkeys((numpy.bitwise_and, numpy.bitwise_or, numpy.bitwise_xor), 1),
}
"""Ufuncs that take little longer than to read and to write, with how much they write for an element that they read:
a truth value is small."""

_WORTH_MOVING = 3 << 20
"""How many elements these must read and write, for several threads to be worth it."""

_BLOCK = 1 << 18  # elements of a formula's arrays that are computed at once; fewer take longer to begin than they save
_GRAIN = 1 << 14  # parts begin at multiples of so many elements

_whole: set[Any] = set()


def whole(formula: Formula) -> Formula:
    """Have :func:`in_parts` call a formula with whole arrays: one that is shared by threads in another way."""
    _whole.add(formula)
    return formula


_ufunc_of: dict[Any, numpy.ufunc] = {}


def with_checks(formula: Formula, ufunc: numpy.ufunc) -> Formula:
    """Have :func:`in_parts` take a formula of an array module and operands for a ufunc that refuses some dtypes."""
    _ufunc_of[formula] = ufunc
    return formula


class _Unknown:
    """Stands for an array while a formula is asked what it is."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("the formula depends on a value")

    __bool__ = __hash__ = None  # type: ignore[assignment]


class _Pair(_Unknown):
    """A ufunc, and the places of its two arguments."""

    def __init__(self, ufunc: numpy.ufunc, first: int, second: int) -> None:
        self.ufunc, self.first, self.second = ufunc, first, second


class _Operand(_Unknown):
    """A floating-point argument, of which products and quotients are known."""

    dtype = numpy.dtype(float)

    def __init__(self, place: int) -> None:
        self.place = place

    def __mul__(self, other: _Operand) -> _Pair:
        return _Pair(numpy.multiply, self.place, other.place)

    def __truediv__(self, other: _Operand) -> _Pair:
        return _Pair(numpy.true_divide, self.place, other.place)


@cache
def _as_pair(formula: FunctionType, count: int) -> _Pair | None:
    """Return the product or quotient of two of so many arguments that a formula is; None where it is no such."""
    try:
        found = formula(*map(_Operand, range(count)))
    except Exception:  # it does something else, or goes on with the pair
        return None
    return found if type(found) is _Pair else None


def _is_floating(argument: Any) -> bool:
    """Whether an argument is a number, or an array of floating-point ones."""
    kind = type(argument)
    return kind is float or kind is int or (kind is numpy.ndarray and argument.dtype.kind == "f")


def simplified(
    function: Callable[..., Array], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Array], tuple[Any, ...]]:
    """Return a formula that is a product or quotient as the ufunc, which writes its result where it belongs."""
    if type(function) is not FunctionType or function in _whole or not all(map(_is_floating, arguments)):
        return function, arguments
    pair = _as_pair(function, len(arguments))
    return (function, arguments) if pair is None else (pair.ufunc, (arguments[pair.first], arguments[pair.second]))


class _Split(NamedTuple):
    """Arguments of which each index of the first dimension can be computed alone."""

    given: list[Any]  # the arguments, some arrays laid out anew
    sliced: list[bool]  # which of them have that dimension
    shape: tuple[int, ...]  # of the result, so laid out
    result_shape: tuple[int, ...]
    order: tuple[int, ...] | None = None  # the axes of the arrays, outermost in memory first; None in row-major order

    def part(self, some: slice) -> list[Any]:
        """Return the arguments of a part."""
        return [value[some] if cut else value for value, cut in zip(self.given, self.sliced, strict=True)]

    def laid(self, array: Array) -> Array:
        """Return an array of the result's shape, laid out for the parts: the memory is the same."""
        return (array if self.order is None else array.transpose(self.order)).reshape(self.shape)

    def new_result(self, kind: DType) -> Array:
        """Return an array for the result, which owns its memory."""
        if self.order is None:
            return numpy.empty(self.result_shape, kind)
        like = numpy.empty([self.result_shape[axis] for axis in self.order], "b").transpose(numpy.argsort(self.order))
        return numpy.empty_like(like, kind)


def in_parts(function: Callable[..., Array], *arguments: Any, out: Array | None = None) -> Array:
    """Return an elementwise function of arrays, computed by several threads where there are.

    Parameters
    ----------
    function : callable
        A ufunc, or a formula of several.
    *arguments : ndarray or object
        Arrays in row-major order that broadcast together, or of one shape in the same order; what is not an array is
        handed on. Of others the function is called as it is.
    out : ndarray
        Where a ufunc writes.

    Examples
    --------
    >>> x = numpy.arange(4.0)
    >>> in_parts(numpy.add, x, 1.0)
    array([1., 2., 3., 4.])
    """
    if function in _ufunc_of:
        xp, *operands = arguments
        function(xp, *[numpy.empty(0, a.dtype) if type(a) is numpy.ndarray and a.ndim else a for a in operands])
        function, arguments = _ufunc_of[function], tuple(operands)
    if function in _WRITES and not waits_awake() and _moved(function, arguments, out) < _WORTH_MOVING:
        return function(*arguments) if out is None else function(*arguments, out=out)
    function, arguments = simplified(function, arguments)
    if function in OPERATIONS and (found := arithmetic(function, arguments[0], arguments[1], out)) is not None:
        return found
    split = None if function in _whole else _split(arguments, out, permuted=isinstance(function, numpy.ufunc))
    if split is None:
        return function(*arguments) if out is None else function(*arguments, out=out)
    rows, each = split.shape[0], math.prod(split.shape[1:])
    grain, step = max(1, _GRAIN // each), max(1, _BLOCK // each)
    if out is not None:
        target = split.laid(out)
        threads.over(rows, lambda some: function(*split.part(some), out=target[some]), each, grain)
        return out
    kind = kind_of_ufunc(function, arguments) if isinstance(function, numpy.ufunc) else _kind_of(function, split)
    if kind is None:
        return function(*arguments)
    result = split.new_result(kind)
    target = split.laid(result)

    def call(part: slice) -> None:
        function(*split.part(part), out=target[part])

    def calculate(part: slice) -> None:
        for some in threads.blocks(part, step):
            target[some] = function(*split.part(some))

    threads.over(rows, call if isinstance(function, numpy.ufunc) else calculate, each, grain)
    return result


def of_two(function: Callable[..., Array], *arguments: Any) -> Array:
    """Return a function of two arrays, of which one may broadcast to the other, as :func:`in_parts` where that pays.

    Examples
    --------
    >>> of_two(numpy.add, numpy.array([[1.0], [2.0]]), numpy.array([1.0]))
    array([[2.],
           [3.]])
    """
    function, arguments = simplified(function, arguments)
    if function in OPERATIONS and (found := arithmetic(function, *arguments)) is not None:
        return found
    if threads.sharing and any(type(a) is numpy.ndarray and a.size >= LARGE for a in arguments):
        return in_parts(function, *arguments)
    return function(*arguments)


_kinds: dict[tuple[Any, ...], DType | None] = {}


def kind_of_ufunc(ufunc: numpy.ufunc, arguments: tuple[Any, ...]) -> DType | None:
    """Return the dtype of a ufunc's result; None where it has several."""
    key = (ufunc, *[getattr(argument, "dtype", None) or type(argument) for argument in arguments])
    if key not in _kinds:
        none = ufunc(*[numpy.empty(0, a.dtype) if getattr(a, "ndim", 0) else a for a in arguments])
        _kinds[key] = none.dtype if type(none) is numpy.ndarray else None
    return _kinds[key]


def _kind_of(formula: Callable[..., Array], split: _Split) -> DType | None:
    """Return the dtype of a formula's result; None where that is not an array of its own of the parts' shape."""
    none = formula(*split.part(slice(0, 0)))
    if type(none) is not numpy.ndarray or none.shape != (0, *split.shape[1:]) or none.base is not None:
        return None
    return none.dtype


def _moved(ufunc: Callable[..., Array], arguments: tuple[Any, ...], out: Array | None) -> int:
    """Return how many elements a ufunc reads and writes; one that it writes where it has read it counts once."""
    sizes = [argument.size for argument in arguments if getattr(argument, "ndim", 0)]
    return sum(sizes) + (_WRITES[ufunc] * max(sizes, default=1) if out is None else 0)


def in_blocks(write: Callable[..., object], *arguments: Any) -> Array:
    """Return what a formula of several passes writes, of large arrays a block at a time, on one thread too.

    Parameters
    ----------
    write : callable
        ``write(*arguments, result)``; it treats each element alone, and makes no arrays of its own.
    *arguments : ndarray or object
        Arrays of the result's shape and dtype, the first one at least; what is not an array is handed on.

    Examples
    --------
    >>> def write(x, factor, result):
    ...     numpy.multiply(x, factor, out=result)
    ...     result += 1
    >>> in_blocks(write, numpy.arange(3.0), 2.0)
    array([1., 3., 5.])
    """
    first = arguments[0]
    split = _split(arguments, None, permuted=True) if first.size >= LARGE else None
    if split is None:
        result = numpy.empty_like(first)
        write(*arguments, result)
        return result
    result = split.new_result(first.dtype)
    target = split.laid(result)

    def calculate(part: slice) -> None:
        for some in threads.blocks(part, _BLOCK):
            write(*split.part(some), target[some])

    threads.over(len(target), calculate, step=_GRAIN)
    return result


def is_shared(array: Any) -> bool:
    """Whether what is computed of an array is shared by threads: there are several, and it is large."""
    return bool(threads.sharing) and type(array) is numpy.ndarray and array.size >= LARGE


def shared(ufunc: numpy.ufunc, first: Array, *others: Array) -> Array:
    """Return a ufunc of arrays, the first of which has the result's shape, computed by several threads where there are.

    Examples
    --------
    >>> shared(numpy.square, numpy.array([1.0, 2.0]))
    array([1., 4.])
    """
    return in_parts(ufunc, first, *others) if is_shared(first) else ufunc(first, *others)


def add_to(total: Array, array: Array) -> None:
    """Add to an array in place.

    Examples
    --------
    >>> total = numpy.ones(2)
    >>> add_to(total, numpy.array([1.0, 2.0]))
    >>> total
    array([2., 3.])
    """
    if is_shared(total):
        in_parts(numpy.add, total, array, out=total)
    else:
        total += array


def _split(arguments: tuple[Any, ...], out: Array | None, *, permuted: bool) -> _Split | None:
    """Return the arguments as what can be computed in parts; None where they cannot.

    Parameters
    ----------
    permuted : bool
        Whether arrays of one shape may lie in another order than row-major.
    """
    sliced, shape, in_rows = [], None, True
    for argument in arguments:  # comprehensions for each of these would take three times as long
        cut = type(argument) is numpy.ndarray and argument.ndim > 0
        sliced.append(cut)
        if not cut:
            if getattr(argument, "strides", ()):  # an array of another module, or one of bfloat16, is for the function
                return None
        elif shape is None:
            shape, in_rows = argument.shape, argument.flags.c_contiguous
        elif argument.shape != shape or not argument.flags.c_contiguous:
            in_rows = False
    if shape is None:
        return None
    if out is not None:
        if not _may_write(out, [a for a, cut in zip(arguments, sliced, strict=True) if cut]):
            return None
        in_rows = in_rows and out.shape == shape and out.flags.c_contiguous
    return _flat(arguments, sliced, shape) if in_rows else _split_strided(arguments, out, permuted=permuted)


def _split_strided(arguments: tuple[Any, ...], out: Array | None, *, permuted: bool) -> _Split | None:
    """Do what :func:`_split` does with arrays that broadcast, or are not in row-major order."""
    given = _with_numbers(arguments)
    sliced = [type(a) is numpy.ndarray and a.ndim > 0 for a in given]
    laid = [a for a, cut in zip(given, sliced, strict=True) if cut] + ([] if out is None else [out])
    first = laid[0]
    in_rows = all(array.flags.c_contiguous for array in laid)
    if in_rows and all(array.shape == first.shape for array in laid):
        return _flat(given, sliced, first.shape)
    if any(array.shape != first.shape for array in laid):
        return _in_rows(given, laid, out) if in_rows or all(map(_is_row_by_row, laid)) else None
    order = tuple(sorted(range(first.ndim), key=lambda axis: -first.strides[axis]))
    if permuted and all(a.strides == first.strides for a in laid) and first.transpose(order).flags.c_contiguous:
        return _flat(given, sliced, first.shape, order)
    return None


def _is_row_by_row(array: Array) -> bool:
    """Whether NumPy computes an array's elements in row-major order, as those of a part of one that lies so."""
    steps = [stride for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]
    return all(outer >= inner > 0 for outer, inner in pairwise([*steps, 1]))


def _with_numbers(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments with an expanded number as an array of no dimension, where another one has its shape.

    So is the gradient of a sum, which mostly comes with what has been saved.
    """
    expanded = [type(a) is numpy.ndarray and a.ndim > 0 and not any(a.strides) for a in arguments]
    if not any(expanded):
        return list(arguments)
    shapes = {a.shape for a, e in zip(arguments, expanded, strict=True) if type(a) is numpy.ndarray and not e}
    return [
        a[(0,) * a.ndim + (...,)] if e and a.shape in shapes else a for a, e in zip(arguments, expanded, strict=True)
    ]


def _flat(
    given: Sequence[Any], sliced: list[bool], shape: tuple[int, ...], order: tuple[int, ...] | None = None
) -> _Split:
    """Return arrays of one shape as vectors of the same memory."""
    vectors = [
        (a if order is None else a.transpose(order)).reshape(-1) if cut else a
        for a, cut in zip(given, sliced, strict=True)
    ]
    return _Split(vectors, sliced, (math.prod(shape),), shape, order)


def _in_rows(given: list[Any], laid: list[Array], out: Array | None) -> _Split | None:
    """Return arrays that broadcast; None where they do not, are one row, or leave no element."""
    try:
        shape = numpy.broadcast_shapes(*[array.shape for array in laid])
    except ValueError:
        return None
    if shape[0] < 2 or 0 in shape or (out is not None and out.shape != shape):
        return None
    sliced = [type(a) is numpy.ndarray and a.ndim == len(shape) and a.shape[0] == shape[0] for a in given]
    return _Split(given, sliced, shape, shape)


def _may_write(out: Array, arrays: list[Array]) -> bool:
    """Whether no part of what is written is read for another part."""
    for array in arrays:
        if array is out:
            continue
        if not numpy.may_share_memory(array, out):
            continue
        if array.strides != out.strides or array.shape != out.shape or array.ctypes.data != out.ctypes.data:
            return False
    return True
