"""A recording on a time line: trace-event JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

from ...output.terminal_text import json_text
from ..file.reader import Recording
from ..file.recording_columns import columns
from ..file.recording_records import BackwardRecord
from ..file.schema import for_its_owner

__all__ = ["trace_events", "write_events", "write_trace"]


def trace_events(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield what the trace viewer shows: runs as processes, threads, and on them iterations, backwards and nodes.

    Yields
    ------
    dict
        Times are in microseconds since the run began.
    """
    threads: dict[tuple[int, str], int] = {}
    for run in recording.runs:
        yield {"ph": "M", "pid": run.id, "name": "process_name", "args": {"name": f"{run.name} ({run.pid})"}}
    for iteration in recording.iterations():
        if iteration.ended is not None:
            name = iteration.label or f"iteration {iteration.number}"
            yield _span(iteration.run, 0, name, iteration.started, iteration.ended, {})
    for task in recording.tasks():
        thread = threads.get((task.run, task.thread))
        if thread is None:
            thread = threads[task.run, task.thread] = len(threads) + 1
            yield {"ph": "M", "pid": task.run, "tid": thread, "name": "thread_name", "args": {"name": task.thread}}
        yield from _task_events(recording, task, thread)
    for event in recording.events():
        facts = {"ph": "i", "pid": event.run, "tid": 0, "s": "p", "ts": event.time / 1000}
        yield {**facts, "name": f"{event.kind}: {event.text}"}
    for violation in recording.violations():
        facts = {"ph": "i", "pid": violation.run, "tid": 0, "s": "p", "ts": violation.time / 1000}
        yield {**facts, "name": f"violation: {violation.operator} needs {violation.saved_name}"}


def _task_events(recording: Recording, task: BackwardRecord, thread: int) -> Iterator[dict[str, Any]]:
    data = columns(recording, [task])
    last = int((data.started + data.duration).max()) if len(data) else task.started
    ended = task.ended if task.ended is not None else last
    told = {"iteration": task.iteration, "state": task.state, "nodes": task.count}
    yield _span(task.run, thread, f"backward {task.number}", task.started, ended, told)
    rows = zip(
        data.index.tolist(), data.node.tolist(), data.started.tolist(), data.duration.tolist(),
        data.incoming["norm"].tolist(),
    )  # fmt: skip
    for index, number, started, duration, norm in rows:
        node = data.static[number]
        facts: dict[str, Any] = {"index": index}
        if node.module:
            facts["module"] = node.module
        if node.parameter:
            facts["parameter"] = node.parameter
        if node.location is not None:
            facts["line"] = f"{node.location}  {node.location.source}".rstrip()
        # JSON knows neither NaN nor infinity.
        facts["norm"] = norm if math.isfinite(norm) else str(norm)
        yield _span(task.run, thread, node.name, started, started + duration, facts)


def _span(process: int, thread: int, name: str, started: int, ended: int, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "pid": process, "tid": thread, "name": name,
        "ts": started / 1000, "dur": max(ended - started, 0) / 1000, "args": facts,
    }  # fmt: skip


def write_trace(recording: Recording, path: str | os.PathLike[str]) -> int:
    """Write a recording as trace-event JSON; return how many events.

    Parameters
    ----------
    path : path-like
        The file to write; one that is there is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return write_events(trace_events(recording), path)


def write_events(events: Iterable[dict[str, Any]], path: str | os.PathLike[str]) -> int:
    """Write events to a file that the trace viewer opens; return how many.

    Parameters
    ----------
    events : iterable of dict
        As :func:`trace_events` yields them.
    path : path-like
        The file to write; one that is there is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    count = 0
    with open(path, "w", encoding="utf-8", opener=for_its_owner) as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        for event in events:
            file.write((",\n" if count else "") + json_text(event))
            count += 1
        file.write("\n]}\n")
    return count
