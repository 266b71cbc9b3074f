"""Series: how numbers went over a whole run, in room that does not grow with it.

A series has at most so many buckets, each of as many iterations as every other. Where a run outgrows them, two become
one: the resolution halves, and the room stays. So the norm of a parameter's gradient can be followed from the first
iteration of a week's run to the last, whatever the recording has left out meanwhile.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...output.terminal_text import one_line

__all__ = ["BUCKETS", "SERIES_COLUMNS", "Bucket", "RunSeries", "SeriesRecord", "read_series"]

BUCKETS = 128
"""Buckets of a series, at most."""

SERIES_COLUMNS = ("id", "run", "kind", "name", "width", "facts", "buckets", "checksum")

_LEAST_BUCKETS = 8
_BUCKET = numpy.dtype([
    ("samples", "<u4"), ("bad", "<u4"), ("zeros", "<u4"), ("least", "<f8"), ("most", "<f8"), ("total", "<f8"),
])  # fmt: skip
_EMPTY = numpy.array((0, 0, 0, math.inf, -math.inf, 0.0), _BUCKET)
_FACTS = numpy.dtype([
    ("first", "<i8"), ("first_value", "<f8"), ("last", "<i8"), ("last_value", "<f8"),
    ("bad_first", "<i8"), ("bad_last", "<i8"), ("zero_first", "<i8"), ("zero_last", "<i8"),
])  # fmt: skip
_PLACES = ("first", "last", "bad_first", "bad_last", "zero_first", "zero_last")
_NOWHERE = -1
_UNMET = numpy.array((_NOWHERE, math.nan, _NOWHERE, math.nan, *[_NOWHERE] * 4), _FACTS)
_GROWN = 16  # rows that the table begins with


@dataclass(frozen=True, slots=True)
class Bucket:
    """Some consecutive iterations of a series.

    Attributes
    ----------
    first, last : int
        The iterations that it stands for.
    samples : int
        How many numbers there were, one for each backward.
    bad, zeros : int
        How many of them were NaN or infinite, and how many were 0.
    mean, least, most : float or None
        Of the finite ones; None where there was none.
    """

    first: int
    last: int
    samples: int
    bad: int
    zeros: int
    mean: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class SeriesRecord:
    """How a number went over a run.

    Attributes
    ----------
    kind : str
        ``'gradient'``: the norm of what a backward brought a parameter; ``'loss'``: the loss.
    name : str
        The parameter.
    width : int
        Iterations of a bucket.
    first, last : int
        The first and the last iteration with a sample.
    first_value, last_value : float
        What they were.
    bad, zeros : (int, int, int) or None
        How many samples were NaN or infinite, or 0, and in which iteration the first and the last of them was.
    buckets : tuple of Bucket
        Those that have samples.
    """

    run: int
    kind: str
    name: str
    width: int
    first: int
    last: int
    first_value: float
    last_value: float
    bad: tuple[int, int, int] | None
    zeros: tuple[int, int, int] | None
    buckets: tuple[Bucket, ...]

    @property
    def samples(self) -> int:
        """How many numbers there were."""
        return sum(bucket.samples for bucket in self.buckets)

    @property
    def mean(self) -> float | None:
        """The mean of all that were finite."""
        told = [(bucket.mean, bucket.samples - bucket.bad) for bucket in self.buckets if bucket.mean is not None]
        count = sum(weight for _, weight in told)
        return sum(mean * weight for mean, weight in told) / count if count else None

    @property
    def least(self) -> float | None:
        """The smallest that was finite."""
        return min((bucket.least for bucket in self.buckets if bucket.least is not None), default=None)

    @property
    def most(self) -> float | None:
        """The largest that was finite."""
        return max((bucket.most for bucket in self.buckets if bucket.most is not None), default=None)

    @property
    def level(self) -> float:
        """The highest level that the series has held: the largest mean of a bucket that is no peak of its own."""
        means = [bucket.mean for bucket in self.buckets if bucket.mean is not None]
        if len(means) < 3:
            return max(means, default=0.0)
        return max(sorted(means[at : at + 3])[1] for at in range(len(means) - 2))

    def since(self, limit: float) -> Bucket | None:
        """Return the bucket from which on no sample was above a limit, or bad; None where the last ones were.

        Examples
        --------
        >>> series = RunSeries(run=1)
        >>> series.add("gradient", ["weight"] * 6, range(6), [2.0, 1.0, 0.1, 1.0, 0.1, 0.01])
        >>> [record] = series.records()
        >>> record.since(0.5).first, record.since(0.05).first, record.since(0.005)
        (4, 5, None)
        """
        found = None
        for bucket in reversed(self.buckets):
            if bucket.bad or bucket.most is None or bucket.most > limit:
                break
            found = bucket
        return found


class RunSeries:
    """All series of a run that is being recorded.

    Parameters
    ----------
    run : int
        The row of the table `runs`.
    room : int
        Bytes that they may take. Where there are so many that it is too little, each has fewer buckets; where that does
        not help, those that come last are left out.
    first_id : int
        The id of the first row in the table `series`.

    Attributes
    ----------
    width : int
        Iterations of a bucket.
    left_out : int
        Samples of what there was no room for.

    Examples
    --------
    >>> series = RunSeries(run=1)
    >>> for iteration in range(1000):
    ...     series.add("gradient", ["weight"], [iteration], [0.5])
    >>> [record] = series.records()
    >>> series.width, len(record.buckets), record.samples, record.mean, record.last
    (8, 125, 1000, 0.5, 999)
    """

    def __init__(self, run: int, *, room: int = 64 << 20, first_id: int = 1) -> None:
        self.run = run
        self.width = 1
        self.left_out = 0
        self._room = room
        self._first_id = first_id
        self._most = BUCKETS
        self._rows: dict[tuple[str, str], int] = {}
        self._buckets = numpy.full((_GROWN, BUCKETS), _EMPTY)
        self._facts = numpy.full(_GROWN, _UNMET)
        self._changed = False

    @property
    def changed(self) -> bool:
        """Whether there is anything that rows() has not returned yet."""
        return self._changed

    @property
    def nbytes(self) -> int:
        """How many bytes the rows take, about."""
        return len(self._rows) * self._row_bytes(self._most)

    @staticmethod
    def _row_bytes(buckets: int) -> int:
        return buckets * _BUCKET.itemsize + _FACTS.itemsize + 128

    # --- samples ---

    def row(self, kind: str, name: str) -> int:
        """Return the number of a series, which is made where it is not there; -1 where there is no room for it."""
        row = self._rows.get((kind, name))
        if row is not None:
            return row
        count = len(self._rows) + 1
        while count * self._row_bytes(self._most) > self._room and self._most > _LEAST_BUCKETS:
            self._most //= 2
            self._halve()
        if count * self._row_bytes(self._most) > self._room:
            return -1
        if count > len(self._facts):
            self._buckets = numpy.concatenate([self._buckets, numpy.full_like(self._buckets, _EMPTY)])
            self._facts = numpy.concatenate([self._facts, numpy.full_like(self._facts, _UNMET)])
        return self._rows.setdefault((kind, name), count - 1)

    def add(self, kind: str, names: Sequence[str], iterations: Sequence[int], values: Sequence[float]) -> None:
        """Add samples, in the order in which they came."""
        self.add_rows([self.row(kind, name) for name in names], iterations, values)

    def add_rows(self, rows: Sequence[int] | Any, iterations: Sequence[int] | Any, values: Any) -> None:
        """Add samples to the series that :meth:`row` has numbered."""
        rows = numpy.asarray(rows, numpy.int64)
        there = rows >= 0
        if not there.all():
            self.left_out += int((~there).sum())
        if not there.any():
            return
        rows, iterations = rows[there], numpy.asarray(iterations, numpy.int64)[there]
        values = numpy.asarray(values, numpy.float64)[there]
        while int(iterations.max()) // self.width >= self._most:
            self._halve()
        finite, zero = numpy.isfinite(values), values == 0
        self._put(rows, iterations, values, finite, zero)
        self._note_places(rows, iterations, values)
        self._note(rows[~finite], iterations[~finite], "bad_first", "bad_last")
        self._note(rows[zero], iterations[zero], "zero_first", "zero_last")
        self._changed = True

    def _put(self, rows: Any, iterations: Any, values: Any, finite: Any, zero: Any) -> None:
        buckets = self._buckets.reshape(-1)
        places = rows * BUCKETS + iterations // self.width
        numpy.add.at(buckets["samples"], places, 1)
        if not finite.all():
            numpy.add.at(buckets["bad"], places[~finite], 1)
            places, values = places[finite], values[finite]
        if zero.any():
            numpy.add.at(buckets["zeros"], (rows * BUCKETS + iterations // self.width)[zero], 1)
        numpy.add.at(buckets["total"], places, values)
        numpy.minimum.at(buckets["least"], places, values)
        numpy.maximum.at(buckets["most"], places, values)

    def _note_places(self, rows: Any, iterations: Any, values: Any) -> None:
        facts = self._facts
        fresh = facts["first"][rows] < 0
        # A series may have several samples here: in reverse its first has the last word, forwards its last.
        facts["first_value"][rows[fresh][::-1]] = values[fresh][::-1]
        facts["last_value"][rows] = values
        self._note(rows, iterations, "first", "last")

    def _note(self, rows: Any, iterations: Any, first: str, last: str) -> None:
        if not len(rows):
            return
        facts = self._facts
        fresh = facts[first][rows] < 0
        facts[first][rows[fresh]] = iterations[fresh]
        numpy.minimum.at(facts[first], rows, iterations)
        numpy.maximum.at(facts[last], rows, iterations)

    def _halve(self) -> None:
        """Make one bucket of two."""
        self.width *= 2
        pairs = self._buckets.reshape(len(self._buckets), BUCKETS // 2, 2)
        halved = numpy.full_like(self._buckets, _EMPTY)
        _merge(pairs, halved[:, : BUCKETS // 2])
        self._buckets = halved

    def collapse(self, iteration: int) -> None:
        """Move what came after an iteration into it: those after it never were."""
        at = iteration // self.width
        if at + 1 < BUCKETS:
            _merge(self._buckets[:, None, at:], self._buckets[:, at : at + 1])
            self._buckets[:, at + 1 :] = _EMPTY
        for name in _PLACES:
            numpy.minimum(self._facts[name], iteration, out=self._facts[name])
        self._changed = True

    # --- the file ---

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the table `series`, under :data:`SERIES_COLUMNS`."""
        self._changed = False
        for (kind, name), row in self._rows.items():
            if self._facts["first"][row] < 0:
                continue
            used = self._buckets[row]
            used = used[: int(numpy.flatnonzero(used["samples"])[-1]) + 1]
            facts, buckets = self._facts[row : row + 1].tobytes(), used.tobytes()
            checksum = _checksum(self.width, facts, buckets)
            yield self._first_id + row, self.run, kind, name, self.width, facts, buckets, checksum

    def records(self) -> list[SeriesRecord]:
        """Return what a reader will find."""
        return [read_series(row) for row in self.rows()]


