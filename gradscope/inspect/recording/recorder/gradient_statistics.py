"""The statistics of many tensors at once, in the numbers of :func:`gradscope.inspect.summarize`.

A small tensor costs what NumPy takes to be called, so small ones are laid end to end and reduced together; a large one
is read in blocks that stay in the processor's cache. What either cannot do exactly (NaN and Inf among the elements,
values whose square leaves float64, complex and integer elements) takes the plain way.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from ....runtime.kernels import loading
from ...records.moments import Moments
from ...records.tensor_statistics import dot_in_pieces, summarize

__all__ = [
    *("BatchStatistics", "ENTRY", "FIRST", "FLOATS", "SMALL", "TENSOR", "TensorStatistics"),
    *("digest", "digest_flat", "measure"),
]

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
SMALL = 768
"""Elements up to which tensors are reduced together."""
_BLOCK = 1 << 16
_SAFE = 1e-150, 1e150  # magnitudes whose squares float64 holds
_DENSE = 1 << 22
_TOGETHER = 1 << 18  # elements of small tensors reduced at once; each call may wait for the interpreter
_ONES, _ONES32 = numpy.ones(_BLOCK), numpy.ones(_BLOCK, numpy.float32)
_SAFE_SINGLE = 1e-12, 1e12  # magnitudes whose squares and their sums float32 holds
_COMPILED = 4096  # elements from which a compiled pass is worth its call; its last digit may differ
# For each dtype: the integer of its size, the bit at which the exponent begins, how many exponents there are, and
# the one that stands for 2**0.
_LAYOUTS = {
    numpy.dtype(numpy.float32): (numpy.uint32, 23, 256, 127),
    numpy.dtype(numpy.float64): (numpy.uint64, 52, 2048, 1023),
}
_ROW, _FIRST = struct.Struct("<4i4q11d"), struct.Struct("<6d")  # the layout of TENSOR, and of its last six fields
FLOATS = frozenset(map(numpy.dtype, ("float16", "float32", "float64")))


class BatchStatistics:
    """The statistics of a batch of tensors.

    Attributes
    ----------
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
        if len(self._entries) != 1:
            self._entries = [numpy.concatenate(self._entries) if self._entries else numpy.zeros(0, ENTRY)]
        return self._entries[0]

    def add_entries(self, exponents: Any, counts: Any) -> int:
        """Add bins; return where they begin."""
        entries = numpy.empty(len(exponents), ENTRY)
        entries["exponent"], entries["count"] = exponents, counts
        begin = self._length
        self._entries.append(entries)
        self._length += len(entries)
        return begin

    def put(self, index: int, measured: TensorStatistics) -> None:
        """Fill in a row with what has been measured."""
        self.rows[index] = numpy.frombuffer(measured.row, TENSOR)[0]
        self.rows[index]["bins_at"] = self.add_entries(measured.exponents, measured.counts)
        if measured.preview is not None:
            self.previews[index] = measured.preview

    def measured(self, index: int) -> TensorStatistics:
        """Return what a row, with its histogram, tells of one tensor."""
        row = self.rows[index]
        bins = self.entries[row["bins_at"] : row["bins_at"] + row["bins"]]
        return TensorStatistics(row.tobytes(), bins["exponent"], bins["count"], self.previews.get(index))


def digest(arrays: Sequence[Any]) -> BatchStatistics:
    """Return the statistics of many arrays.

    Examples
    --------
    >>> rows = digest([numpy.array([3.0, -4.0]), numpy.zeros(3, numpy.float32)]).rows
    >>> rows["norm"].tolist(), rows["zeros"].tolist()
    ([5.0, 0.0], [0, 3])
    """
    result = BatchStatistics(len(arrays))
    small, plain = [], []
    with numpy.errstate(all="ignore"):
        for index, array in enumerate(arrays):
            if array.dtype not in FLOATS or not array.size:
                plain.append(index)
            elif array.size <= SMALL:
                small.append(index)
            elif (measured := measure(array)) is not None:
                result.put(index, measured)
            else:
                plain.append(index)
        for group in _groups(small, arrays):
            plain += _small(result, group, arrays)
        for index in plain:
            _plain(result, index, arrays[index])
    return result


def _plain(result: BatchStatistics, index: int, array: Any) -> None:
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


