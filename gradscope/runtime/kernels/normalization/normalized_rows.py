"""Layer norm of large arrays, by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from .. import cuda_kernels, loading, threads
from ..row_buffers import LARGE, WIDE, buffer_for
from ..row_sums import sums
from .row_blocks import SUMMED, loops_for, row_totals, step, vector

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["rows", "rows_backward"]


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
    w, b, out = vector(weight, size, char, 1.0), vector(bias, size, char, 0.0), _matrix(result, size)
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
            for some in threads.blocks(part, step(size)):
                mean[some], rstd[some] = _normalize(x[some], weights, biases, eps, result[some])

    threads.over(count, normalize, size, step(size) if loops is None else 1)


def _normalize(x: Array, weight: Array, bias: Array, eps: float, result: Array) -> tuple[Array, Array]:
    size = x.dtype.type(x.shape[1])
    mean = row_totals(x) / size
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
    w = vector(weight, size, x.dtype.char, 1.0)
    means, scales = mean.reshape(-1), rstd.reshape(-1)
    loops = loops_for(x)
    together = step(size)
    of_weight, of_bias = numpy.zeros((2, -(-len(matrix) // together), size), x.dtype)

    def differentiate(part: slice) -> None:
        for block in range(part.start, part.stop):
            some = slice(block * together, (block + 1) * together)
            given = incoming[some], matrix[some], w, means[some], scales[some]
            if loops is not None:
                loops.rows_backward(*given, out[some], of_weight[block], of_bias[block])
            else:
                with buffer_for(len(matrix), size):
                    _differentiate(*given, out[some], of_weight[block], of_bias[block])

    threads.over(len(of_weight), differentiate, together * size)
    return result, of_weight.sum(0), of_bias.sum(0)


def _differentiate(
    g: Array, x: Array, weight: Array, mean: Array, rstd: Array, result: Array, of_weight: Array, of_bias: Array
) -> None:
    size, weights = x.dtype.type(x.shape[1]), _repeated(weight, len(x))
    centred = x - mean[:, None]
    # Sums along rows and down columns are products with the weight and the scales, and need no pass of their own.
    numpy.multiply(g, centred, out=result)
    for some in threads.blocks(slice(0, len(x)), max(1, SUMMED // len(weight))):
        of_weight += rstd[some].dot(result[some])
        of_bias += sums(g[some], (0,), keepdims=False)
    along = result.dot(weight) * rstd / size * rstd
    total = g.dot(weight) / size
    centred *= along[:, None]
    centred += total[:, None]
    _beside(numpy.multiply, g, weights, result)
    result -= centred
    result *= rstd[:, None]


def _matrix(array: Array, size: int) -> Array:
    """Return an array in row-major order as rows of `size` elements."""
    return array if array.ndim == 2 and array.shape[1] == size else array.reshape(-1, size)


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
