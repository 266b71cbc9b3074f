"""``F`` on bare arrays: every operator's forward, with the array module already chosen.

A derivative written with ``F.exp(x)`` runs here when nobody needs a graph; under ``create_graph`` the same name is the
recorded operator (:data:`~gradscope.runtime.dispatch.TENSOR_OPERATORS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy

from ...dispatch import OPERATORS
from ...kernels import threads
from ...kernels.casts import cast
from ...kernels.copies import row_major_copy
from ..declaration.annotations import Array, Formula, Namespace, Number

__all__ = ["ArrayOperators", "array_operators", "conj", "constant", "one_minus"]

HALF, SINGLE = numpy.dtype(numpy.float16), numpy.dtype(numpy.float32)
HALVES = "eE"  # the dtypes of two bytes, float16 and bfloat16, by NumPy's letters

# Array forms of functions that are public composites, not operators; filled by ``registry.public``.
ARRAY_FORMS: dict[str, Formula | str] = {"true_divide": "true_divide"}

# Factories that have one form for arrays and tensors.
CREATION = ("zeros_like", "ones_like")


class ArrayOperators:
    """The operators of one array module; functions are looked up once and kept."""

    def __init__(self, xp: Namespace) -> None:
        self.xp = xp

    def __getattr__(self, name: str) -> Formula:
        forward = ARRAY_FORMS.get(name)
        if forward is None:
            op = OPERATORS.get(name)
            if op is None and name not in CREATION:
                raise AttributeError(f"there is no operator {name!r} for a derivative to use")
            forward = name if op is None else op.forward
        function = getattr(self.xp, forward) if isinstance(forward, str) else partial(forward, self.xp)
        setattr(self, name, function)
        return function


_by_module: dict[int, ArrayOperators] = {}


def array_operators(xp: Namespace) -> ArrayOperators:
    """Return the operators on arrays of the module `xp`."""
    found = _by_module.get(id(xp))
    if found is None:
        found = _by_module[id(xp)] = ArrayOperators(xp)
    return found


# 0-d arrays of the numbers that a program computes with: NumPy takes twice as long over a Python number as over one.
# By the dtype's character, for a dtype's own hash takes as long as a product.
CONSTANTS: dict[str, dict[float, Array]] = {char: {} for char in "fdbBhilq"}
_KEPT_CONSTANTS = 256


def constant(value: float, kind: numpy.dtype) -> Array:
    """Return the 0-d array of a number beside an array of dtype `kind`: NumPy computes faster with it."""
    known = CONSTANTS.get(kind.char)
    if known is None or (kind.kind != "f" and type(value) is not int):
        return value
    array = known.get(value)
    if array is None:
        array = numpy.array(value, kind)
        # A dictionary does not tell 0.0 from -0.0, and does not find a NaN again.
        distinct = kind.kind != "f" or (value != 0 and value == value)
        if distinct and len(known) < _KEPT_CONSTANTS:
            array.flags.writeable = False
            known[value] = array
    return array


def one_minus(x: Array) -> Array:
    """Return ``1 - x`` of an array or a tensor."""
    return numpy.subtract(constant(1.0, x.dtype), x) if type(x) is numpy.ndarray else 1 - x


def conj(x: Array) -> Array:
    """Return the complex conjugate of an array, tensor or number; real ones are returned as they are."""
    try:
        return x.conj() if x.dtype.kind == "c" else x
    except AttributeError:
        return x.conjugate() if isinstance(x, complex) else x


def in_dtype_of(x: Array, like: Array) -> Array:
    """Return an array or tensor in the dtype of `like`; a number as it is.

    A derivative is given the operands that a mixed call was given: a square of theirs may overflow in int8, and their
    logarithm be a float16.
    """
    kind = like.dtype
    if getattr(x, "dtype", kind) == kind:
        return x
    return x.to(kind) if hasattr(x, "_array") else x.astype(kind)


def matrix_product(xp: Namespace, a: Array, b: Array) -> Array:
    """Return ``a @ b``. Of float16, for which there is no BLAS, NumPy's goes through float32 and is rounded once."""
    if a.dtype is HALF and xp is numpy:
        return cast(numpy.matmul(cast(a, SINGLE), cast(b, SINGLE)), HALF)
    if a.ndim == 2 and 0 < b.ndim < 3 and type(a) is numpy.ndarray and a.dtype.char in "fdFD":
        return a.dot(b)  # the same product of BLAS, with a third of the overhead, of an expanded vector too
    if b.ndim == 2 and b.shape[0] == 1:
        return xp.dot(a, b)  # matmul would leave BLAS, and take 8 times as long
    if a.ndim > 2 and b.ndim == 2 and a.size:  # matmul would make a product for each matrix of `a`
        return xp.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    if threads.sharing and _are_small(a, b):
        result = numpy.empty((len(a), a.shape[1], b.shape[2]), a.dtype)
        each = result[:1].size * a.shape[2] // _AS_LONG
        threads.over(len(a), lambda some: numpy.matmul(a[some], b[some], out=result[some]), each)
        return result
    return xp.matmul(a, b)


