"""Normalisation of large arrays, layer norm by rows, the others by channels.

Channels are planes, one for each example, or columns where they are last in memory. A part of the rows at a time goes
through all steps while it is in the processor's cache. Sums over rows are made of those of blocks of one size, whatever
the number of threads, so that they are the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from . import cuda_kernels, forms, loading, threads
from .row_buffers import LARGE, WIDE, buffer_for
from .row_sums import sums

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["Columns", "Planes", "channels", "is_worth_it", "rows", "rows_backward"]

_BLOCK = 1 << 18  # elements
_SUMMED = 1 << 16  # elements of which one product adds the rows: fewer are more exact
_KEPT = 1 << 12  # columns of the rows of one number that are kept
_SHORT = 16  # elements of a plane below which passes over all of them are quicker


def is_worth_it(*arrays: Array | None) -> bool:
    """Whether the kernels of rows are for the arrays: in row-major order, of single or double precision; None is.

    NumPy's forms are for large arrays, the compiled ones and those on a GPU, which are single calls, for all but empty
    ones.
    """
    first = arrays[0]
    if type(first) is not numpy.ndarray:
        return cuda_kernels.take(arrays)
    kind, size = first.dtype, first.size
    if not size or kind.char not in "fd" or not first.flags.c_contiguous:
        return False
    if size < forms.LEAST and (kind.char != "f" or loading.compiled("normalization_loops") is None):
        return False
    for array in arrays:  # all() of a generator takes twice as long
        if array is None or array is first:
            continue
        if type(array) is not numpy.ndarray or array.dtype != kind:
            return False
    return True


def _loops(array: Array) -> Any:
    return loading.compiled("normalization_loops") if array.dtype.char == "f" else None


def _vector(value: Array | None, size: int, char: str, otherwise: float) -> Array:
    """Return a parameter of each column, or what stands for the one that is not there."""
    if value is None:
        return _row_of(otherwise, size, char) if size <= _KEPT else numpy.full(size, otherwise, char)
    flat = value if value.ndim == 1 else value.reshape(-1)
    return flat if flat.flags.c_contiguous else numpy.ascontiguousarray(flat)


@lru_cache(maxsize=32)
def _row_of(number: float, size: int, char: str) -> Array:
    """Return a row of one number, which nobody writes; to make it anew takes a quarter of a small layer norm's time."""
    return numpy.full(size, number, char)  # were it read-only, Numba would take longer to tell its type


def _matrix(array: Array, size: int) -> Array:
    """Return an array in row-major order as rows of `size` elements."""
    return array if array.ndim == 2 and array.shape[1] == size else array.reshape(-1, size)


def _row_sums(x: Array) -> Array:
    """Return the sums along rows, of one column: a product with ones takes half the time of a sum."""
    return x.dot(numpy.ones(x.shape[1], x.dtype))[:, None]


