"""Decides which form of a kernel runs: Numba's, where it is installed and arrays are large, NumPy's, or CUDA's.

The choice depends on the arrays and the installation alone, never on what ran before: the same program computes the
same numbers each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

from . import cuda_kernels, loading, threads
from .copies import row_major_copy
from .row_buffers import buffer_for

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["FEW", "LEAST", "is_worth_a_pass", "pointwise", "rowwise"]

LEAST = 1 << 14
"""How many elements an array has for which another form than the plain formula is worth the call."""

FEW = 1 << 10
"""How many elements an array has for which a compiled form is: it needs one call, and makes no temporaries."""

_SINGLE = numpy.dtype(numpy.float32)
_BLOCK = 1 << 16  # elements for which all temporaries of a formula stay in the processor's cache
_ROWS = 1 << 18  # of rows, of which they make few, and where threads hand the interpreter's lock to each other
_GRAIN = 1 << 14  # compiled kernels compute each element, or row, alone; parts begin at multiples of so many elements


def pointwise(
    name: str, formula: Callable[..., Array], *arrays: Array, settings: tuple[float, ...] = (), writes: bool = False
) -> Array:
    """Return an elementwise formula of arrays of one shape: of large ones in one pass over memory.

    Parameters
    ----------
    name : str
        The kernel that is compiled of the formula: its module in `compiled`, and its function.
    formula : callable
        What it computes, of arrays.
    *arrays : ndarray
        What it is given; tensors too, under ``create_graph``, of which the formula is recorded. The last one says the
        layout: if it is not in row-major order, the formula is called. Those on a GPU have :mod:`.cuda_kernels`.
    settings : tuple of float
        Numbers in the formula, which the compiled kernel is given after the arrays.
    writes : bool
        Whether the formula takes an array to write into, ``out``.

    Examples
    --------
    >>> x = numpy.linspace(-1, 1, 3, dtype="f")
    >>> pointwise("activation_loops.silu", lambda x: x / (1 + numpy.exp(-x)), x).round(2).tolist()
    [-0.27000001072883606, 0.0, 0.7300000190734863]
    """
    like = arrays[-1]
    if type(like) is not numpy.ndarray:
        if cuda_kernels.take_alike(arrays):
            return cuda_kernels.pointwise(_function(name), arrays, settings)
        return formula(*arrays)
    if like.size < FEW:
        return formula(*arrays)
    if not like.flags.c_contiguous and like.dtype is _SINGLE and _is_part(like) and _loop(name) is not None:
        arrays = tuple(row_major_copy(a) if type(a) is numpy.ndarray and a.shape == like.shape else a for a in arrays)
        like = arrays[-1]
    if not _alike(arrays, like):
        return formula(*arrays)
    return _shared(name, formula, arrays, (-1,), settings, writes)


def rowwise(name: str, formula: Callable[..., Array], *arrays: Array) -> Array:
    """Return a formula of arrays of one shape that treats each row along the last axis alone; see :func:`pointwise`.

    The formula takes an array to write into, ``out``. The compiled form is for small arrays too: the formula makes
    several passes.

    Examples
    --------
    >>> x = numpy.log(numpy.array([[1, 3], [3, 5]], "f"))
    >>> def softmax(rows, out=None):
    ...     exponents = numpy.exp(rows)
    ...     return numpy.divide(exponents, exponents.sum(-1, keepdims=True), out=out)
    >>> rowwise("softmax_loops.softmax", softmax, x).round(3).tolist()
    [[0.25, 0.75], [0.375, 0.625]]
    """
    like = arrays[-1]
    if type(like) is not numpy.ndarray:
        if cuda_kernels.take_alike(arrays):
            return cuda_kernels.rowwise(_function(name), arrays)
        return formula(*arrays)
    size = like.size
    if not size or not _alike(arrays, like):
        return formula(*arrays)
    if size < LEAST and like.ndim == 2 and like.dtype is _SINGLE:
        # What _shared() would come to for the small matrices of which there are most, in half of its time.
        loop = _loop(name)
        if loop is None:
            return formula(*arrays)
        result = numpy.empty(like.shape, _SINGLE)
        if len(arrays) == 1:
            loop(like, result)
        else:
            loop(*[_in_order(a, like.shape) for a in arrays], result)
        return result
    return _shared(name, formula, arrays, (-1, like.shape[-1]), writes=True)


def _is_part(array: Array) -> bool:
    """Whether an array is a part of a larger one in row-major order, as the gates of a recurrent cell are."""
    strides = array.strides
    return strides[-1] == array.itemsize and all(outer > inner for outer, inner in pairwise(strides))


def is_worth_a_pass(array: Any) -> bool:
    """Whether a kernel takes the place of a formula of few operators: of large arrays, and of those on a GPU.

    Examples
    --------
    >>> is_worth_a_pass(numpy.zeros(8)), is_worth_a_pass(numpy.zeros(LEAST))
    (False, True)
    """
    return array.size >= LEAST if type(array) is numpy.ndarray else cuda_kernels.take((array,))


def _function(name: str) -> str:
    """Return the function in the name of a kernel."""
    return name.partition(".")[2]


@cache
def _loop(name: str) -> Callable[..., None] | None:
    """Return the compiled kernel of a name, or None."""
    return getattr(loading.compiled(name.partition(".")[0]), _function(name), None)


def _shared(
    name: str,
    formula: Callable[..., Array],
    arrays: tuple[Array, ...],
    shape: tuple[int, ...],
    settings: tuple[float, ...] = (),
    writes: bool = False,
) -> Array:
    """Return the formula of arrays, computed on some items of the first axis of `shape` at a time."""
    like = arrays[-1]
    loop = _loop(name) if like.dtype.char == "f" else None
    if loop is None and like.size < LEAST:
        return formula(*arrays)
    result = numpy.empty(like.shape, like.dtype)
    parts = [_in_order(a, shape) for a in arrays]
    parts.append(_in_order(result, shape))
    if loop is not None and like.size < 2 * threads.WORTH:
        loop(*parts, *map(like.dtype.type, settings))
        return result
    size = len(parts[0])
    each = like.size // size
    if loop is None:
        step = max(1, (_BLOCK if len(shape) == 1 and not threads.sharing else _ROWS) // each)
        write = formula if writes else _copying(formula)
        threads.over(size, lambda part: _in_blocks(write, parts, threads.blocks(part, step)), each, step)
        return result
    numbers = [like.dtype.type(setting) for setting in settings]
    threads.over(size, lambda part: loop(*[a[part] for a in parts], *numbers), each, max(1, _GRAIN // each))
    return result


def _in_order(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in row-major order as a vector or as rows; what is one already stays as it is, which is quick."""
    if not array.flags.c_contiguous:
        array = row_major_copy(array)
    return array if array.ndim == len(shape) else array.reshape(shape)


def _alike(arrays: tuple[Array, ...], like: Array) -> bool:
    kind = like.dtype
    if kind.char not in "fd" or not like.flags.c_contiguous:
        return False
    for array in arrays:  # all() of a generator takes twice as long
        if array is like:
            continue
        if type(array) is not numpy.ndarray or array.dtype != kind or array.shape != like.shape:
            return False
    return True


def _copying(formula: Callable[..., Array]) -> Callable[..., object]:
    """Return what writes the result of a formula that makes an array of its own."""
    return lambda *given, out: numpy.copyto(out, formula(*given))


def _in_blocks(write: Callable[..., object], arrays: list[Array], blocks: Iterable[slice]) -> None:
    """Write a formula of all arrays but the last one to it, a block at a time."""
    *given, result = arrays
    rows, size = result.shape if result.ndim > 1 else (0, 0)  # beside vectors nothing is broadcast
    with buffer_for(rows, size):
        for part in blocks:
            write(*[a[part] for a in given], out=result[part])
