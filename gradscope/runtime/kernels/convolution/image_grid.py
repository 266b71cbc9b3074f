"""Images in a flat grid: row after row and image after image, with zeros between them.

There an element of a convolution's kernel, a *tap*, meets every pixel at one distance, whatever the row: a convolution
is a sum of products with rows of memory that begin at that distance. Rows share their padding: the zeros after one are
those before the next. Where a convolution takes steps, each of its *phases*, the pixels that lie a multiple of the step
apart, has a grid of its own. Between rows a convolution computes pixels that nobody asked for, and nobody reads.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Grid", "Ints", "Piece", "Product", "input_products", "window_product"]

Ints = tuple[int, ...]


class Piece(NamedTuple):
    """Pixels that go into a grid."""

    phase: int
    grid: tuple[slice, ...]
    image: tuple[slice, ...]


class Grid(NamedTuple):
    """How an image lies among zeros."""

    sizes: Ints
    """Of an image with its zeros, in each dimension of space."""
    phases: int
    pieces: tuple[Piece, ...]

    @property
    def area(self) -> int:
        """How many elements a channel of an image has."""
        return math.prod(self.sizes)

    @property
    def pixels(self) -> int:
        """How many pixels of an image lie in it: some meet no tap."""
        return sum(math.prod(part.stop - part.start for part in piece.grid) for piece in self.pieces)


class Product(NamedTuple):
    """Pixels of a result, and the taps of the kernel of which they are sums."""

    taps: tuple[int, ...]
    """Their places in the flat kernel."""
    sources: tuple[tuple[int, int], ...]
    """Of each tap the phase, and the distance in it, of the pixel that belongs to the first one of the result."""
    counts: Ints
    image: tuple[slice, ...]
    """Where in the result these pixels are."""

    @property
    def reach(self) -> int:
        """The largest distance."""
        return max(distance for _, distance in self.sources)


@lru_cache(maxsize=512)
def window_product(
    spatial: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[Grid, Product]:
    """Return the grid of an input whose windows are multiplied with a kernel, and that product.

    Parameters
    ----------
    spatial, out : tuple of int
        Sizes of the images, and of the result.
    """
    axes = [_windows_along(*a) for a in zip(spatial, kernel, out, stride, padding, dilation, strict=True)]
    sizes = tuple(size for size, _, _ in axes)
    pieces = tuple(
        Piece(phase, *zip(*slices, strict=True))
        for phase, slices in enumerate(itertools.product(*(parts for _, parts, _ in axes)))
    )
    phase_steps, steps = _steps(tuple(len(parts) for _, parts, _ in axes)), _steps(sizes)
    sources = tuple(
        (
            sum(phase * step for (phase, _), step in zip(tap, phase_steps, strict=True)),
            sum(shift * step for (_, shift), step in zip(tap, steps, strict=True)),
        )
        for tap in itertools.product(*(taps for _, _, taps in axes))
    )
    product = Product(tuple(range(len(sources))), sources, out, (slice(None),) * len(out))
    return Grid(sizes, len(pieces), pieces), product


def _windows_along(
    n: int, k: int, o: int, s: int, p: int, d: int
) -> tuple[int, list[tuple[slice, slice]], list[tuple[int, int]]]:
    """Return the size of a grid along one dimension, what goes into each phase, and each tap's phase and distance."""
    last = (k - 1) * d
    # Of two paddings of p zeros between rows one is left out; between phases of a step there may be none.
    size = max(n + 2 * p, o + last) - min(p, last) if s == 1 else o + last // s
    phases = sorted({t * d % s for t in range(k)})
    parts = []
    for phase in phases:
        begin = max(-((phase - p) // s), 0)
        end = max(min(size, -((phase - p - n) // s)), begin)
        first = phase + s * begin - p
        parts.append((slice(begin, end), slice(first, first + s * (end - begin), s)))
    return size, parts, [(phases.index(t * d % s), t * d // s) for t in range(k)]


@lru_cache(maxsize=512)
def input_products(
    spatial: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[Grid, tuple[Product, ...]]:
    """Return the grid of a convolution's gradient, and the products that give the gradient of its input.

    There is one for each phase of the input: with a step of 2 every second pixel of it meets the same taps.
    """
    axes = [_inputs_along(*a) for a in zip(spatial, kernel, out, stride, padding, dilation, strict=True)]
    sizes = tuple(size for size, _, _ in axes)
    steps, kernel_steps = _steps(sizes), _steps(kernel)
    products = []
    for phases in itertools.product(*(found for _, _, found in axes)):
        taps = tuple(itertools.product(*(taps for taps, _, _ in phases)))
        products.append(
            Product(
                tuple(sum(t * step for (t, _), step in zip(tap, kernel_steps, strict=True)) for tap in taps),
                tuple((0, sum(at * step for (_, at), step in zip(tap, steps, strict=True))) for tap in taps),
                tuple(count for _, count, _ in phases),
                tuple(where for _, _, where in phases),
            )
        )
    piece = Piece(0, tuple(inside for _, inside, _ in axes), (slice(None),) * len(out))
    return Grid(sizes, 1, (piece,)), tuple(products)


_Phase = tuple[list[tuple[int, int]], int, slice]


def _inputs_along(n: int, k: int, o: int, s: int, p: int, d: int) -> tuple[int, slice, list[_Phase]]:
    """Return the size of a grid along one dimension, where the gradient lies in it, and the phases of the input.

    Of a phase these are its taps with their distances, how many pixels it has, and which.
    """
    phases = []
    for phase in range(s):
        begin, end = -((phase - p) // s), -((phase - p - n) // s)
        taps = [(t, begin - t * d // s) for t in range(k) if t * d % s == phase]
        if taps and end > begin:
            phases.append((taps, end - begin, slice(phase + s * begin - p, n, s)))
    distances = [at for taps, _, _ in phases for _, at in taps]
    before = max(0, -min(distances, default=0))
    after = max((max(at for _, at in taps) + count - o for taps, count, _ in phases), default=0)
    size = before + o + max(after, 0) - min(before, max(after, 0))
    size = max(size, *(count for _, count, _ in phases), 1)
    found = [([(t, before + at) for t, at in taps], count, where) for taps, count, where in phases]
    return size, slice(before, before + o), found


def _steps(sizes: Ints) -> Ints:
    """Return how many elements lie between neighbours along each dimension, in row-major order."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
