"""The statistics of a tensor as a device has counted them: sums, extremes, and how many elements have each exponent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

__all__ = ["BINS", "FIRST", "INFINITE", "LOWEST", "NAN", "OUTSIDE", "SUMS", "UNKNOWN", "ZERO", "Moments", "decode"]

LOWEST = 150
"""What is added to the exponent of a float32, which is -149 or more, to be the number of its bin."""

OUTSIDE, ZERO, INFINITE, NAN = 508, 509, 510, 511
"""The bins of what is no element, of zeros, of infinities and of NaN."""

BINS = 512

SUMS, FIRST = 12, 6
"""Doubles of a part: the sum, the sum of squares, and the sum of squares of the finite elements, of which the first two
are less the first element; the smallest and the largest; that first element; and the first elements of the tensor."""


class Moments(NamedTuple):
    """The statistics of one tensor, in the numbers of :func:`~.tensor_statistics.summarize`.

    Attributes
    ----------
    min, max, mean, std : float
        Of the finite elements; NaN where there is none.
    exponents, counts : ndarray
        How many magnitudes lie in ``[2**exponent, 2**(exponent + 1))``.
    first : list of float
        The first elements, six at most.
    """

    norm: float
    min: float
    max: float
    mean: float
    std: float
    zeros: int
    nans: int
    infs: int
    exponents: Any
    counts: Any
    first: Sequence[float]

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(self.counts.sum()) + self.zeros + self.nans + self.infs


UNKNOWN = Moments(*(math.nan,) * 5, 0, 0, 0, numpy.zeros(0, numpy.int64), numpy.zeros(0, numpy.int64), ())
"""The statistics of what cannot be read any more."""


def decode(bins: Any, sums: Any, shown: int, repeats: int = 1) -> Moments:
    """Return what the parts of a tensor come to.

    Parameters
    ----------
    bins : ndarray of int
        For each part how many elements it has in each of `BINS` bins.
    sums : ndarray of float64
        For each part its `SUMS`.
    shown : int
        How many of the first elements there are.
    repeats : int
        How often each element stands in the tensor.

    Examples
    --------
    >>> bins, sums = numpy.zeros((1, BINS), int), numpy.zeros((1, SUMS))
    >>> bins[0, [LOWEST + 1, LOWEST + 2, ZERO]] = 1
    >>> sums[0, :9] = -10.0, 58.0, 25.0, -4.0, 3.0, 3.0, 3.0, -4.0, 0.0
    >>> found = decode(bins, sums, 3)
    >>> found.norm, found.min, found.max, round(found.mean, 3), found.zeros
    (5.0, -4.0, 3.0, -0.333, 1)
    >>> dict(zip(found.exponents.tolist(), found.counts.tolist()))
    {1: 1, 2: 1}
    """
    counts = bins.sum(0, dtype=numpy.int64) * repeats
    zeros, infs, nans = (int(counts[place]) for place in (ZERO, INFINITE, NAN))
    there = counts[:OUTSIDE].nonzero()[0]
    finite = int(counts[:OUTSIDE].sum()) + zeros
    total, spread, squares = (sums[:, :3].sum(0) * repeats).tolist()
    low, high, mean, std = (math.nan,) * 4
    if finite:
        low, high, offset = float(sums[:, 3].min()), float(sums[:, 4].max()), total / finite
        mean = float(sums[0, 5]) + offset
        std = math.sqrt(max(spread / finite - offset * offset, 0.0))
    norm = math.nan if nans else math.inf if infs else math.sqrt(squares)
    first = sums[0, 6 : 6 + shown].tolist()
    return Moments(norm, low, high, mean, std, zeros, nans, infs, there - LOWEST, counts[there], first)
