"""How gradients went over a whole run, as text: since when one is zero, or has all but died away."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ...debugging.prompt.plain_text import number
from ...output.sparkline import linear_sparkline, sparkline
from ...output.terminal_text import table_text
from ..file.run_series import Bucket, SeriesRecord
from ..file.schema import RecordingError

__all__ = [
    "SHOWN",
    "buckets_text",
    "chosen_series",
    "faded_text",
    "matching_series",
    "remarks",
    "series_row",
    "series_text",
]

SHOWN = ("over the run", "first", "last", "least", "most", "")
"""What the columns of :func:`series_row` are called."""

_CELLS = 32
_FALLEN = (1e-1, 1e-2, 1e-3)  # parts of the highest level whose crossing is told
_TOLD = 1e-2  # the part below which anything is told: training itself brings about a tenth
_NAMED = 3


def chosen_series(series: Sequence[SeriesRecord], name: str = "") -> list[SeriesRecord]:
    """Return the series of a name, which may have ``*`` in it; all if it is empty.

    Raises
    ------
    RecordingError
        If there is none.
    """
    found = matching_series(series, name)
    if found:
        return found
    if not series:
        raise RecordingError(
            "no series: nothing that reached a parameter has been recorded\n"
            "With keep='none' no norm is known; series are written a second after the first backward."
        )
    known = ", ".join(dict.fromkeys(_title(one) for one in series[:_NAMED]))
    raise RecordingError(f"no series {name!r}\nThere are {known}{', ...' if len(series) > _NAMED else ''}.")


def matching_series(series: Sequence[SeriesRecord], name: str) -> list[SeriesRecord]:
    """Return the series of a name, which may have ``*`` in it; all if it is empty."""
    return [one for one in series if not name or fnmatchcase(_title(one), name)]


def series_text(groups: Sequence[tuple[str, Sequence[SeriesRecord]]], *, limit: int = 0) -> str:
    """Return a table with a line for each series; one alone with all of its buckets.

    Parameters
    ----------
    groups : sequence of (str, sequence of SeriesRecord)
        The ranks and what is of each; the rank is not told where there is but one group.
    limit : int
        How many lines at most; 0 for all.
    """
    every = [(rank, one) for rank, series in groups for one in series]
    if len(every) == 1:
        return buckets_text(every[0][1])
    if len(groups) > 1:
        order = {title: place for place, title in enumerate(dict.fromkeys(_title(one) for _, one in every))}
        every.sort(key=lambda each: order[_title(each[1])])
    newest = max((one.last for _, one in every), default=0)
    rows = [(_title(one), *([rank] if len(groups) > 1 else []), *series_row(one, newest)) for rank, one in every]
    shown = rows[:limit] if limit else rows
    head = ("series", *(["rank"] if len(groups) > 1 else []), *SHOWN)
    more = [f"... {len(rows) - len(shown)} more; --limit 0 shows all"] if len(shown) < len(rows) else []
    return "\n".join([table_text([head, *shown]), *more])


def series_row(series: SeriesRecord, newest: int) -> tuple[str, ...]:
    """Return the cells of a series under :data:`SHOWN`.

    Parameters
    ----------
    newest : int
        The last iteration of the run.
    """
    values = series.first_value, series.last_value, series.least, series.most
    return (_drawn(series), *map(number, values), "; ".join(remarks(series, newest)))


def remarks(series: SeriesRecord, newest: int) -> Iterator[str]:
    """Yield what there is to say of a series: since when it is zero, or below a part of its highest level."""
    if series.kind == "gradient":
        yield from _falls(series)
    if series.bad is not None:
        yield f"NaN or Inf {_times(series.bad)}"
    if series.zeros is not None and series.since(0.0) is None:
        yield f"zero {_times(series.zeros)}"
    if series.last < newest - 2 * series.width:
        yield f"none since iteration {series.last}"


def _falls(series: SeriesRecord) -> Iterator[str]:
    level = series.level
    zero = series.since(0.0)
    if level > 0 and series.since(level * _TOLD) is not None:
        crossed = {  # of several parts that are crossed in one bucket, the last is told
            bucket.first: f"{part:g} since {_since(series, bucket)}"
            for part in _FALLEN
            if (bucket := series.since(level * part)) is not None and bucket != zero
        }
        if crossed:
            yield f"part of its highest level: under {', '.join(crossed.values())}"
    if zero is not None:
        yield f"zero since iteration {_since(series, zero)}"


def faded_text(series: Sequence[SeriesRecord]) -> str:
    """Return one line about the gradients of a run that have all but died away; empty where none has.

    Examples
    --------
    >>> from gradscope.inspect.recording.file.run_series import RunSeries
    >>> series = RunSeries(run=1)
    >>> series.add("gradient", ["weight"] * 4, range(4), [1.0, 1.0, 1e-4, 1e-5])
    >>> faded_text(series.records())
    'gradients under 0.001 of their highest level: weight since iteration 2'
    """
    found = [
        (bucket.first, one.name, _since(one, bucket))
        for one in series
        if one.kind == "gradient" and (bucket := one.since(one.level * _FALLEN[-1])) is not None
    ]
    told = [f"{name} since iteration {when}" for _, name, when in sorted(found, key=lambda each: each[0])[:_NAMED]]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return f"gradients under {_FALLEN[-1]:g} of their highest level: {', '.join(told + more)}" if told else ""


def buckets_text(series: SeriesRecord) -> str:
    """Return a series with all of its buckets."""
    what = "the loss" if series.kind == "loss" else f"norm of the gradient of {series.name}"
    lines = [f"{what}, {series.samples} samples in iterations {series.first} to {series.last}"]
    lines += [f"  {remark}" for remark in remarks(series, series.last)]
    rows: list[tuple[str, ...]] = [("iterations", "samples", "mean", "least", "most", "")]
    for bucket in series.buckets:
        notes = [f"{bucket.bad} NaN or Inf"] if bucket.bad else []
        notes += [f"{bucket.zeros} zero"] if bucket.zeros else []
        values = (number(value) if value is not None else "-" for value in (bucket.mean, bucket.least, bucket.most))
        rows.append((_iterations(bucket), str(bucket.samples), *values, ", ".join(notes)))
    return "\n".join([*lines, table_text(rows)])


def _title(series: SeriesRecord) -> str:
    return "loss" if series.kind == "loss" else series.name


def _drawn(series: SeriesRecord) -> str:
    """Return a series in few cells, of all iterations."""
    last = series.buckets[-1].first // series.width if series.buckets else 0
    cells: list[list[float]] = [[] for _ in range(min(_CELLS, last + 1))]
    for bucket in series.buckets:
        cell = cells[bucket.first // series.width * len(cells) // (last + 1)]
        cell.append(math.nan if bucket.bad or bucket.mean is None else bucket.mean)
    means = [sum(cell) / len(cell) if cell else None for cell in cells]
    draw = linear_sparkline if series.kind == "loss" else sparkline
    drawn = iter(draw([mean for mean in means if mean is not None], _CELLS))
    return "".join(" " if mean is None else next(drawn) for mean in means)


def _times(counted: tuple[int, int, int]) -> str:
    count, first, last = counted
    if count == 1:
        return f"once, in iteration {first}"
    return f"{count} times, in iterations {first} to {last}"


def _since(series: SeriesRecord, bucket: Bucket) -> str:
    """Return the iterations in one of which began what holds from a bucket on."""
    first = max(bucket.first - series.width + 1, series.first)
    return str(first) if first >= bucket.first else f"{first}-{bucket.first}"


def _iterations(bucket: Bucket) -> str:
    return str(bucket.first) if bucket.first == bucket.last else f"{bucket.first}-{bucket.last}"
