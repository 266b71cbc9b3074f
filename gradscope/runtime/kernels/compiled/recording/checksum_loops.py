"""Checksums of many tensors in one call; the NumPy form is in `inspect.records.checksums`, which says what they are."""

from __future__ import annotations

import numpy
from numba import carray, types

from ..jit import i8, kernel, pointer_to_float, pointer_to_word

_u8 = numpy.uint64
_PLACES, _SUMS = types.Array(i8, 1, "C"), types.Array(types.uint64, 1, "C")
_FACTORS = types.Array(types.uint64, 1, "C", readonly=True)
_SQUARES = types.Array(types.float64, 1, "C")


@kernel(_PLACES, _PLACES, _FACTORS, _FACTORS, _SUMS, _SQUARES)
def checksums_and_squares(addresses, sizes, inside, outside, sums, squares):
    """Write the checksum of each run of float32 in memory and, where there is room for it, the sum of its squares.

    A block is read again while it is in the processor's cache.
    """
    for which in range(addresses.size):
        size = sizes[which]
        whole = size // 2
        words = carray(pointer_to_word(addresses[which]), whole)
        values = carray(pointer_to_float(addresses[which]), size)
        total, square = _u8(0), 0.0
        for block in range((whole + inside.size - 1) // inside.size):
            first = block * inside.size
            part = words[first : first + inside.size]
            products = _u8(0)
            for i in range(part.size):
                products += part[i] * inside[i]
            total += products * outside[block]
            if squares.size:
                numbers = values[2 * first : 2 * (first + part.size)]
                for i in range(numbers.size):
                    number = numpy.float64(numbers[i])
                    square += number * number
        if size % 2:  # zeros fill the last word up
            last = values[size - 1 :]
            total += _u8(last.view(numpy.uint32)[0]) * inside[whole % inside.size] * outside[whole // inside.size]
            square += numpy.float64(last[0]) * numpy.float64(last[0])
        sums[which] = total
        if squares.size:
            squares[which] = square