class TensorStatistics(NamedTuple):
    """The statistics of one tensor: a row of TENSOR, its histogram, and the first elements where they are text."""

    row: bytes
    exponents: Any
    counts: Any
    preview: str | None = None

    def beginning_with(self, first: Sequence[float]) -> TensorStatistics:
        """Return the same for the same elements in another order, which begins with `first`."""
        row = bytearray(self.row)
        _FIRST.pack_into(row, TENSOR.fields["first"][1], *first, *[0.0] * (FIRST - len(first)))  # type: ignore[index]
        return self._replace(row=bytes(row))

    @classmethod
    def of(cls, moments: Moments) -> TensorStatistics:
        """Return the statistics that a device has taken."""
        first = moments.first
        facts = -1, 0, len(moments.counts), len(first), -1, moments.zeros, moments.nans, moments.infs
        numbers = moments.norm, moments.min, moments.max, moments.mean, moments.std
        row = _ROW.pack(*facts, *numbers, *first, *[0.0] * (FIRST - len(first)))
        return cls(row, moments.exponents, moments.counts)


def measure(array: Any) -> TensorStatistics | None:
    """Return the statistics of one large array of floats, read block by block; None if it needs the plain way.

    Parameters
    ----------
    array : ndarray
        Of a dtype in `FLOATS`.

    Returns
    -------
    TensorStatistics or None
        None where elements are NaN or Inf, or so large or small that their squares are.
    """
    flat = array.ravel(order="K")
    if flat.dtype == numpy.float16:
        flat = flat.astype(numpy.float32)
    size = flat.size
    blocks = [flat] if size <= _BLOCK else [flat[at : at + _BLOCK] for at in range(0, size, _BLOCK)]
    loops = (
        loading.compiled("recording.statistics_loops") if flat.dtype == numpy.float32 and size >= _COMPILED else None
    )
    found = _in_passes(blocks, size) if loops is None else _in_one_pass(loops, blocks, size)
    if found is None:
        return None
    low, high, squares, mean, variance, (exponents, counts, zeros) = found
    first = array.flat[:FIRST].tolist()
    facts = -1, 0, len(counts), len(first), -1, zeros, 0, 0
    statistics = squares**0.5, low, high, mean, max(variance, 0.0) ** 0.5
    return TensorStatistics(_ROW.pack(*facts, *statistics, *first, *[0.0] * (FIRST - len(first))), exponents, counts)


class _Measured(NamedTuple):
    low: float
    high: float
    squares: float
    mean: float
    variance: float
    histogram: tuple[Any, Any, int]


def _in_passes(blocks: list[Any], size: int) -> _Measured | None:
    """Return what the elements measure, by NumPy; None if they need the plain way."""
    # Python's min() of a list would lose a NaN that is not its first element.
    low = float(numpy.minimum.reduce([numpy.minimum.reduce(block) for block in blocks]))
    high = float(numpy.maximum.reduce([numpy.maximum.reduce(block) for block in blocks]))
    largest = max(high, -low)
    if not (largest == 0.0 or _SAFE[0] < largest < _SAFE[1]):  # NaN and Inf come here too
        return None
    single = blocks[0].dtype == numpy.float32 and _SAFE_SINGLE[0] < largest < _SAFE_SINGLE[1]
    moments = (single and _single(blocks, size)) or _double(blocks, size)
    return _Measured(low, high, *moments, _exponents(blocks, sum(map(_count_exponents, blocks))))


def _in_one_pass(loops: Any, blocks: list[Any], size: int) -> _Measured | None:
    """Return the same of float32 elements, by a compiled kernel."""
    extremes = numpy.empty((len(blocks), 2), numpy.float32)
    sums = numpy.empty((len(blocks), 2))
    found = numpy.empty((len(blocks), 256), numpy.int64)
    for index, block in enumerate(blocks):
        loops.moments_and_exponents(block, extremes[index], sums[index], found[index])
    low, high = float(extremes[:, 0].min()), float(extremes[:, 1].max())
    counts = found.sum(0)
    if counts[-1]:  # some elements are NaN or Inf
        return None
    total, squares = sums.sum(0).tolist()
    mean = total / size
    variance = squares / size - mean * mean
    if variance < 1e-6 * mean * mean:  # nearly all digits have cancelled
        squares, mean, variance = _double(blocks, size)
    return _Measured(low, high, squares, mean, variance, _exponents(blocks, counts))


def _single(blocks: list[Any], size: int) -> tuple[float, float, float] | None:
    """Return the sum of squares, the mean and the variance of float32 elements, to about six digits.

    None where the mean is so large beside the variance that too few of them would be right.
    """
    squares = sum([dot_in_pieces(block, block) for block in blocks])
    mean = sum([dot_in_pieces(block, _ONES32[: block.size]) for block in blocks]) / size
    variance = squares / size - mean * mean
    return (squares, mean, variance) if variance > 0.5 * squares / size else None


