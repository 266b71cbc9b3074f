"""A run of many ranks as plain text: what each rank has done, and its iterations side by side."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..debugging.prompt.plain_text import number as number_text
from ..output.number_format import format_duration, format_shape
from ..output.terminal_text import one_line, table_text
from ..recording import BackwardRecord, IterationRecord, RecordingError
from ..recording.file.step_rows import StepRecord
from .agreement import whole_norm
from .rank_ends import error_without_advice
from .recorded_ranks import RankRecording, RecordedRanks

__all__ = ["iteration_text", "ranks_text"]

_MANY = 40


def ranks_text(ranks: RecordedRanks, *, limit: int = _MANY) -> str:
    """Return what a run of many ranks holds: a line for each rank, and one for each iteration.

    Parameters
    ----------
    limit : int
        How many iterations at most, the first and the last of them; 0 for all.
    """
    first = ranks.members[0].run
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(min(m.run.started for m in ranks.members) / 1e9))
    restart = f"  restart {first.restart}" if first.restart else ""
    lines = [f"{one_line(ranks.path)}: {first.title}, {len(ranks.members)} of {ranks.world} ranks  {began}{restart}"]
    lines += [f"  {one_line(note)}" for note in ranks.notes]
    rows: list[tuple[str, ...]] = [("rank", "process", "state", "iterations", "backwards", "nodes", "")]
    rows += [_rank_row(member) for member in ranks.members]
    return "\n".join([*lines, table_text(rows), _iterations(ranks, limit)])


def iteration_text(ranks: RecordedRanks, number: int) -> str:
    """Return the gradients of an iteration by parameter: the norm after the reduction, and each rank's before it.

    The reduced gradient is the whole one, also where ranks hold parts of it.

    Raises
    ------
    RecordingError
        If no rank has the iteration.
    """
    steps = {m.rank: [s for s in m.recording.steps(m.run.id) if s.iteration == number] for m in ranks.members}
    local = {member.rank: _local_norms(member, number) for member in ranks.members}
    if not any(steps.values()) and not any(local.values()):
        raise RecordingError(f"{ranks.path} has no iteration {number}")
    reduced, shapes = _reduced_norms([of_rank[-1] for of_rank in steps.values() if of_rank])
    head = f"iteration {number}" + next((f", before step {s[-1].look.number}" for s in steps.values() if s), "")
    names = list(dict.fromkeys([*reduced, *(name for norms in local.values() for name in norms)]))
    rows: list[tuple[str, ...]] = [("parameter", "shape", "reduced", *(f"rank {rank}" for rank in local))]
    for name in names:
        shape = format_shape(shapes[name]) if name in shapes else ""
        rows.append((name, shape, _norm(reduced.get(name)), *(_norm(norms.get(name)) for norms in local.values())))
    return "\n".join([head, table_text(rows)])


def _local_norms(member: RankRecording, iteration: int) -> dict[str, float | None]:
    """Return the norms of what the last backward that reached each parameter brought it."""
    return {
        node.parameter: node.norm
        for task in member.recording.tasks(run=member.run.id, iteration=iteration)
        for node in task.nodes
        if node.parameter
    }


def _reduced_norms(steps: Sequence[StepRecord]) -> tuple[dict[str, float], dict[str, tuple[int, ...]]]:
    parts: dict[str, dict[str, float]] = defaultdict(dict)
    shapes: dict[str, tuple[int, ...]] = {}
    for step in steps:
        for held, norm, present in zip(step.look.tensors, step.look.norms.tolist(), step.look.present.tolist()):
            if present:
                parts[held.name].setdefault(held.part, norm)
                shapes[held.name] = held.shape
    return {name: whole_norm(list(norms.values())) for name, norms in parts.items()}, shapes


def _norm(norm: float | None) -> str:
    return "-" if norm is None else number_text(norm)


def _rank_row(member: RankRecording) -> tuple[str, ...]:
    run, tasks = member.run, member.tasks()
    state = "killed" if run.state == "running" and not member.running else run.state
    counts = len({task.iteration for task in tasks}), len(tasks), sum(task.count for task in tasks)
    told = "; ".join([*_alarms(tasks), *filter(None, [member.stopped])])
    return (str(member.rank), f"{run.pid} on {run.host}", state, *map(str, counts), told)


def _alarms(tasks: list[BackwardRecord]) -> Iterator[str]:
    bad = next((task for task in tasks if task.bad is not None), None)
    if bad is not None:
        yield f"NaN or Inf from iteration {bad.iteration}"
    failed = next((task for task in tasks if task.state == "failed"), None)
    if failed is not None:
        yield f"failed in iteration {failed.iteration}: {error_without_advice(failed.error or 'no message')}"


def _iterations(ranks: RecordedRanks, limit: int) -> str:
    found: dict[int, dict[int, IterationRecord]] = defaultdict(dict)
    for member in ranks.members:
        for iteration in member.recording.iterations(member.run.id):
            found[iteration.number][member.rank] = iteration
    numbers = sorted(found)
    shown = numbers
    if limit and len(numbers) > limit:
        shown = [*numbers[: limit // 2], *numbers[len(numbers) - (limit - limit // 2) :]]
    rows: list[tuple[str, ...]] = [("iteration", "ranks", "shortest", "longest", "")]
    rows += [_iteration_row(number, found[number], len(ranks.members)) for number in shown]
    lines = table_text(rows).split("\n")
    if len(shown) < len(numbers):
        lines.insert(1 + limit // 2, f"... {len(numbers) - len(shown)} more; --limit 0 shows all")
    return "\n".join(lines)


def _iteration_row(number: int, by_rank: dict[int, IterationRecord], count: int) -> tuple[str, ...]:
    lasted = {rank: i.ended - i.started for rank, i in by_rank.items() if i.ended is not None}
    if not lasted:
        return str(number), str(len(by_rank)), "-", "-", ""
    slowest = max(lasted, key=lasted.__getitem__)
    shortest, longest = format_duration(min(lasted.values())), format_duration(lasted[slowest])
    told = f"rank {slowest}" if count > 1 else ""
    return str(number), str(len(by_rank)), shortest, longest, told
