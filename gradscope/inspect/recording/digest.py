"""The statistics of many tensors at once, in the numbers of :func:`gradscope.inspect.summarize`.

A small tensor costs what NumPy takes to be called, so small ones are laid end to end and reduced together; a large one
is read in blocks that stay in the processor's cache. What either cannot do exactly (NaN and Inf among the elements,
values whose square leaves float64, complex and integer elements) takes the plain way.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy

from ..statistics import summarize

__all__ = ["ENTRY", "FIRST", "FLOATS", "TENSOR", "Digest", "digest"]

TENSOR = numpy.dtype([
    ("spec", "<i4"), ("bins_at", "<i4"), ("bins", "<i4"), ("shown", "<i4"), ("value", "<i8"),
    ("zeros", "<i8"), ("nans", "<i8"), ("infs", "<i8"), ("norm", "<f8"),
    ("min", "<f8"), ("max", "<f8"), ("mean", "<f8"), ("std", "<f8"), ("first", "<f8", 6),
])  # fmt: skip
"""A tensor in a page: its statistics, where its histogram stands, and its first elements.

``shown`` is how many of ``first`` are elements; -1 where the preview is text; ``value`` the number of the kept values.
``min`` to ``std`` are NaN where there is no finite element.
"""

ENTRY = numpy.dtype([("exponent", "<i2"), ("count", "<u4")])
"""A bin of a histogram: how many magnitudes lie in ``[2**exponent, 2**(exponent + 1))``."""

FIRST = 6
_SMALL = 768  # elements
_BLOCK = 1 << 16
_SAFE = 1e-150, 1e150  # magnitudes whose squares float64 holds
_DENSE = 1 << 22
_TOGETHER = 1 << 18  # elements of small tensors reduced at once; each call may wait for the interpreter
_PIECE = 8192
_ONES, _ONES32 = numpy.ones(_BLOCK), numpy.ones(_BLOCK, numpy.float32)
_SAFE_SINGLE = 1e-12, 1e12  # the same for float32, with room for sums
_WIDEST = 1100  # no exponent of a float64 is further from 0
FLOATS = frozenset(map(numpy.dtype, ("float16", "float32", "float64")))


class Digest:
    """The statistics of a batch of tensors.

    Attributes
    ----------
    rows : ndarray of TENSOR
    entries : ndarray of ENTRY
        All histograms; a row tells which of them are its own.
    previews : dict of int to str
        By row, where the first elements are not floats.
    """

    def __init__(self, count: int) -> None:
        self.rows = numpy.zeros(count, TENSOR)
        self.rows["spec"] = self.rows["value"] = -1
        self.previews: dict[int, str] = {}
        self._entries: list[numpy.ndarray] = []
        self._length = 0

    @property
    def entries(self) -> numpy.ndarray:
        """All histograms."""
        return numpy.concatenate(self._entries) if self._entries else numpy.zeros(0, ENTRY)

    def add_entries(self, exponents: Any, counts: Any) -> int:
        """Add bins; return where they begin."""
        entries = numpy.empty(len(exponents), ENTRY)
        entries["exponent"], entries["count"] = exponents, counts
        begin = self._length
        self._entries.append(entries)
        self._length += len(entries)
        return begin


def digest(arrays: Sequence[Any]) -> Digest:
    """Return the statistics of many arrays.

    Parameters
    ----------
    arrays : sequence of ndarray

    Returns
    -------
    Digest

    Examples
    --------
    >>> rows = digest([numpy.array([3.0, -4.0]), numpy.zeros(3, numpy.float32)]).rows
    >>> rows["norm"].tolist(), rows["zeros"].tolist()
    ([5.0, 0.0], [0, 3])
    """
    result = Digest(len(arrays))
    small, plain = [], []
    with numpy.errstate(all="ignore"):
        for index, array in enumerate(arrays):
            if array.dtype not in FLOATS or not array.size:
                plain.append(index)
            elif array.size <= _SMALL:
                small.append(index)
            elif not _large(result, index, array):
                plain.append(index)
        for group in _groups(small, arrays):
            plain += _small(result, group, arrays)
        for index in plain:
            _plain(result, index, arrays[index])
    return result


def _plain(result: Digest, index: int, array: Any) -> None:
    """Take the statistics of one tensor, whatever it holds."""
    summary = summarize(array)
    row = result.rows[index]
    for name in ("zeros", "nans", "infs", "norm"):
        row[name] = getattr(summary, name)
    for name in ("min", "max", "mean", "std"):
        value = getattr(summary, name)
        row[name] = numpy.nan if value is None else value
    exponents, counts = zip(*summary.histogram) if summary.histogram else ((), ())
    row["bins_at"], row["bins"] = result.add_entries(exponents, counts), len(counts)
    if array.dtype in FLOATS:
        _preview(row, array)
    else:
        row["shown"] = -1
        result.previews[index] = summary.preview


def _preview(row: Any, array: Any) -> None:
    first = array.flat[:FIRST]
    row["shown"] = first.size
    row["first"][: first.size] = first


# --- large -----------------------------------------------------------------------------------------------------------


def _large(result: Digest, index: int, array: Any) -> bool:
    """Take the statistics of one array of floats, block by block; False if it needs the plain way."""
    if array.dtype == numpy.float16:
        array = array.astype(numpy.float32)
    flat = array.ravel(order="K")
    blocks = [flat[at : at + _BLOCK] for at in range(0, flat.size, _BLOCK)]
    low, high = min(float(b.min()) for b in blocks), max(float(b.max()) for b in blocks)
    largest = max(high, -low)
    if not (largest == 0.0 or _SAFE[0] < largest < _SAFE[1]):  # NaN and Inf too
        return False
    sums = _single(blocks) if array.dtype == numpy.float32 and _SAFE_SINGLE[0] < largest < _SAFE_SINGLE[1] else None
    squares, mean, variance = sums or _double(blocks)
    exponents, counts, zeros = _exponents(blocks)
    row = result.rows[index]
    row["zeros"], row["norm"], row["min"], row["max"] = zeros, squares**0.5, low, high
    row["mean"], row["std"] = mean, max(variance, 0.0) ** 0.5
    row["bins_at"], row["bins"] = result.add_entries(exponents, counts), len(counts)
    _preview(row, array)
    return True


def _single(blocks: list[Any]) -> tuple[float, float, float] | None:
    """Return the sum of squares, the mean and the variance of float32 elements, to about six digits.

    None where the mean is so large beside the variance that too few of them would be right.
    """
    count = sum(block.size for block in blocks)
    squares = sum(_dot(block, block) for block in blocks)
    mean = sum(_dot(block, _ONES32[: block.size]) for block in blocks) / count
    variance = squares / count - mean * mean
    return (squares, mean, variance) if variance > 0.5 * squares / count else None


def _double(blocks: list[Any]) -> tuple[float, float, float]:
    """Return the sum of squares, the mean and the variance, in float64."""
    # Around the middle of the first elements, so that the square of the mean does not swallow the variance.
    shift = float(blocks[0][:1024].mean(dtype=numpy.float64))
    squares = total = spread = 0.0
    for block in blocks:
        wide = _room.mantissas[: block.size]
        numpy.copyto(wide, block)
        squares += _dot(wide, wide)
        wide -= shift
        total += _dot(wide, _ONES[: wide.size])
        spread += _dot(wide, wide)
    count = sum(block.size for block in blocks)
    offset = total / count
    return squares, shift + offset, spread / count - offset * offset


def _dot(one: Any, two: Any) -> float:
    """Return a dot product in pieces so short that no BLAS sets other threads to them, which would spin on."""
    whole = one.size - one.size % _PIECE
    pieces = numpy.vecdot(one[:whole].reshape(-1, _PIECE), two[:whole].reshape(-1, _PIECE))
    return float(numpy.add.reduce(pieces, dtype=numpy.float64)) + float(numpy.dot(one[whole:], two[whole:]))


def _exponents(blocks: list[Any]) -> tuple[Any, Any, int]:
    """Return powers of two, how many magnitudes each has, and how many elements are zero."""
    counts = numpy.zeros(2 * _WIDEST, numpy.int64)
    zeros = 0
    room = _room
    mantissas = room.mantissas.view(blocks[0].dtype)
    for block in blocks:
        size = block.size
        # Sorting 16-bit integers and finding where each begins takes a third of the time of bincount().
        exponents = room.narrow[:size]
        numpy.copyto(exponents, numpy.frexp(block, mantissas[:size], room.wide[:size])[1], casting="same_kind")
        exponents.sort()
        low, high = int(exponents[0]), int(exponents[-1])
        places = numpy.searchsorted(exponents, numpy.arange(low, high + 2, dtype=numpy.int16))
        counts[low + _WIDEST : high + _WIDEST + 1] += places[1:] - places[:-1]
        if low <= 0 <= high and places[-low] < places[1 - low]:  # the exponent of zero is 0
            zeros += size - int(numpy.count_nonzero(numpy.not_equal(block, 0, out=room.marks[:size])))
    counts[_WIDEST] -= zeros
    found = numpy.flatnonzero(counts)
    return found - _WIDEST - 1, counts[found], zeros


class _Room(threading.local):
    """Memory for what is made of a block, a thread's own: to touch new memory costs more than the arithmetic."""

    def __init__(self) -> None:
        self.mantissas = numpy.empty(_BLOCK)
        self.wide = numpy.empty(_BLOCK, numpy.intc)
        self.narrow = numpy.empty(_BLOCK, numpy.int16)
        self.marks = numpy.empty(_BLOCK, bool)


