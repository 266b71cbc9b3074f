"""The largest number of each window of images, and where it is; the NumPy form is in `ops.nn.adaptive_pooling`."""

from __future__ import annotations

from numba import types

from .jit import f4, i8, kernel

_BOUNDS = types.Array(i8, 1, "C", readonly=True)


@kernel(types.Array(f4, 3, "C", readonly=True), _BOUNDS, _BOUNDS, _BOUNDS, _BOUNDS,
        types.Array(f4, 3, "C"), types.Array(i8, 3, "C"))  # fmt: skip
def largest_in_windows(images, tops, bottoms, lefts, rights, values, places):
    """Find the first of equals, and the last NaN, in reading order."""
    count, rows, columns = values.shape
    width = images.shape[2]
    for number in range(count):
        for i in range(rows):
            for j in range(columns):
                best, place = images[number, tops[i], lefts[j]], tops[i] * width + lefts[j]
                for y in range(tops[i], bottoms[i]):
                    for x in range(lefts[j], rights[j]):
                        value = images[number, y, x]
                        if (value > best) | (value != value):
                            best, place = value, y * width + x
                values[number, i, j], places[number, i, j] = best, place
