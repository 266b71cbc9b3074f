"""Fingerprints of memory: the place of an array and its bits, which tell at a bounded cost whether it was written."""

from __future__ import annotations

import math
import zlib
from typing import Any, NamedTuple

import numpy

from ...runtime.memory.device import array_module
from ...runtime.memory.storage import without_repeats

__all__ = [
    "DEVICE_ELEMENTS",
    "SAMPLE_ELEMENTS",
    "UNREAD",
    "WHOLE_BYTES",
    "Region",
    "bits_of",
    "checksum_of",
    "fingerprint_of",
]

WHOLE_BYTES = 1 << 20
"""What is no larger is taken whole: a checksum of so much takes a quarter of a millisecond."""

SAMPLE_ELEMENTS = 1 << 16
"""How many evenly spaced elements are taken of what is larger."""

DEVICE_ELEMENTS = 1 << 12
"""How many are taken at most of what is not in the host's memory: to copy them waits for the device."""

UNREAD = (None, None)
"""Version and checksum of what is not looked at."""


_MOST_WORK = 10_000  # steps of the search for a common byte, each some nanoseconds


class Region(NamedTuple):
    """The bytes that a tensor looks at.

    Attributes
    ----------
    address : int
        Of the first element.
    shape, strides : tuple of int
        Strides in bytes.

    Examples
    --------
    >>> left, right = Region(4096, (4, 2), (32, 8), 8), Region(4112, (4, 2), (32, 8), 8)
    >>> left.apart(right), left.apart(left)
    (True, False)
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def array(self) -> numpy.ndarray:
        """Return these bytes as an array, which is valid as long as the memory is."""
        return numpy.asarray(_Interface(self))

    def bounds(self) -> tuple[int, int]:
        """Return the address of the first byte, and the one behind the last."""
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides)]
        last = self.address + sum(step for step in steps if step > 0)
        return self.address + sum(step for step in steps if step < 0), last + self.itemsize

    def apart(self, other: Region) -> bool:
        """Whether both have no byte in common; false where that would take long to find out."""
        (first, end), (start, last) = self.bounds(), other.bounds()
        if end <= start or last <= first:
            return True
        try:
            return not numpy.shares_memory(self.array(), other.array(), max_work=_MOST_WORK)  # type: ignore[arg-type]
        except numpy.exceptions.TooHardError:
            return False


class _Interface:
    """The attribute by which NumPy takes an object for an array."""

    def __init__(self, region: Region) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (region.address, True),
            "typestr": f"|V{region.itemsize}",
            "shape": region.shape,
            "strides": region.strides,
        }


def bits_of(array: Any, *, whole: int = WHOLE_BYTES, sample: int = SAMPLE_ELEMENTS) -> Any:
    """Return the elements of an array in the order of its memory, evenly spaced ones where it is large.

    Parameters
    ----------
    array : ndarray
        Of NumPy or CuPy.
    whole : int
        Up to how many bytes all elements are taken.
    sample : int
        How many elements are taken of a larger one.

    Returns
    -------
    ndarray
        Contiguous; a view of `array` where that is possible.

    Examples
    --------
    >>> import numpy
    >>> bits_of(numpy.arange(6).reshape(2, 3).T).tolist()
    [0, 1, 2, 3, 4, 5]
    >>> bits_of(numpy.broadcast_to(numpy.float32(7), (1000, 1000))).tolist()
    [7.0]
    >>> bits_of(numpy.arange(1000), whole=100, sample=4).tolist()
    [0, 251, 502, 753]
    """
    array = without_repeats(array)
    if array.ndim > 1:
        array = array.transpose(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    if array.nbytes <= whole:
        return (array if array.flags.c_contiguous else array.copy()).reshape(-1)
    step = spacing(array.size, sample)
    if array.flags.c_contiguous:
        return array.reshape(-1)[::step].copy()
    xp = array_module(array)
    return array[xp.unravel_index(xp.arange(0, array.size, step), array.shape)]


def fingerprint_of(adapter: Any, saved: Any) -> tuple[int | None, int | None]:
    """Return version and checksum of a saved tensor; None where no version is kept, or it has no memory of its own."""
    version = saved.current_version
    if version is None:
        return UNREAD
    tensor = saved.data
    checksum = checksum_of(adapter, tensor)
    return UNREAD if checksum is None else (version, checksum)


def checksum_of(adapter: Any, tensor: Any) -> int | None:
    """Return a checksum of the values of a tensor; None where it has no memory of its own."""
    bits = adapter.bits(tensor)
    return None if bits is None else zlib.crc32(bits)


def spacing(size: int, sample: int) -> int:
    """Return the distance between elements of which about `sample` are taken: odd, or it would meet few columns."""
    return math.ceil(size / sample) | 1