def _double(blocks: list[Any], size: int) -> tuple[float, float, float]:
    """Return the sum of squares, the mean and the variance, in float64."""
    # The sums are taken around the middle of the first elements, so that the square of the mean does not swallow the
    # variance.
    shift = float(blocks[0][:1024].mean(dtype=numpy.float64))
    squares = total = spread = 0.0
    for block in blocks:
        wide = _scratch.wide[: block.size]
        numpy.copyto(wide, block)
        squares += dot_in_pieces(wide, wide)
        wide -= shift
        total += dot_in_pieces(wide, _ONES[: wide.size])
        spread += dot_in_pieces(wide, wide)
    offset = total / size
    return squares, shift + offset, spread / size - offset * offset


def _count_exponents(block: Any) -> Any:
    """Return how many elements have each of the exponents that a float's bits hold."""
    bits, digits, exponents, _ = _LAYOUTS[block.dtype]
    places = _scratch.places[: block.size]
    numpy.right_shift(block.view(bits), digits, out=places, casting="unsafe")
    # The sign bit stands before the exponent: each exponent has two counts, which are added.
    return numpy.bincount(places, minlength=2 * exponents).reshape(2, exponents).sum(0)


def _exponents(blocks: list[Any], counts: Any) -> tuple[Any, Any, int]:
    """Return powers of two, how many magnitudes each has, and how many elements are zero."""
    bias = _LAYOUTS[blocks[0].dtype][-1]
    small, counts[0] = int(counts[0]), 0
    zeros = small and sum([block.size - int(numpy.count_nonzero(block)) for block in blocks])
    there = counts.nonzero()[0]
    if small == zeros:
        return there - bias, counts[there], zeros
    # Denormal numbers share one exponent in their bits; frexp() finds their own.
    tiny = numpy.concatenate([block[(abs(block) < numpy.finfo(block.dtype).tiny) & (block != 0)] for block in blocks])
    powers, more = numpy.unique(numpy.frexp(tiny)[1] - 1, return_counts=True)
    return numpy.concatenate([powers, there - bias]), numpy.concatenate([more, counts[there]]), zeros


class _ScratchMemory(threading.local):
    """Memory for what is made of a block, a thread's own: to touch new memory costs more than the arithmetic."""

    def __init__(self) -> None:
        self.wide = numpy.empty(_BLOCK)
        self.places = numpy.empty(_BLOCK, numpy.intp)


_scratch = _ScratchMemory()


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


def _small(result: BatchStatistics, chosen: list[int], arrays: Sequence[Any]) -> list[int]:
    """Take the statistics of small arrays of floats together; return which need the plain way."""
    pieces = [arrays[index].ravel() for index in chosen]
    flat = numpy.concatenate(pieces, dtype=numpy.float64, casting="unsafe")
    good = _together(result, chosen, flat, numpy.array([piece.size for piece in pieces]))
    return [index for index, fine in zip(chosen, good.tolist()) if not fine]


def digest_flat(flat: Any, sizes: Any) -> BatchStatistics:
    """Return the statistics of many tensors of floats whose elements stand one after the other.

    Parameters
    ----------
    sizes : ndarray of int
        How many elements each has; none has 0.
    """
    result = BatchStatistics(len(sizes))
    flat = flat.astype(numpy.float64)
    with numpy.errstate(all="ignore"):
        good = _together(result, numpy.arange(len(sizes)), flat, sizes)
        ends = numpy.cumsum(sizes)
        for index in numpy.flatnonzero(~good).tolist():
            _plain(result, index, flat[ends[index] - sizes[index] : ends[index]])
    return result


def _together(result: BatchStatistics, chosen: Any, flat: Any, sizes: Any) -> Any:
    """Fill in the rows `chosen`; return which of them hold, as the others need the plain way."""
    starts = numpy.cumsum(sizes) - sizes
    magnitudes = numpy.abs(flat)
    largest = numpy.maximum.reduceat(magnitudes, starts)
    good = (largest == 0) | ((largest > _SAFE[0]) & (largest < _SAFE[1]))
    mean = numpy.add.reduceat(flat, starts) / sizes
    apart = flat - numpy.repeat(mean, sizes)
    rows = numpy.zeros(len(sizes), TENSOR)
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
    _bins(result, rows, magnitudes, numpy.repeat(numpy.arange(len(sizes)), sizes), sizes, good)
    result.rows[chosen] = rows
    return good


def _bins(result: BatchStatistics, rows: Any, magnitudes: Any, owner: Any, sizes: Any, good: Any) -> None:
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