_AS_LONG = 16
"""How many multiplications of a product take as long as an element of other functions that threads share."""

_LEFT_TO_BLAS = 1 << 18
"""Up to how many multiplications OpenBLAS takes one thread for a product: its threads share a larger one.

References
----------
``SMP_THRESHOLD_MIN`` and ``GEMM_MULTITHREAD_THRESHOLD`` in OpenBLAS's ``interface/gemm.c``.
"""


def _are_small(a: Array, b: Array) -> bool:
    """Whether two arrays are batches of matrices so small that BLAS shares none of their products."""
    kinds = type(a) is type(b) is numpy.ndarray and a.dtype.char == b.dtype.char and a.dtype.char in "fdFD"
    return kinds and a.ndim == b.ndim == 3 and a.shape[1] * a.shape[2] * b.shape[2] <= _LEFT_TO_BLAS


_LONG = 1 << 10  # elements for which clip() is worth its longer call


def clipped(xp: Namespace, x: Array, low: Number, high: Number) -> Array:
    """Return `x` limited to a range of two numbers; None is no limit. NaN stays, and where they cross `high` wins.

    Beside one number NumPy's maximum takes three times as long as clip, which clips one of half precision slowly.
    """
    if type(x) is numpy.ndarray and x.size >= _LONG and x.dtype.char in "fd":
        limits = -numpy.inf if low is None else low, numpy.inf if high is None else high
        return _clip_by_threads(x, limits) if threads.sharing and x.flags.c_contiguous else x.clip(*limits)
    result = x if low is None else xp.maximum(x, low)
    return result if high is None else xp.minimum(result, high)


def _clip_by_threads(x: Array, limits: tuple[Number, Number]) -> Array:
    result = numpy.empty_like(x)
    given, taken = x.reshape(-1), result.reshape(-1)
    threads.over(x.size, lambda part: given[part].clip(*limits, out=taken[part]), quick=True)
    return result


def in_rows(xp: Namespace, array: Array) -> Array:
    """Return `array` in row-major order, which PyTorch gives many results: a user may view() them."""
    if array.flags.c_contiguous:
        return array
    return row_major_copy(array) if type(array) is numpy.ndarray else xp.ascontiguousarray(array)


def writable_copy(xp: Namespace, array: Array) -> Array:
    """Return a copy that can be written: of what NumPy has reduced to a scalar, which cannot, an array too."""
    return xp.array(array, order="C")


def has_channels_last(array: Array) -> bool:
    """Whether images lie in memory with their channels last, as PyTorch decides it by the strides.

    Where sizes of 1 leave it open they do not.

    References
    ----------
    ``is_channels_last_strides_2d_s4`` in PyTorch's ``c10/core/MemoryFormat.h``.
    """
    if array is None or array.ndim != 4 or array.flags.c_contiguous or not array.size:
        return False
    strides, least = array.strides, 0
    for axis in (1, 3, 2, 0):
        if strides[axis] < least or (axis == 0 and least == strides[1]) or not strides[1]:
            return False
        least = strides[axis] * array.shape[axis]
    return True


def in_layout_of(xp: Namespace, results: Array, images: Sequence[Array]) -> Array:
    """Return results whose images have their channels last where one of the `images` has them so; of a list all."""
    if not any(map(_asks_for_channels_last, images)):
        return results
    if type(results) is tuple:
        return tuple(_with_channels_last(xp, result) for result in results)
    return _with_channels_last(xp, results)


def _asks_for_channels_last(argument: Array) -> bool:
    if type(argument) is list:
        return bool(argument) and all(map(has_channels_last, argument))
    return has_channels_last(argument)


def _with_channels_last(xp: Namespace, array: Array) -> Array:
    if getattr(array, "ndim", 0) != 4 or has_channels_last(array):
        return array
    return xp.ascontiguousarray(array.transpose((0, 2, 3, 1))).transpose((0, 3, 1, 2))


def keeping_channels_last(forward: Formula, count: int) -> Formula:
    """Return a forward whose images have their channels last where one of the first `count` arguments has them so.

    What generated code calls instead is in its ``__wrapped__``: it looks at the layout of images alone.
    """

    def keeping(xp: Namespace, *arguments: Any, **options: Any) -> Array:
        results = forward(xp, *arguments, **options)
        return results if getattr(results, "ndim", 4) != 4 else in_layout_of(xp, results, arguments[:count])

    keeping.__wrapped__ = forward  # type: ignore[attr-defined]
    return keeping


def is_half(array: Array) -> bool:
    """Whether an array is of half precision: sums of it are made in single and rounded once."""
    return bool(array.dtype.char == "e")


def single(array: Array) -> Array:
    """Return an array in single precision; None for None."""
    return None if array is None else cast(array, SINGLE)


def over(array: Array, count: Number) -> Array:
    """Return an array or a tensor divided by a count, which may be more than half precision holds (65504)."""
    return cast(cast(array, SINGLE) / count, HALF) if array.dtype is HALF else array / count
