"""A run of many ranks on one time line: trace-event JSON with a track for each rank.

The clocks of machines may be apart. Ranks that reduce their gradients wait for each other before each step, so what is
between their times at the same steps is that, and how it grows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from ..recording.file.step_rows import StepRecord
from ..recording.reports.perfetto import trace_events, write_events
from ..records.before_step.step_looks import REDUCED
from .recorded_ranks import RankRecording, RecordedRanks

__all__ = ["rank_events", "write_rank_trace"]

_APART = 100_000_000
"""Nanoseconds by which clocks are apart at least, and not the ranks late."""

_SCATTER = 10
"""How many times as far apart as those times scatter."""


class _Clock(NamedTuple):
    """How a rank's times are told by the first rank's clock: in nanoseconds since that one's run began.

    Attributes
    ----------
    ahead : int
        By how much its clock is before the first rank's; 0 where they go alike.
    """

    offset: float
    rate: float = 1.0
    ahead: int = 0


def rank_events(ranks: RecordedRanks) -> Iterator[dict[str, Any]]:
    """Yield what the trace viewer shows: each rank as a process, in their order, with iterations, backwards and nodes.

    Yields
    ------
    dict
        Times are in microseconds since the first rank's run began, by the clocks of the machines, or where those are
        apart by that of the lowest rank.
    """
    lowest = ranks.members[0]
    clocks = {member.rank: _clock_of(member, lowest) for member in ranks.members}
    first = min(clock.offset for clock in clocks.values()) / 1000
    for member in ranks.members:
        offset, rate, ahead = clocks[member.rank]
        yield {"ph": "M", "pid": member.rank, "name": "process_sort_index", "args": {"sort_index": member.rank}}
        if ahead:
            told = f"its clock is {abs(ahead) / 1e9:,.1f} s {'ahead' if ahead > 0 else 'behind'}"
            yield {"ph": "M", "pid": member.rank, "name": "process_labels", "args": {"labels": told}}
        for event in trace_events(member.recording):
            if event["pid"] == member.run.id:  # a recording may hold runs of earlier starts
                moved = {"ts": event["ts"] * rate + offset / 1000 - first} if "ts" in event else {}
                moved |= {"dur": event["dur"] * rate} if "dur" in event else {}
                yield {**event, "pid": member.rank, **moved}


def _clock_of(member: RankRecording, lowest: RankRecording) -> _Clock:
    """Return how a rank's clock stands to the lowest rank's."""
    by_clocks = _Clock(member.run.started - lowest.run.started)
    if member is lowest:
        return by_clocks
    ours, theirs = _waited_steps(lowest), _waited_steps(member)
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) < 2:
        return by_clocks
    here = numpy.array([ours[step] for step in shared], numpy.float64)
    there = numpy.array([theirs[step] for step in shared], numpy.float64)
    rate, offset = numpy.polyfit(there, here, 1)
    ahead = by_clocks.offset + float(numpy.median(there - here))
    scatter = float(numpy.median(numpy.abs(here - (rate * there + offset))))
    if rate <= 0 or abs(ahead) < max(_APART, _SCATTER * scatter):
        return by_clocks
    return _Clock(float(offset), float(rate), round(ahead))


def _waited_steps(member: RankRecording) -> dict[tuple[int, int], int]:
    """Return when a rank took its steps for which it had waited for others, by their optimizers and numbers."""
    steps = member.recording.steps(member.run.id)
    return {(step.look.optimizer, step.look.number): step.time for step in steps if _is_waited_for(step)}


def _is_waited_for(step: StepRecord) -> bool:
    """Whether something reduces gradients before a step: DistributedDataParallel, or what spreads parameters."""
    return any(held.kind == REDUCED or held.part for held in step.look.tensors)


def write_rank_trace(ranks: RecordedRanks, path: str | os.PathLike[str]) -> int:
    """Write a run of many ranks as trace-event JSON; return how many events.

    Parameters
    ----------
    path : path-like
        The file to write; one that is there is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return write_events(rank_events(ranks), path)
