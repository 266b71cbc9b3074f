"""Maximum pooling of images, row by row, and its gradient; the NumPy forms are in `ops.nn.pooling`."""

from __future__ import annotations

import numpy

from .jit import IN2, OUT2, f4, i8, kernel, scalar, types

__all__ = ["max_pool", "scatter"]

_IMAGES = types.Array(f4, 3, "C", readonly=True)
_RESULTS, _INDICES = types.Array(f4, 3, "C"), types.Array(i8, 3, "C")
_PLACES = types.Array(i8, 2, "C", readonly=True)
_i4, _u8, _ZERO, _LOWEST = numpy.int32, numpy.uint64, numpy.float32(0), numpy.float32(-numpy.inf)


@scalar
def _take(line, step, shift, begin, end, place, best, which):
    """Take every so many elements of a row where they are larger than what is there, or NaN."""
    for j in range(begin, end):
        # Unsigned indices do not count from the end.
        candidate, column = line[_u8(step * j + shift)], _u8(j)
        better = (candidate > best[column]) | (candidate != candidate)
        best[column] = candidate if better else best[column]
        which[column] = place + _i4(step) * _i4(j) if better else which[column]


@kernel(_IMAGES, *[i8] * 8, _RESULTS, _INDICES)
def max_pool(x, kernel_height, kernel_width, down, right, above, left, under, beside, result, indices):
    images, height, width = x.shape
    rows, columns = result.shape[1:]
    which = numpy.empty(columns, _i4)
    starts = numpy.empty(columns, _i4)  # the first column of each window that is inside
    for j in range(columns):
        start = j * right - left
        starts[j] = start if start >= 0 else start + (-start + beside - 1) // beside * beside
    for image in range(images):
        for i in range(rows):
            top = i * down - above
            first = 0 if top >= 0 else (-top + under - 1) // under
            best = result[image, i]
            corner = _i4((top + first * under) * width)
            for j in range(columns):
                best[j] = _LOWEST
                which[j] = corner + starts[j]
            for row in range(first, min(kernel_height, (height - 1 - top) // under + 1)):
                at = top + row * under
                for column in range(kernel_width):
                    shift = column * beside - left
                    begin = 0 if shift >= 0 else (-shift + right - 1) // right
                    end = min((width - 1 - shift) // right + 1, columns)
                    place = _i4(at * width + shift)
                    # The steps of most windows are numbers that the compiler knows.
                    if right == 2:
                        _take(x[image, at], 2, shift, begin, end, place, best, which)
                    elif right == 1:
                        _take(x[image, at], 1, shift, begin, end, place, best, which)
                    else:
                        _take(x[image, at], right, shift, begin, end, place, best, which)
            for j in range(columns):
                indices[image, i, j] = which[j]


@kernel(IN2, _PLACES, types.boolean, OUT2, types.Array(i8, 1, "C"))
def scatter(values, indices, add, result, wrong):
    images, count = values.shape
    for image in range(images):
        for i in range(count):
            place = indices[image, i]
            if 0 <= place < result.shape[1]:
                before = result[image, place] if add else _ZERO
                result[image, place] = before + values[image, i]
            else:
                wrong[0] = 1
