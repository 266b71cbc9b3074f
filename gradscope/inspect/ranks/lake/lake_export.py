"""From recordings to a Parquet dataset: what is new is added, also while the program runs.

A file is written beside its place under a name that readers pass over (Spark and Arrow, which read all of a directory,
leave out what begins with an underscore), and then renamed: whoever reads the dataset sees it whole, or not at all.
Which backwards it holds is in its name, and so the next export knows what is not there: what is new, and what somebody
has deleted.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any

import numpy

from ...output.terminal_text import one_line
from ...recording import BackwardRecord, RecordingError
from ...recording.file.recording_columns import columns
from ...recording.file.step_rows import StepRecord
from ...recording.reports.parquet import encoded_texts, load_arrow, node_table
from ..recorded_ranks import RankRecording, RecordedRanks, open_ranks
from .lake_schema import BLOCK, MARKER, TABLES, VERSION, check_lake

__all__ = ["Exported", "export_run", "follow_run", "write_rows"]

_ROWS = 1 << 20  # rows of a file, roughly
_HELD_BACK = 2  # newest iterations of a program that runs, to which backwards may still be moved
_PAUSE = 1.0  # seconds between looks at a program that runs


@dataclass(slots=True)
class Exported:
    """What an export has added.

    Attributes
    ----------
    run : str
        What the run is called in the dataset.
    nodes, steps : int
        Rows.
    running : bool
        Whether some of the ranks go on.
    """

    run: str
    nodes: int = 0
    steps: int = 0
    running: bool = False


def export_run(paths: Sequence[str], lake: str, *, name: str = "") -> Exported:
    """Add what is new in the recordings of a run to a dataset.

    Parameters
    ----------
    paths : sequence of str
        A directory with the recordings of all ranks, or recordings.
    lake : str
        The directory of the dataset, which is made where it is not there.
    name : str
        What to call the run there; by default what the directory or the recording is called.

    Raises
    ------
    RecordingError
        If the recordings cannot be read, the directory is something else, it has another run of that name, or pyarrow
        is not installed.
    OSError
        If it cannot be written; what is there stays as it is.
    """
    load_arrow()
    with open_ranks(*paths) as ranks:
        done = Exported(_run_name(name or _called(ranks)))
        _make(lake)
        for member in ranks.members:
            place = os.path.join(f"run={done.run}", f"rank={member.rank}")
            _write_run(member, os.path.join(lake, "runs", place), done.run)
            done.nodes += _export_nodes(member, os.path.join(lake, "nodes", place))
            done.steps += _export_steps(member, os.path.join(lake, "steps", place))
            _write_series(member, os.path.join(lake, "series", place))
            done.running = done.running or member.running
    return done


def follow_run(paths: Sequence[str], lake: str, *, name: str = "") -> Iterator[Exported]:
    """Add what is new, again and again, until the program has ended.

    Yields
    ------
    Exported
        What each look has added; the last says that nothing runs any more.
    """
    while True:
        done = export_run(paths, lake, name=name)
        yield done
        if not done.running:
            return
        time.sleep(_PAUSE)


def _called(ranks: RecordedRanks) -> str:
    path = ranks.path if os.path.isdir(ranks.path) else ranks.members[0].recording.path
    name = os.path.basename(os.path.normpath(os.path.abspath(path))).removesuffix(".gscope")
    restart = ranks.members[0].run.restart
    return f"{name}-restart{restart}" if restart else name


def _run_name(name: str) -> str:
    """Return a name as a directory may be called everywhere."""
    return re.sub(r"[^\w.+-]", "_", one_line(name), flags=re.ASCII).lstrip(".") or "run"


def _make(lake: str) -> None:
    if os.path.isdir(lake) and os.listdir(lake):
        check_lake(lake)
        return
    os.makedirs(lake, exist_ok=True)
    with open(os.path.join(lake, MARKER), "w", encoding="utf-8") as file:
        json.dump({"version": VERSION, "tables": {name: [c.name for c in cs] for name, cs in TABLES.items()}}, file)


# --- runs ---


def _write_run(member: RankRecording, folder: str, name: str) -> None:
    arrow, run = load_arrow(), member.run
    path = os.path.join(folder, "run.parquet")
    if os.path.exists(path):
        import pyarrow.parquet  # load_arrow() has loaded it

        (started,) = pyarrow.parquet.read_table(path, columns=["started_ns"]).column(0).to_pylist()
        if started != run.started:
            raise RecordingError(
                f"the dataset has another run called {name!r}, with another start of rank {member.rank}\n"
                "Give this one a name of its own with --name."
            )
    facts = {
        "title": run.title, "framework": run.framework, "host": run.host, "pid": run.pid, "world": run.world,
        "restart": run.restart, "started_ns": run.started, "ended_ns": run.ended, "state": run.state,
    }  # fmt: skip
    kinds = {column.name: column.type for column in TABLES["runs"]}
    write_rows(arrow.table({key: arrow.array([value], kinds[key]) for key, value in facts.items()}), path)


def _write_series(member: RankRecording, folder: str) -> None:
    """Write the series of a rank anew: they take the same room however long it has run."""
    arrow = load_arrow()
    series = member.recording.series(member.run.id)
    if not series:
        return
    buckets = [bucket for one in series for bucket in one.buckets]
    owners = numpy.repeat(numpy.arange(len(series)), [len(one.buckets) for one in series])
    named: dict[str, Any] = {
        "kind": encoded_texts([one.kind for one in series], owners),
        "name": encoded_texts([one.name for one in series], owners),
        "first_iteration": arrow.array([bucket.first for bucket in buckets], "int64"),
        "last_iteration": arrow.array([bucket.last for bucket in buckets], "int64"),
    }
    for name in ("samples", "bad", "zeros"):
        named[name] = arrow.array([getattr(bucket, name) for bucket in buckets], "int64")
    for name in ("mean", "least", "most"):
        named[name] = arrow.array([getattr(bucket, name) for bucket in buckets], "double")
    write_rows(arrow.table(named), os.path.join(folder, "series.parquet"))


# --- nodes ---


def _export_nodes(member: RankRecording, folder: str) -> int:
    """Write the backwards that are not there; return how many nodes they have."""
    rows = 0
    complete = _complete(member)
    for first, last in _missing(folder, "tasks"):
        for block, tasks in _batches([task for task in complete if first <= task.id <= last]):
            data = columns(member.recording, tasks)
            name = f"tasks-{tasks[0].id:012}-{tasks[-1].id:012}.parquet"
            write_rows(node_table(data), os.path.join(folder, f"from_iteration={block}", name))
            rows += len(data)
    return rows


def _complete(member: RankRecording) -> list[BackwardRecord]:
    """Return the backwards of which nothing will change any more."""
    found = member.tasks()
    if not member.running:
        return found
    newest = max((task.iteration for task in found), default=0)
    return list(takewhile(lambda task: task.iteration <= newest - _HELD_BACK and task.state != "running", found))


def _batches(tasks: Sequence[BackwardRecord]) -> Iterator[tuple[int, list[BackwardRecord]]]:
    """Yield backwards of one block of iterations each, not too many nodes at once."""
    for block, of_block in groupby(tasks, key=lambda task: task.iteration // BLOCK * BLOCK):
        batch: list[BackwardRecord] = []
        rows = 0
        for task in of_block:
            batch.append(task)
            rows += task.count
            if rows >= _ROWS:
                yield block, batch
                batch, rows = [], 0
        if batch:
            yield block, batch


def _missing(folder: str, what: str) -> Iterator[tuple[int, int]]:
    """Yield from where to where the numbers of backwards or steps go that no file of a rank has; the last is open."""
    pattern = re.compile(rf"{what}-(\d+)-(\d+)\.parquet")
    names = [name for _, _, files in os.walk(folder) for name in files]
    held = sorted((int(found[1]), int(found[2])) for name in names if (found := pattern.fullmatch(name)))
    first = 1
    for begin, end in held:
        if begin > first:
            yield first, begin - 1
        first = max(first, end + 1)
    yield first, sys.maxsize


# --- steps ---


def _export_steps(member: RankRecording, folder: str) -> int:
    """Write the steps that are not there; return how many tensors they have."""
    rows = 0
    for first, last in _missing(folder, "steps"):
        rows += _export_some_steps(member.recording.steps(member.run.id, after=first - 1), last, folder)
    return rows


def _export_some_steps(steps: Iterable[StepRecord], last: int, folder: str) -> int:
    rows = waiting = 0
    batch: list[StepRecord] = []
    for step in takewhile(lambda step: step.id <= last, steps):
        if batch and (_block(step) != _block(batch[0]) or waiting >= _ROWS):
            rows += _write_steps(batch, folder)
            batch, waiting = [], 0
        batch.append(step)
        waiting += len(step.look.tensors)
    return rows + (_write_steps(batch, folder) if batch else 0)


def _block(step: StepRecord) -> int:
    return (step.iteration or 0) // BLOCK * BLOCK


def _write_steps(steps: Sequence[StepRecord], folder: str) -> int:
    arrow = load_arrow()
    looks = [step.look for step in steps]
    counts = [len(look.tensors) for look in looks]
    held = [tensor for look in looks for tensor in look.tensors]
    rows = numpy.arange(len(held))

    def repeated(values: list[Any]) -> Any:
        return arrow.array(values, "int64").take(arrow.array(numpy.repeat(numpy.arange(len(values)), counts)))

    table = arrow.table({
        "iteration": repeated([step.iteration for step in steps]),
        "step": repeated([look.number for look in looks]),
        "optimizer": repeated([look.optimizer for look in looks]),
        "time_ns": repeated([step.time for step in steps]),
        "name": encoded_texts([tensor.name for tensor in held], rows),
        "part": encoded_texts([tensor.part for tensor in held], rows),
        "kind": encoded_texts([tensor.kind for tensor in held], rows),
        "present": numpy.concatenate([look.present for look in looks]),
        "norm": numpy.concatenate([look.norms for look in looks]),
        "gradient": numpy.concatenate([look.gradients for look in looks]),
        "value": numpy.concatenate([look.values for look in looks]),
    })  # fmt: skip
    name = f"steps-{steps[0].id:012}-{steps[-1].id:012}.parquet"
    write_rows(table, os.path.join(folder, f"from_iteration={_block(steps[0])}", name))
    return len(held)


def write_rows(table: Any, path: str) -> None:
    """Write an Arrow table to a file that is there whole or not at all.

    Norms and checksums hardly ever repeat: a dictionary of them costs as much again as to write them, and a tenth to a
    fourth of the time in which they are read.
    """
    import pyarrow.parquet  # load_arrow() has loaded it

    os.makedirs(os.path.dirname(path), exist_ok=True)
    folder, name = os.path.split(path)
    half = os.path.join(folder, f"_{name}.half-{os.getpid()}")
    try:
        metadata = {**(table.schema.metadata or {}), b"gradscope.lake": str(VERSION).encode()}
        repeating = [field.name for field in table.schema if str(field.type) not in ("double", "uint64")]
        pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), half, use_dictionary=repeating)
        os.replace(half, path)
    except BaseException:
        if os.path.exists(half):
            os.remove(half)
        raise