def _repeated(vector: Array, rows: int) -> Array:
    """Return a row as often, one after the other, as makes it a long one, where it is beside many."""
    size = len(vector)
    if rows * size < LARGE or 2 * size > WIDE:
        return vector
    return vector[None].repeat(WIDE // size, 0).reshape(-1)


def _beside(ufunc: numpy.ufunc, x: Array, row: Array, out: Array) -> None:
    """Write a ufunc of each row and of one row, which is given :func:`_repeated`: several are computed as one."""
    size = row.size
    if size != x.shape[1]:
        if x.size % size:
            row = row[: x.shape[1]]
        else:
            x, out = x.reshape(-1, size), out.reshape(-1, size)
    ufunc(x, row, out=out)


def _step(each: int) -> int:
    """Return how many rows of `each` elements are a block: of short ones as many as :func:`_beside` takes together."""
    together = max(1, WIDE // max(each, 1))
    return max(1, _BLOCK // max(each, 1) // together) * together


# --- rows ------------------------------------------------------------------------------------------------------------


def rows(x: Array, weight: Array | None, bias: Array | None, size: int, eps: float) -> tuple[Array, Array, Array]:
    """Return rows of `size` elements, each centred and divided by its deviation, scaled and shifted.

    Parameters
    ----------
    x : ndarray
        In row-major order.
    weight, bias : ndarray or None
        Of `size` elements.
    eps : float
        Added to the variance.

    Returns
    -------
    normalized, mean, rstd : ndarray
        Of the shape of `x`; columns of one element a row, the mean and 1 / sqrt(variance + eps).

    Examples
    --------
    >>> normalized, mean, rstd = rows(numpy.array([[1.0, 3.0]]), None, None, 2, 0.0)
    >>> normalized.tolist(), mean.tolist(), rstd.tolist()
    ([[-1.0, 1.0]], [[2.0]], [[1.0]])
    """
    if type(x) is not numpy.ndarray:
        return cuda_kernels.rows(x, weight, bias, size, eps)
    kind = x.dtype
    result = numpy.empty(x.shape, kind)
    matrix = _matrix(x, size)
    count = len(matrix)
    mean, rstd = numpy.empty((count, 1), kind), numpy.empty((count, 1), kind)
    char = kind.char
    w, b, out = _vector(weight, size, char, 1.0), _vector(bias, size, char, 0.0), _matrix(result, size)
    loops = loading.compiled("normalization_loops") if char == "f" else None
    if loops is not None and x.size < 2 * threads.WORTH:
        loops.rows(matrix, w, b, eps, out, mean, rstd)
    else:
        _share_rows(loops, matrix, w, b, eps, out, mean, rstd)
    return result, mean, rstd


def _share_rows(
    loops: Any, x: Array, weight: Array, bias: Array, eps: float, result: Array, mean: Array, rstd: Array
) -> None:
    """Write the same of many rows, which threads share: by compiled loops, where there are any."""
    count, size = x.shape

    def normalize(part: slice) -> None:
        if loops is not None:
            loops.rows(x[part], weight, bias, eps, result[part], mean[part], rstd[part])
            return
        with buffer_for(count, size):
            weights, biases = _repeated(weight, count), _repeated(bias, count)
            for some in threads.blocks(part, _step(size)):
                mean[some], rstd[some] = _normalize(x[some], weights, biases, eps, result[some])

    threads.over(count, normalize, size, _step(size) if loops is None else 1)


def _normalize(x: Array, weight: Array, bias: Array, eps: float, result: Array) -> tuple[Array, Array]:
    size = x.dtype.type(x.shape[1])
    mean = _row_sums(x) / size
    numpy.subtract(x, mean, out=result)
    rstd = 1 / numpy.sqrt(numpy.vecdot(result, result)[:, None] / size + x.dtype.type(eps))
    result *= rstd
    _beside(numpy.multiply, result, weight, result)
    _beside(numpy.add, result, bias, result)
    return mean, rstd


def rows_backward(
    g: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, size: int
) -> tuple[Array, Array, Array]:
    """Return the gradients of the input, the weight and the bias of :func:`rows`.

    Parameters
    ----------
    g, x : ndarray
        The incoming gradient and the input.
    mean, rstd : ndarray
        What :func:`rows` returned.
    """
    if type(x) is not numpy.ndarray:
        return cuda_kernels.rows_backward(g, x, weight, mean, rstd, size)
    result = numpy.empty(x.shape, x.dtype)
    matrix, incoming, out = _matrix(x, size), _matrix(numpy.ascontiguousarray(g), size), _matrix(result, size)
    w = _vector(weight, size, x.dtype.char, 1.0)
    means, scales = mean.reshape(-1), rstd.reshape(-1)
    loops = _loops(x)
    step = _step(size)
    of_weight, of_bias = numpy.zeros((2, -(-len(matrix) // step), size), x.dtype)

    def differentiate(part: slice) -> None:
        for block in range(part.start, part.stop):
            some = slice(block * step, (block + 1) * step)
            given = incoming[some], matrix[some], w, means[some], scales[some]
            if loops is not None:
                loops.rows_backward(*given, out[some], of_weight[block], of_bias[block])
            else:
                with buffer_for(len(matrix), size):
                    _differentiate(*given, out[some], of_weight[block], of_bias[block])

    threads.over(len(of_weight), differentiate, step * size)
    return result, of_weight.sum(0), of_bias.sum(0)


def _differentiate(
    g: Array, x: Array, weight: Array, mean: Array, rstd: Array, result: Array, of_weight: Array, of_bias: Array
) -> None:
    size, weights = x.dtype.type(x.shape[1]), _repeated(weight, len(x))
    centred = x - mean[:, None]
    # Sums along rows and down columns are products with the weight and the scales, and need no pass of their own.
    numpy.multiply(g, centred, out=result)
    for some in threads.blocks(slice(0, len(x)), max(1, _SUMMED // len(weight))):
        of_weight += rstd[some].dot(result[some])
        of_bias += sums(g[some], (0,), keepdims=False)
    along = result.dot(weight) * rstd / size * rstd
    total = g.dot(weight) / size
    centred *= along[:, None]
    centred += total[:, None]
    _beside(numpy.multiply, g, weights, result)
    result -= centred
    result *= rstd[:, None]


# --- planes ----------------------------------------------------------------------------------------------------------


class Planes:
    """The channels of examples, each a row of numbers that are scaled and shifted alike.

    Parameters
    ----------
    x : ndarray
        Of shape (N, C, ...), in row-major order.
    """

    def __init__(self, x: Array) -> None:
        self.shape = x.shape
        self.count = x.shape[0] * x.shape[1]
        self.size = x.size // self.count
        self.x = x.reshape(self.count, self.size)
        self._loops = _loops(x)

    @staticmethod
    def are_worth_it(*arrays: Array | None) -> bool:
        """Whether arrays, of which the first one is images, are large, and their planes too."""
        first = arrays[0]
        return is_worth_it(*arrays) and first is not None and math.prod(first.shape[2:]) >= _SHORT

    def sums(self) -> Array:
        """Return the sum of each plane, in double precision, of shape (N, C)."""
        total = numpy.empty(self.count)
        self._each("plane_sums", lambda x, to: to.__setitem__(..., _row_sums(x)[:, 0]), self.x, total)
        return total.reshape(self.shape[:2])

    def squares(self, middle: Array) -> Array:
        """Return the sum of the squares of each plane around its middle, of shape (N, C)."""

        def formula(x: Array, by: Array, to: Array) -> None:
            centred = x - by[:, None]
            to[...] = numpy.vecdot(centred, centred)

        total = numpy.empty(self.count)
        self._each("plane_squares", formula, self.x, self._of_planes(middle), total)
        return total.reshape(self.shape[:2])

    def scaled(self, middle: Array, scale: Array, shift: Array) -> Array:
        """Return each plane, less its middle, times a scale, plus a shift."""

        def formula(x: Array, by: Array, times: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by[:, None], out=to)
            to *= times[:, None]
            to += plus[:, None]

        result = numpy.empty_like(self.x)
        self._each("plane_scaled", formula, self.x, *map(self._of_planes, (middle, scale, shift)), result)
        return result.reshape(self.shape)

    def products(self, g: Array, middle: Array) -> tuple[Array, Array]:
        """Return the sums of a gradient's planes, and of their products with the centred planes, of shape (N, C)."""

        def formula(g: Array, x: Array, by: Array, total: Array, along: Array) -> None:
            total[...] = _row_sums(g)[:, 0]
            along[...] = numpy.vecdot(g, x - by[:, None])

        total, along = numpy.empty((2, self.count))
        self._each("plane_products", formula, self._matrix(g), self.x, self._of_planes(middle), total, along)
        return total.reshape(self.shape[:2]), along.reshape(self.shape[:2])

    def gradients(self, g: Array, middle: Array, of_g: Array, of_x: Array, constant: Array) -> Array:
        """Return a sum of the gradient's planes, of the centred planes, and of a constant, each times a number."""

        def formula(g: Array, x: Array, by: Array, times: Array, along: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by[:, None], out=to)
            to *= along[:, None]
            to += g * times[:, None]
            to += plus[:, None]

        result = numpy.empty_like(self.x)
        numbers = map(self._of_planes, (middle, of_g, of_x, constant))
        self._each("plane_gradients", formula, self._matrix(g), self.x, *numbers, result)
        return result.reshape(self.shape)

    def _matrix(self, g: Array) -> Array:
        return numpy.ascontiguousarray(g).reshape(self.x.shape)

    def _of_planes(self, value: Array) -> Array:
        """Return a number for each plane, of what broadcasts to (N, C)."""
        return numpy.ascontiguousarray(numpy.broadcast_to(value, self.shape[:2]), self.x.dtype).reshape(-1)

    def _each(self, name: str, formula: Callable[..., None], *arrays: Array) -> None:
        """Call a compiled loop with some planes at a time, or the formula with as many as stay in the cache."""
        loop = None if self._loops is None else getattr(self._loops, name)

        def work(part: slice) -> None:
            if loop is not None:
                loop(*[a[part] for a in arrays])
                return
            with buffer_for(self.count, self.size):
                for some in threads.blocks(part, _step(self.size)):
                    formula(*[a[some] for a in arrays])

        threads.over(self.count, work, self.size, _step(self.size) if loop is None else 1, quick=loop is not None)


# --- columns ---------------------------------------------------------------------------------------------------------


class Columns:
    """The channels of examples where they are the last in memory, each a column of a matrix.

    Sums are those of blocks of rows, of shape (blocks, C).

    Parameters
    ----------
    x : ndarray
        Of shape (N, C) in row-major order, or (N, C, ...) in that of channels last.
    """

    def __init__(self, x: Array) -> None:
        self.x = self._matrix(x)
        self.shape = _channels_last(x).shape
        self._rows = max(1, (1 << 18) // self.x.shape[1])
        self._loops = _loops(x)

    def sums(self) -> Array:
        """Return the sums of columns."""
        return self._sums("column_sums", lambda x, to: numpy.add(to, sums(x, (0,), False), out=to), self.x)[0]

    def squares(self, middle: Array) -> Array:
        """Return the sums of the squares of columns around their middles."""

        def formula(x: Array, by: Array, to: Array) -> None:
            centred = x - by
            centred *= centred
            to += sums(centred, (0,), False)

        return self._sums("column_squares", formula, self.x, of_columns=(middle,))[0]

    def scaled(self, middle: Array, scale: Array, shift: Array) -> Array:
        """Return each column, less its middle, times a scale, plus a shift."""

        def formula(x: Array, by: Array, times: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by, out=to)
            to *= times
            to += plus

        return self._images("column_scaled", formula, self.x, of_columns=(middle, scale, shift))

    def products(self, g: Array, middle: Array) -> tuple[Array, Array]:
        """Return the sums of a gradient's columns, and of their products with the centred columns."""

        def formula(g: Array, x: Array, by: Array, total: Array, along: Array) -> None:
            total += sums(g, (0,), False)
            centred = x - by
            centred *= g
            along += sums(centred, (0,), False)

        total, along = self._sums("column_products", formula, self._matrix(g), self.x, of_columns=(middle,), count=2)
        return total, along

    def gradients(self, g: Array, middle: Array, of_g: Array, of_x: Array, constant: Array) -> Array:
        """Return a sum of the gradient's columns, of the centred columns, and of a constant, each times a number."""

        def formula(g: Array, x: Array, by: Array, times: Array, along: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by, out=to)
            to *= along
            to += g * times
            to += plus

        numbers = middle, of_g, of_x, constant
        return self._images("column_gradients", formula, self._matrix(g), self.x, of_columns=numbers)

    @staticmethod
    def _matrix(x: Array) -> Array:
        return numpy.ascontiguousarray(_channels_last(x)).reshape(-1, x.shape[1])

    def _sums(
        self,
        name: str,
        formula: Callable[..., None],
        *matrices: Array,
        of_columns: tuple[Array, ...] = (),
        count: int = 1,
    ) -> Array:
        """Return `count` arrays of sums, in double precision, of what a block of rows adds to its totals."""
        blocks = -(-len(self.x) // self._rows)
        totals = numpy.zeros((count, blocks, self.x.shape[1]), self.x.dtype)

        def work(part: slice) -> None:
            for block in range(part.start, part.stop):
                some = slice(block * self._rows, (block + 1) * self._rows)
                self._run(name, formula, [m[some] for m in matrices], of_columns, totals[:, block])

        threads.over(blocks, work, self._rows * self.x.shape[1], quick=self._loops is not None)
        return totals.astype(float)

    def _images(
        self, name: str, formula: Callable[..., None], *matrices: Array, of_columns: tuple[Array, ...]
    ) -> Array:
        """Return images of what is computed of each row."""
        result = numpy.empty_like(self.x)

        def work(part: slice) -> None:
            self._run(name, formula, [m[part] for m in matrices], of_columns, [], [result[part]])

        threads.over(len(self.x), work, self.x.shape[1], quick=self._loops is not None)
        return _channels_first(result.reshape(self.shape))

    def _run(
        self,
        name: str,
        formula: Callable[..., None],
        matrices: list[Array],
        of_columns: tuple[Array, ...],
        totals: Any,
        results: Any = (),
    ) -> None:
        """Call a compiled loop with rows, or the formula with as many at a time as stay in the cache."""
        numbers = [self._of_columns(value) for value in of_columns]
        if self._loops is not None:
            getattr(self._loops, name)(*matrices, *numbers, *totals, *results)
            return
        with buffer_for(*self.x.shape):
            for some in threads.blocks(slice(0, len(matrices[0])), max(1, _SUMMED // self.x.shape[1])):
                formula(*[m[some] for m in matrices], *numbers, *totals, *[r[some] for r in results])

    def _of_columns(self, value: Array) -> Array:
        return numpy.ascontiguousarray(numpy.broadcast_to(value, self.x.shape[1:]), self.x.dtype)


def _channels_last(x: Array) -> Array:
    return x.transpose(0, *range(2, x.ndim), 1)


def _channels_first(x: Array) -> Array:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def channels(*arrays: Array | None) -> Planes | Columns | None:
    """Return the channels of the first of the arrays, where it is large and they lie together; otherwise None.

    Examples
    --------
    >>> type(channels(numpy.ones((512, 64)))).__name__, channels(numpy.ones((2, 64)))
    ('Columns', None)
    """
    first, *others = arrays
    if type(first) is not numpy.ndarray or first.size < forms.LEAST:
        return None
    if Planes.are_worth_it(first, *others):
        return Planes(first)
    return Columns(first) if is_worth_it(_channels_last(first), *others) else None
