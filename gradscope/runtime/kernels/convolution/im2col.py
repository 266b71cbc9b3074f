"""The windows of images as the columns of a matrix, and back to images the sums of what stands there."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["Windows"]

Ints = tuple[int, ...]


class Windows(NamedTuple):
    """Where windows lie, with one number for each dimension of space.

    Attributes
    ----------
    spatial, kernel, out : tuple of int
        Sizes: of an image, of a window, and how many windows there are.

    Examples
    --------
    >>> windows = Windows((3,), (2,), (2,), (1,), (0,), (1,))
    >>> columns = windows.im2col(numpy.array([[[1.0, 2.0, 3.0]]]))
    >>> columns
    array([[1., 2.],
           [2., 3.]])
    >>> windows.col2im(columns, 1)
    array([[[1., 4., 3.]]])
    """

    spatial: Ints
    kernel: Ints
    out: Ints
    stride: Ints
    padding: Ints
    dilation: Ints

    @property
    def padded(self) -> Ints:
        """The sizes of an image with its padding, or beyond, as far as windows reach."""
        reach = [
            (o - 1) * s + d * (k - 1) + 1
            for o, s, d, k in zip(self.out, self.stride, self.dilation, self.kernel, strict=True)
        ]
        return tuple(max(r, n + 2 * p) for r, n, p in zip(reach, self.spatial, self.padding, strict=True))

    @property
    def inside(self) -> tuple[slice, ...]:
        """Where the image itself lies in that."""
        return tuple(slice(p, p + n) for p, n in zip(self.padding, self.spatial, strict=True))

    def im2col(self, x: Array) -> Array:
        """Return the windows of images (N, C, *spatial) as a matrix of shape (C * taps, N * windows)."""
        images, channels = x.shape[:2]
        room: Any = numpy.zeros((channels, images, *self.padded), x.dtype)
        room[(..., *self.inside)] = x.swapaxes(0, 1)
        found = room.reshape(channels, -1).take(_places(self, images), axis=1)
        return found.reshape(channels * math.prod(self.kernel), -1)

    def col2im(self, columns: Array, images: int) -> Array:
        """Return images (N, C, *spatial), each pixel the sum over the windows that it lies in: the adjoint."""
        by_tap: Any = columns.reshape(-1, *self.kernel, images, *self.out)
        room: Any = numpy.zeros((len(by_tap), images, *self.padded), columns.dtype)
        for tap in itertools.product(*map(range, self.kernel)):
            room[(..., *self._met_by(tap))] += by_tap[(slice(None), *tap)]
        return numpy.ascontiguousarray(room[(..., *self.inside)].swapaxes(0, 1))

    def _met_by(self, tap: Ints) -> tuple[slice, ...]:
        """Return which pixels of a padded image a tap meets."""
        return tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, self.dilation, self.out, self.stride, strict=True)
        )


@lru_cache(maxsize=64)
def _places(windows: Windows, images: int) -> Array:
    """Return where in a channel of the padded images, taken as one row, the pixels are that taps meet, tap by tap."""
    pixels: Any = numpy.arange(images * math.prod(windows.padded)).reshape(images, *windows.padded)
    met = [pixels[(..., *windows._met_by(tap))].reshape(-1) for tap in itertools.product(*map(range, windows.kernel))]
    return numpy.concatenate(met)
