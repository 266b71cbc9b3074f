"""The channels of images where they are last in memory, as the columns of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from .. import threads
from ..row_buffers import buffer_for
from ..row_sums import sums
from .row_blocks import SUMMED, loops_for

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["Columns", "channels_last"]


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
        self.shape = channels_last(x).shape
        self._rows = max(1, (1 << 18) // self.x.shape[1])
        self._loops = loops_for(x)

    def normalized(self, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array, Array]:
        """Return the images, centred and divided by their deviation, scaled and shifted.

        Parameters
        ----------
        weight, bias : ndarray or None
            Of shape (C,).
        eps : float
            Added to the variance.

        Returns
        -------
        normalized : ndarray
            Of the shape of the images.
        mean, variance, rstd : ndarray
            Of shape (C,); the last is 1 / sqrt(variance + eps).
        """
        kind, count = self.x.dtype, len(self.x)
        mean = (self._totals().sum(0) / count).astype(kind)
        variance = (self._squares(mean).sum(0) / count).astype(kind)
        rstd = 1 / numpy.sqrt(variance + kind.type(eps))
        scale = rstd if weight is None else rstd * weight
        return self.scaled(mean, scale, kind.type(0) if bias is None else bias), mean, variance, rstd

    def normalized_backward(
        self, g: Array, weight: Array | None, mean: Array, rstd: Array
    ) -> tuple[Array, Array, Array]:
        """Return the gradients of the images, the weight and the bias of :meth:`normalized`.

        Parameters
        ----------
        g : ndarray
            The incoming gradient.
        mean, rstd : ndarray
            What :meth:`normalized` returned.
        """
        total, along = (part.sum(0).astype(self.x.dtype) for part in self.products(g, mean))
        scale, count = rstd if weight is None else rstd * weight, -len(self.x)
        of_x = self._gradients(g, mean, scale, scale * rstd**2 * along / count, scale * total / count)
        return of_x, along * rstd, total

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

    def _totals(self) -> Array:
        """Return the sums of columns."""
        return self._sums("column_sums", lambda x, to: numpy.add(to, sums(x, (0,), False), out=to), self.x)[0]

    def _squares(self, middle: Array) -> Array:
        """Return the sums of the squares of columns around their middles."""

        def formula(x: Array, by: Array, to: Array) -> None:
            centred = x - by
            centred *= centred
            to += sums(centred, (0,), False)

        return self._sums("column_squares", formula, self.x, of_columns=(middle,))[0]

    def _gradients(self, g: Array, middle: Array, of_g: Array, of_x: Array, constant: Array) -> Array:
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
        return numpy.ascontiguousarray(channels_last(x)).reshape(-1, x.shape[1])

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
            for some in threads.blocks(slice(0, len(matrices[0])), max(1, SUMMED // self.x.shape[1])):
                formula(*[m[some] for m in matrices], *numbers, *totals, *[r[some] for r in results])

    def _of_columns(self, value: Array) -> Array:
        return numpy.ascontiguousarray(numpy.broadcast_to(value, self.x.shape[1:]), self.x.dtype)


def channels_last(x: Array) -> Array:
    """Return images of shape (N, C, ...) as a view of shape (N, ..., C)."""
    return x.transpose(0, *range(2, x.ndim), 1)


def _channels_first(x: Array) -> Array:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))
