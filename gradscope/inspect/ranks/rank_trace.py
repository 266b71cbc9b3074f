"""A run of many ranks on one time line: trace-event JSON with a track for each rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..recording.reports.perfetto import trace_events, write_events
from .recorded_ranks import RecordedRanks

__all__ = ["rank_events", "write_rank_trace"]


def rank_events(ranks: RecordedRanks) -> Iterator[dict[str, Any]]:
    """Yield what the trace viewer shows: each rank as a process, in their order, with iterations, backwards and nodes.

    Yields
    ------
    dict
        Times are in microseconds since the first rank's run began, by the clocks of the machines.
    """
    first = min(member.run.started for member in ranks.members)
    for member in ranks.members:
        later = (member.run.started - first) / 1000
        yield {"ph": "M", "pid": member.rank, "name": "process_sort_index", "args": {"sort_index": member.rank}}
        for event in trace_events(member.recording):
            if event["pid"] == member.run.id:  # a recording may hold runs of earlier starts
                moved = {"ts": event["ts"] + later} if "ts" in event else {}
                yield {**event, "pid": member.rank, **moved}


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