_room = _Room()


# --- small -----------------------------------------------------------------------------------------------------------


def _groups(chosen: list[int], arrays: Sequence[Any]) -> list[list[int]]:
    """Split what is reduced together where it would leave the cache."""
    groups: list[list[int]] = []
    room = 0
    for index in chosen:
        size = arrays[index].size
        if room < size:
            groups.append([])
            room = _TOGETHER
        groups[-1].append(index)
        room -= size
    return groups


def _small(result: Digest, chosen: list[int], arrays: Sequence[Any]) -> list[int]:
    """Take the statistics of small arrays of floats together; return which need the plain way."""
    pieces = [arrays[index].ravel() for index in chosen]
    flat = numpy.concatenate(pieces, dtype=numpy.float64, casting="unsafe")
    sizes = numpy.array([piece.size for piece in pieces])
    starts = numpy.cumsum(sizes) - sizes
    magnitudes = numpy.abs(flat)
    largest = numpy.maximum.reduceat(magnitudes, starts)
    good = (largest == 0) | ((largest > _SAFE[0]) & (largest < _SAFE[1]))
    mean = numpy.add.reduceat(flat, starts) / sizes
    apart = flat - numpy.repeat(mean, sizes)
    rows = numpy.zeros(len(chosen), TENSOR)
    rows["spec"] = rows["value"] = -1
    rows["norm"] = numpy.sqrt(numpy.add.reduceat(flat * flat, starts))
    rows["min"] = numpy.minimum.reduceat(flat, starts)
    rows["max"] = numpy.maximum.reduceat(flat, starts)
    rows["mean"] = mean
    rows["std"] = numpy.sqrt(numpy.add.reduceat(apart * apart, starts) / sizes)
    rows["shown"] = numpy.minimum(sizes, FIRST)
    places = starts[:, None] + numpy.arange(FIRST)
    inside = numpy.arange(FIRST) < sizes[:, None]
    rows["first"] = numpy.where(inside, flat[numpy.minimum(places, flat.size - 1)], 0.0)
    _bins(result, rows, magnitudes, numpy.repeat(numpy.arange(len(chosen)), sizes), sizes, good)
    result.rows[chosen] = rows
    return [index for index, fine in zip(chosen, good.tolist()) if not fine]


def _bins(result: Digest, rows: Any, magnitudes: Any, owner: Any, sizes: Any, good: Any) -> None:
    """Count zeros and magnitudes by power of two, for each tensor of `owner`."""
    counted = (magnitudes != 0) & good[owner]
    owner, magnitudes = owner[counted], magnitudes[counted]
    rows["zeros"] = sizes - numpy.bincount(owner, minlength=len(sizes))
    exponents = numpy.frexp(magnitudes)[1] - 1
    low = int(exponents.min()) if exponents.size else 0
    width = int(exponents.max()) - low + 1 if exponents.size else 1
    cell = owner * width + (exponents - low)
    if width * len(sizes) <= _DENSE:
        dense = numpy.bincount(cell, minlength=width * len(sizes))
        cells = numpy.flatnonzero(dense)
        counts = dense[cells]
    else:
        cells, counts = numpy.unique(cell, return_counts=True)
    begin = result.add_entries(cells % width + low, counts)
    rows["bins"] = numpy.bincount(cells // width, minlength=len(sizes))
    rows["bins_at"] = begin + numpy.cumsum(rows["bins"]) - rows["bins"]
