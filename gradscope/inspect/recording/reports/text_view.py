"""A recording as plain text: what ``gradscope view`` prints."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...debugging.prompt.plain_text import list_text, node_text
from ...output.number_format import format_duration
from ...output.terminal_text import table_text
from ...records.records import NodeRecord
from ..file.recording_records import INCOMPLETE, BackwardRecord
from .series_view import faded_text

if TYPE_CHECKING:
    from ..file.reader import Recording

__all__ = [
    "ITERATION_COLUMNS",
    "events_text",
    "iteration_rows",
    "iterations_text",
    "node_page",
    "nodes_text",
    "overview_text",
    "tasks_text",
    "violations_text",
]

ITERATION_COLUMNS = ("iteration", "loss", "backwards", "nodes", "time", "")

_MANY = 40


def overview_text(recording: Recording) -> str:
    """Return what a recording holds, in a few lines."""
    lines = []
    tasks: dict[int, list[BackwardRecord]] = defaultdict(list)
    for task in recording.tasks():
        tasks[task.run].append(task)
    incomplete = [event for event in recording.events() if event.kind in INCOMPLETE]
    for run in recording.runs:
        own = tasks[run.id]
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started / 1e9))
        lasted = f", {format_duration(run.ended - run.started)}" if run.ended is not None else ""
        state = run.state if run.state != "running" else "running, or killed"
        lines.append(f"run {run.id}: {run.name}  {began}{lasted}  {state}  keep={run.keep}")
        lines.append(
            f"  {_count(len({t.iteration for t in own}), 'iteration')}, {_count(len(own), 'backward')}, "
            f"{_count(sum(t.count for t in own), 'node')}"
        )
        lines += [f"  {event.text}" for event in incomplete if event.run == run.id]
        lines += _alarms(own)
        lines += _over_the_run(recording, run.id)
    violations = recording.violations()
    if violations:
        lines.append(f"  {_count(len(violations), 'violation')}: saved tensors that had been modified")
    return "\n".join(lines or ["the recording is empty"])


def _over_the_run(recording: Recording, run: int) -> Iterator[str]:
    """Yield what can be said of a run though iterations of it have been left out."""
    faded = faded_text(recording.series(run))
    if faded:
        yield f"  {faded}"
    there = {"bad": "with NaN or Inf", "failed": "failed", "violation": "with a violation"}
    for record in recording.anomalies(run):
        if record.kind in there and record.last > record.first:
            what = f"{_count(record.count, 'backward')} {there[record.kind]}"
            yield f"  {what} in all, in iterations {record.first} to {record.last}"


def _alarms(tasks: Sequence[BackwardRecord]) -> Iterator[str]:
    bad = next((task for task in tasks if task.bad is not None), None)
    if bad is not None and bad.bad is not None:
        node = bad.nodes[bad.bad]
        yield f"  first NaN or Inf: iteration {bad.iteration}, backward {bad.id}, node {node.index} {_title(node)}"
    failed = [task for task in tasks if task.state == "failed"]
    if failed:
        task = failed[0]
        yield f"  {_count(len(failed), 'backward')} failed, the first in iteration {task.iteration}: {task.error}"


def _title(node: NodeRecord) -> str:
    owner = node.parameter or node.module
    return node.name + (f"  {owner}" if owner else "")


def iterations_text(recording: Recording, *, run: int | None = None) -> str:
    """Return the iterations as a table."""
    return table_text([ITERATION_COLUMNS, *iteration_rows(recording, run=run)])


def iteration_rows(recording: Recording, *, run: int | None = None) -> list[tuple[str, ...]]:
    """Return the iterations, a row of text for each, under :data:`ITERATION_COLUMNS`."""
    tasks: dict[tuple[int, int], list[BackwardRecord]] = defaultdict(list)
    for task in recording.tasks(run=run):
        tasks[task.run, task.iteration].append(task)
    rows: list[tuple[str, ...]] = []
    for iteration in recording.iterations(run):
        own = tasks[iteration.run, iteration.number]
        lasted = format_duration(iteration.ended - iteration.started) if iteration.ended is not None else "-"
        notes = [iteration.label] if iteration.label else []
        notes += ["failed"] if any(task.state == "failed" for task in own) else []
        notes += ["NaN or Inf"] if any(task.bad is not None for task in own) else []
        count = sum(task.count for task in own)
        losses = [task.loss for task in own if task.loss is not None]
        rows.append(
            (
                str(iteration.number),
                _loss_text(losses[-1] if losses else None),
                str(len(own)),
                str(count),
                lasted,
                ", ".join(notes),
            )
        )
    return rows


def _loss_text(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.6g}"


def tasks_text(tasks: Sequence[BackwardRecord]) -> str:
    """Return backwards as a table."""
    rows = [("backward", "iteration", "loss", "nodes", "time", "thread", "state")]
    for task in tasks:
        lasted = format_duration(task.ended - task.started) if task.ended is not None else "-"
        state = task.state + (f": {task.error}" if task.error else "")
        state += f"; NaN or Inf from node {task.bad}" if task.bad is not None else ""
        state += f"; inside backward {task.parent}" if task.parent is not None else ""
        rows.append(
            (str(task.id), str(task.iteration), _loss_text(task.loss), str(task.count), lasted, task.thread, state)
        )
    return table_text(rows)


def nodes_text(tasks: Sequence[BackwardRecord], nodes: Iterable[tuple[int, NodeRecord]], *, limit: int = _MANY) -> str:
    """Return nodes as a table, backward by backward.

    Parameters
    ----------
    tasks : sequence of BackwardRecord
        The backwards to say where nodes are.
    nodes : iterable of (int, NodeRecord)
        Nodes, each with the id of its backward, in their order.
    limit : int
        How many at most; 0 for all.
    """
    by_task: dict[int, list[NodeRecord]] = {}
    more = False
    for shown, (task, node) in enumerate(nodes):
        if limit and shown == limit:
            more = True
            break
        by_task.setdefault(task, []).append(node)
    facts = {task.id: task for task in tasks}
    lines = []
    for task, group in by_task.items():
        lines.append(f"iteration {facts[task].iteration}, backward {task}, {_count(facts[task].count, 'node')}")
        lines.append(list_text(group))
    if more:
        lines.append(f"... the first {limit}; --limit 0 shows all")
    return "\n".join(lines or ["no such node"])


def node_page(task: BackwardRecord, index: int) -> str:
    """Return all that is known of a node."""
    node = task.nodes[index]
    head = f"iteration {task.iteration}, backward {task.id}"
    return f"{head}\n{node_text(node, _Neighbours(task, node))}"


class _Neighbours(Sequence[NodeRecord]):
    """The nodes that receive a node's gradients: all that its text names, of a backward that may have many."""

    def __init__(self, task: BackwardRecord, node: NodeRecord) -> None:
        keys = {edge.target_key for edge in node.edges if edge.target_key is not None}
        self._found: list[NodeRecord] = []
        self._count = task.count
        # A receiver runs later than its sender, and most often soon.
        for start in range(node.index, task.count, 256):
            if not keys:
                break
            for other in task.nodes[start : start + 256]:
                if other.key in keys:
                    keys.discard(other.key)
                    self._found.append(other)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[NodeRecord]:
        return iter(self._found)

    def __getitem__(self, index: int) -> NodeRecord:  # type: ignore[override]
        return self._found[index]


def violations_text(recording: Recording) -> str:
    """Return the saved tensors that had been modified."""
    lines = []
    for violation in recording.violations():
        where = f"iteration {violation.iteration}, backward {violation.task}, node {violation.node}"
        versions = f"saved at version {violation.saved_version}, at {violation.current_version} when it was needed"
        lines.append(f"{where}: {violation.operator} needs `{violation.saved_name}`: {versions}")
        lines += [f"  {line}" for line in violation.message.splitlines()]
    return "\n".join(lines or ["no violation"])


def events_text(recording: Recording) -> str:
    """Return marks and errors in the order in which they happened."""
    rows = []
    for event in recording.events():
        place = "" if event.iteration is None else f"iteration {event.iteration}"
        place += f", backward {event.task}" if event.task is not None else ""
        place += f", node {event.node}" if event.node is not None else ""
        rows.append((format_duration(event.time), place, event.kind, event.text))
    return table_text(rows) if rows else "no event"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
