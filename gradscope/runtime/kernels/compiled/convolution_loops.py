"""Products of weights with rows of images where they lie; `kernels.convolution` gathers them."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .jit import IN1, OUT2, f4, i8, kernel, types
from .jit.tiles import LANES, product_tile, sums_tile

__all__ = ["Products", "WeightSums"]

# Rows of a tile and its vectors, or taps: their sums take three quarters of the registers.
_VECTORS = {6: 2, 4: 3, 2: 4, 1: 8}
_TAPS = {6: 4, 4: 6, 1: 9} if LANES == 16 else {6: 2, 4: 3, 1: 9}

_six, _four, _two, _one = (product_tile(rows, vectors) for rows, vectors in _VECTORS.items())
_six_sums, _four_sums, _one_sums = (sums_tile(rows, taps) for rows, taps in _TAPS.items())

_DISTANCES = types.Array(i8, 1, "C")
_WEIGHTS, _SUMS = types.Array(f4, 4, "C"), types.Array(f4, 5, "C")
_SIX, _FOUR, _TWO, _ONE = (vectors * LANES for vectors in _VECTORS.values())
_SIX_TAPS, _FOUR_TAPS, _ONE_TAPS = _TAPS.values()


@kernel(IN1, _DISTANCES, i8, _WEIGHTS, OUT2, i8, i8, i8)
def products(x, distances, group, weights, result, images, run, area):
    groups, tiles, depth, rows = weights.shape
    pitch = result.shape[1]
    step = _SIX if rows == 6 else _FOUR if rows == 4 else _TWO if rows == 2 else _ONE
    table = distances.ctypes.data
    each = -(-run // step)
    if each * step >= area:  # what is left out of an image is less than a tile: they are as one
        each = -(-((images - 1) * area + run) // step)
        images = 1
    for g in range(groups):
        for number in range(images * each):
            p = number // each * area + number % each * step
            source = x.ctypes.data + 4 * (g * group + p)
            for tile in range(tiles):
                row = g * tiles + tile
                factors = weights.ctypes.data + 4 * row * depth * rows
                target = result.ctypes.data + 4 * (row * rows * pitch + p)
                if rows == 6:
                    _six(source, table, depth, factors, target, pitch)
                elif rows == 4:
                    _four(source, table, depth, factors, target, pitch)
                elif rows == 2:
                    _two(source, table, depth, factors, target, pitch)
                else:
                    _one(source, table, depth, factors, target, pitch)


@kernel(IN1, _DISTANCES, i8, OUT2, _SUMS, i8)
def weight_sums(x, distances, group, gradient, result, pixels):
    groups, tiles, parts, rows, taps = result.shape
    pitch = gradient.shape[1]
    for g in range(groups):
        source = x.ctypes.data + 4 * g * group
        for tile in range(tiles):
            row = g * tiles + tile
            lines = gradient.ctypes.data + 4 * row * rows * pitch
            for part in range(parts):
                table = distances.ctypes.data + 8 * part * taps
                cells = result.ctypes.data + 4 * (row * parts + part) * rows * taps
                if rows == 6:
                    _six_sums(source, table, pixels, lines, cells, pitch)
                elif rows == 4:
                    _four_sums(source, table, pixels, lines, cells, pitch)
                else:
                    _one_sums(source, table, pixels, lines, cells, pitch)


def _rows_of(outputs: int, tiles: dict[int, int]) -> int:
    """Return how many rows a tile has: so that few are left over, and many where as few are."""
    cost = {1: 2.2, 2: 1.25, 4: 1.0, 6: 1.0}  # of a row: a tile of one waits for loads
    return min(tiles, key=lambda rows: -(-outputs // rows) * rows * cost[rows])


class Products:
    """Products of a matrix (groups, outputs, inputs * taps) with rows of a block of images."""

    def __init__(self, matrix: numpy.ndarray, block: Any, product: Any) -> None:
        starts = block.starts(product)
        groups, outputs, depth = matrix.shape
        rows = _rows_of(outputs, _VECTORS)
        tiles = -(-outputs // rows)
        padded = numpy.zeros((groups, tiles * rows, depth), "f")
        padded[:, :outputs] = matrix
        self.weights = numpy.ascontiguousarray(padded.reshape(groups, tiles, rows, depth).swapaxes(2, 3))
        self.block, self.outputs, self.run = block, outputs, block.run(product)
        self.group = depth // len(starts) * block.row
        self.distances = _distances(block, starts, depth // len(starts))
        pitch = block.phase + _VECTORS[rows] * LANES
        self.result = numpy.empty((groups * tiles * rows, pitch), "f")

    def __call__(self, images: int) -> numpy.ndarray:
        """Return the product of some images, of shape (groups, outputs, their pixels or more)."""
        area = self.block.grid.area
        products(self.block.flat, self.distances, self.group, self.weights, self.result, images, self.run, area)
        return self.result.reshape(len(self.weights), -1, self.result.shape[1])[:, : self.outputs]


class WeightSums:
    """Sums of products of a gradient's rows with rows of a block of images."""

    def __init__(self, result: numpy.ndarray, block: Any, product: Any) -> None:
        starts = block.starts(product)
        groups, outputs, depth = result.shape
        rows = _rows_of(outputs, _TAPS)
        tiles, taps = -(-outputs // rows), _TAPS[rows]
        parts = -(-depth // taps)
        self.result, self.block, self.run = result, block, block.run(product)
        self.group = depth // len(starts) * block.row
        distances = _distances(block, starts, depth // len(starts))
        self.distances = numpy.concatenate((distances, numpy.zeros(parts * taps - depth, distances.dtype)))
        self.sums = numpy.zeros((groups, tiles, parts, rows, taps), "f")
        self.rows = numpy.zeros((groups * tiles * rows, block.phase + LANES), "f")
        self.gradient = self.rows.reshape(groups, tiles * rows, -1)[:, :outputs]

    def add(self, images: int) -> None:
        """Add those of some images."""
        pixels = (images - 1) * self.block.grid.area + self.run
        weight_sums(self.block.flat, self.distances, self.group, self.rows, self.sums, pixels)

    def finish(self) -> None:
        """Leave the sums in the result."""
        groups, outputs, depth = self.result.shape
        flat = self.sums.transpose(0, 1, 3, 2, 4).reshape(groups, -1, math.prod(self.sums.shape[2::2]))
        self.result += flat[:, :outputs, :depth]


def _distances(block: Any, starts: list[int], inputs: int) -> numpy.ndarray:
    """Return where the rows of a group's inputs and taps begin."""
    channels = numpy.arange(inputs, dtype=numpy.int64)[:, None] * block.row
    return (channels + numpy.array(starts, numpy.int64)).reshape(-1)
