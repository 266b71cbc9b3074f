"""The channels of images, a plane of each for each example.

With the compiled kernels all planes that share their statistics go through all steps together, while they are in the
processor's cache; NumPy's form makes a pass over all planes for each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy

from .. import threads
from ..row_buffers import buffer_for
from .row_blocks import is_worth_it, loops_for, row_totals, step, vector

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["Planes"]

_SHORT = 16  # elements of a plane below which passes over all of them are quicker


class Planes:
    """The channels of examples, each a row of numbers that are scaled and shifted alike.

    Parameters
    ----------
    x : ndarray
        Of shape (N, C, ...), in row-major order.
    groups : int, optional
        How many groups of an example's channels have statistics of their own; without, each channel has some, which
        are those of all examples.
    """

    def __init__(self, x: Array, groups: int | None = None) -> None:
        self.shape = x.shape
        self.count = x.shape[0] * x.shape[1]
        self.size = x.size // self.count
        self.x = x.reshape(self.count, self.size)
        self._groups = groups
        # How many planes share their statistics, and how far each is from the next.
        self._number: int
        self._apart: int
        self._number, self._apart = (len(x), x.shape[1]) if groups is None else (x.shape[1] // groups, 1)
        self._loops = loops_for(x)

    @staticmethod
    def are_worth_it(*arrays: Array | None) -> bool:
        """Whether the kernels are for arrays of which the first one is images, whose planes are not short."""
        first = arrays[0]
        return is_worth_it(*arrays) and first is not None and math.prod(first.shape[2:]) >= _SHORT

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
            Of shape (C,), or (N, groups, 1); the last is 1 / sqrt(variance + eps).
        """
        if self._loops is not None:
            return self._normalized_at_once(weight, bias, eps)
        kind, count = self.x.dtype, self._number * self.size
        mean = (self._over_shared(self._sums()) / count).astype(kind)
        middle = self._for_planes(mean)
        variance = (self._over_shared(self._squares(middle)) / count).astype(kind)
        rstd = 1 / numpy.sqrt(variance + kind.type(eps))
        scale = self._for_planes(rstd) if weight is None else self._for_planes(rstd) * weight
        return self.scaled(middle, scale, kind.type(0) if bias is None else bias), mean, variance, rstd

    def _normalized_at_once(
        self, weight: Array | None, bias: Array | None, eps: float
    ) -> tuple[Array, Array, Array, Array]:
        result, shared = numpy.empty_like(self.x), self.count // self._number
        totals, numbers = numpy.empty(shared), numpy.empty((3, shared), self.x.dtype)
        given = self.x, self._vector(weight, 1.0), self._vector(bias, 0.0), eps, self._number, self._apart
        self._each_shared(
            lambda part: self._loops.planes_normalized(*given, part.start, part.stop, totals, result, *numbers)
        )
        mean, variance, rstd = numbers if self._groups is None else numbers.reshape(3, self.shape[0], self._groups, 1)
        return result.reshape(self.shape), mean, variance, rstd

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
        kind, middle, scale = self.x.dtype, self._for_planes(mean), self._for_planes(rstd)
        if self._loops is not None:
            of_x, total, along = self._differentiated_at_once(g, weight, mean, rstd)
        else:
            total, along = self.products(g, middle)
            by, count = kind.type(1) if weight is None else weight, -self._number * self.size
            along_all, total_all = (
                self._for_planes((self._over_shared(part * by) / count).astype(kind)) for part in (along, total)
            )
            of_x = self._gradients(g, middle, scale * by, scale**3 * along_all, scale * total_all)
        return of_x, (along * scale).sum(0).astype(kind), total.sum(0).astype(kind)

    def _differentiated_at_once(
        self, g: Array, weight: Array | None, mean: Array, rstd: Array
    ) -> tuple[Array, Array, Array]:
        """Return the gradient of the images, and what :meth:`products` returns."""
        result, (total, along) = numpy.empty_like(self.x), numpy.empty((2, self.count))
        numbers = self._vector(weight, 1.0), mean.reshape(-1), rstd.reshape(-1), self._number, self._apart
        given, written = (self._matrix(g), self.x, *numbers), (*numpy.empty((2, mean.size)), result, total, along)
        self._each_shared(lambda part: self._loops.planes_normalized_backward(*given, part.start, part.stop, *written))
        return result.reshape(self.shape), total.reshape(self.shape[:2]), along.reshape(self.shape[:2])

    def scaled(self, middle: Array, scale: Array, shift: Array) -> Array:
        """Return each plane, less its middle, times a scale, plus a shift; these broadcast to (N, C)."""

        def formula(x: Array, by: Array, times: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by[:, None], out=to)
            to *= times[:, None]
            to += plus[:, None]

        result = numpy.empty_like(self.x)
        loop = getattr(self._loops, "plane_scaled", None)
        self._each(formula, self.x, *map(self._of_planes, (middle, scale, shift)), result, loop=loop)
        return result.reshape(self.shape)

    def products(self, g: Array, middle: Array) -> tuple[Array, Array]:
        """Return the sums of a gradient's planes, and of their products with the centred planes, of shape (N, C)."""

        def formula(g: Array, x: Array, by: Array, total: Array, along: Array) -> None:
            total[...] = row_totals(g)[:, 0]
            along[...] = numpy.vecdot(g, x - by[:, None])

        total, along = numpy.empty((2, self.count))
        loop = getattr(self._loops, "plane_products", None)
        self._each(formula, self._matrix(g), self.x, self._of_planes(middle), total, along, loop=loop)
        return total.reshape(self.shape[:2]), along.reshape(self.shape[:2])

    def _sums(self) -> Array:
        """Return the sum of each plane, in double precision, of shape (N, C)."""
        total = numpy.empty(self.count)
        self._each(lambda x, to: to.__setitem__(..., row_totals(x)[:, 0]), self.x, total)
        return total.reshape(self.shape[:2])

    def _squares(self, middle: Array) -> Array:
        """Return the sum of the squares of each plane around its middle, of shape (N, C)."""

        def formula(x: Array, by: Array, to: Array) -> None:
            centred = x - by[:, None]
            to[...] = numpy.vecdot(centred, centred)

        total = numpy.empty(self.count)
        self._each(formula, self.x, self._of_planes(middle), total)
        return total.reshape(self.shape[:2])

    def _gradients(self, g: Array, middle: Array, of_g: Array, of_x: Array, constant: Array) -> Array:
        """Return a sum of the gradient's planes, of the centred planes, and of a constant, each times a number."""

        def formula(g: Array, x: Array, by: Array, times: Array, along: Array, plus: Array, to: Array) -> None:
            numpy.subtract(x, by[:, None], out=to)
            to *= along[:, None]
            to += g * times[:, None]
            to += plus[:, None]

        result = numpy.empty_like(self.x)
        numbers = map(self._of_planes, (middle, of_g, of_x, constant))
        self._each(formula, self._matrix(g), self.x, *numbers, result)
        return result.reshape(self.shape)

    def _over_shared(self, of_planes: Array) -> Array:
        """Return the sums of numbers of shape (N, C) over the planes that share their statistics."""
        if self._groups is None:
            return of_planes.sum(0)
        return of_planes.reshape(len(of_planes), self._groups, -1).sum(2, keepdims=True)

    def _for_planes(self, statistics: Array) -> Array:
        """Return what broadcasts to shape (N, C) of what there is of channels or groups."""
        if self._groups is None:
            return statistics
        return numpy.repeat(statistics.reshape(-1, self._groups), self._number, axis=1)

    def _matrix(self, g: Array) -> Array:
        return numpy.ascontiguousarray(g).reshape(self.x.shape)

    def _vector(self, value: Array | None, otherwise: float) -> Array:
        return vector(value, self.shape[1], self.x.dtype.char, otherwise)

    def _of_planes(self, value: Array) -> Array:
        """Return a number for each plane, of what broadcasts to (N, C)."""
        return numpy.ascontiguousarray(numpy.broadcast_to(value, self.shape[:2]), self.x.dtype).reshape(-1)

    def _each(self, formula: Callable[..., None], *arrays: Array, loop: Callable[..., None] | None = None) -> None:
        """Call a compiled loop with some planes at a time, or the formula with as many as stay in the cache."""

        def work(part: slice) -> None:
            if loop is not None:
                loop(*[a[part] for a in arrays])
                return
            with buffer_for(self.count, self.size):
                for some in threads.blocks(part, step(self.size)):
                    formula(*[a[some] for a in arrays])

        threads.over(self.count, work, self.size, step(self.size) if loop is None else 1, quick=loop is not None)

    def _each_shared(self, work: Callable[[slice], object]) -> None:
        """Call a function with some of the channels or groups at a time."""
        threads.over(self.count // self._number, work, self._number * self.size)