def _merge(parts: Any, whole: Any) -> None:
    """Put the buckets along the last axis of `parts` together."""
    for name in ("samples", "bad", "zeros", "total"):
        whole[name] = parts[name].sum(axis=-1)
    whole["least"] = parts["least"].min(axis=-1)
    whole["most"] = parts["most"].max(axis=-1)


def _checksum(width: int, facts: bytes, buckets: bytes) -> int:
    return zlib.crc32(buckets, zlib.crc32(facts, width & 0xFFFFFFFF))


def read_series(row: Sequence[Any]) -> SeriesRecord:
    """Return the series of which :meth:`RunSeries.rows` has made this.

    Raises
    ------
    ValueError
        If it has been damaged.
    """
    _, run, kind, name, width, facts, buckets, checksum = row
    if (
        not isinstance(width, int)
        or width < 1
        or not isinstance(run, int)
        or _checksum(width, facts, buckets) != checksum
    ):
        raise ValueError("a series is damaged: its checksum is another")
    known, table = numpy.frombuffer(facts, _FACTS), numpy.frombuffer(buckets, _BUCKET)
    if len(known) != 1 or not 0 < len(table) <= BUCKETS:
        raise ValueError("a series is damaged: it has no buckets, or more than a series has")
    first, first_value, last, last_value, bad_first, bad_last, zero_first, zero_last = known.tolist()[0]
    found = tuple(_bucket(at * width, width, *numbers) for at, numbers in enumerate(table.tolist()) if numbers[0])
    bad, zeros = (sum(int(number) for number in table[which]) for which in ("bad", "zeros"))
    return SeriesRecord(
        run, one_line(str(kind)), one_line(str(name)), width, first, last, first_value, last_value,
        (bad, bad_first, bad_last) if bad else None, (zeros, zero_first, zero_last) if zeros else None, found,
    )  # fmt: skip


def _bucket(
    first: int, width: int, samples: int, bad: int, zeros: int, least: float, most: float, total: float
) -> Bucket:
    some = samples > bad
    mean = total / (samples - bad) if some else None
    return Bucket(first, first + width - 1, samples, bad, zeros, mean, least if some else None, most if some else None)
