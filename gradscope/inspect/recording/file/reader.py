"""Reading a recording: finished, cut off by a crash, or being written at this moment."""

from __future__ import annotations

import bisect
import os
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar, overload

import numpy

from ...debugging.stops.breakpoints import parse_spec
from ...output.terminal_text import one_line
from ...records.before_step.step_looks import HeldTensor
from ...records.records import InnerOperator, ModuleRecord, NodeRecord
from . import schema
from .array_blobs import unpack_array
from .compiled_calls import COMPILED, INSIDE, read_inside
from .node_pages import Page, decode_pages
from .record_decoder import RecordDecoder
from .recording_records import (
    AnomalyRecord,
    BackwardRecord,
    EventRecord,
    IterationRecord,
    RunRecord,
    ViolationRecord,
    from_row,
)
from .run_series import SERIES_COLUMNS, SeriesRecord, read_series
from .schema import HAPPENED, RecordingError
from .step_rows import STEP_COLUMNS, StepRecord, read_layout, read_step
from .untrusted_database import Database

__all__ = ["Recording", "TaskNodes", "open_recording"]

T = TypeVar("T")

_KEPT_PAGES = 64
# A long run of small backwards is read this many at a time, as long as their pages have few nodes.
_TASKS_AT_ONCE = 256
_PAGES_AT_ONCE = 32
_NODES_AT_ONCE = 2048
_STEPS_AT_ONCE = 64
_LONGEST = 200  # characters quoted of what SQLite or NumPy say of damage
_DAMAGE = (
    sqlite3.Error, ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError, RecursionError,
    MemoryError,
)  # fmt: skip


class Recording:
    """An open recording; close it, or use it in a ``with`` block. Threads may share it.

    Parameters
    ----------
    path : path-like
        A file that the recorder writes or has written; it is never written here.

    Raises
    ------
    RecordingError
        If the file is not there, is no recording, is damaged, or was written by a newer version; also from every
        method that meets damage later.

    See Also
    --------
    open_recording : opens one.
    record : writes one.

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> with gi.record(path):
    ...     gs.ones(3, requires_grad=True).exp().sum().backward()
    >>> with gi.open_recording(path) as recording:
    ...     [node.name for node in recording.tasks()[0].nodes]
    ['SumBackward0', 'ExpBackward0', 'AccumulateGrad']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        schema.check_file(self.path)
        self._lock = threading.RLock()
        self._pages: OrderedDict[int, Page] = OrderedDict()
        self._page_sizes: dict[int, int] = {}
        self._page_bytes = 0
        self._page_owners: dict[int, int] = {}
        with self._reading():
            self._database = Database(self.path)
        # A recording that the user does not close, in a notebook for instance, is closed when it is collected; but not
        # at the interpreter's end, when a thread may still be reading from SQLite's memory.
        weakref.finalize(self, self._database.close).atexit = False
        try:
            self.refresh()
        except RecordingError:
            self.close()
            raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what damaged bytes can cause into the one error that says so."""
        try:
            with self._lock:
                yield
        except _DAMAGE as error:
            raise RecordingError(
                f"{self.path} cannot be read: {one_line(str(error)):.{_LONGEST}}\n"
                "The file is damaged or was cut short; what other tools salvage from a SQLite file, they may from this."
            ) from error

    def _rows(self, sql: str, *parameters: Any) -> list[Any]:
        with self._reading():
            return self._database.rows(sql, *parameters)

    def _records(self, kind: type[T], rows: Iterable[Sequence[Any]]) -> list[T]:
        with self._reading():
            return [from_row(kind, row) for row in rows]

    # --- what there is ---

    def refresh(self) -> None:
        """Forget what was read before; a recording that is being written has grown."""
        with self._reading():
            self._decoder = RecordDecoder(self._database)
            self._numbers = dict(self._rows("SELECT id, number FROM iterations"))
            self._tasks = self._read_tasks()
            self._starts: dict[int, list[tuple[Any, Any, Any]]] = {}

    def _read_tasks(self) -> dict[int, BackwardRecord]:
        tasks = {}
        for *facts, count, bad, loss in self._rows(
            "SELECT id, run, iteration, number, parent, thread, started, ended, state, error, nodes, bad, loss"
            " FROM tasks ORDER BY id"
        ):
            nodes = TaskNodes(self, _whole(facts[0]), _whole(count))
            facts[2] = self._numbers.get(facts[2], -1)
            first_bad = bad if bad is None else min(_whole(bad), max(count - 1, 0))
            tasks[facts[0]] = from_row(BackwardRecord, (*facts, count, first_bad, _number(loss), nodes))
        return tasks

    @property
    def runs(self) -> list[RunRecord]:
        """The programs that were recorded, the oldest first."""
        return self._records(RunRecord, self._rows("SELECT * FROM runs ORDER BY id"))

    def iterations(self, run: int | None = None) -> list[IterationRecord]:
        """Return the iterations, of one run or of all."""
        rows = self._records(IterationRecord, self._rows("SELECT * FROM iterations ORDER BY id"))
        return [row for row in rows if run is None or row.run == run]

    def tasks(self, *, run: int | None = None, iteration: int | None = None) -> list[BackwardRecord]:
        """Return the backwards, of one run or iteration or of all."""
        return [
            t for t in self._tasks.values()
            if (run is None or t.run == run) and (iteration is None or t.iteration == iteration)
        ]  # fmt: skip

    def task(self, id: int) -> BackwardRecord:
        """Return one backward.

        Raises
        ------
        RecordingError
            If it is not there.
        """
        task = self._tasks.get(id)
        if task is None:
            raise RecordingError(f"{self.path} has no backward {id}; it has {len(self._tasks)}")
        return task

    def events(self) -> list[EventRecord]:
        """Return the events in the order in which they happened."""
        sql = "SELECT run, iteration, task, node, time, kind, text FROM events WHERE kind != ? ORDER BY id"
        rows = self._rows(sql, INSIDE)
        return self._records(EventRecord, [(run, self._numbers.get(i), *rest) for run, i, *rest in rows])

    def inside(self, task: int, node: int) -> tuple[InnerOperator, ...]:
        """Return what has run inside of a compiled node of a backward, where that was kept.

        That is the first time that it ran, and where a NaN or an infinity came out of it.
        """
        rows = self._rows("SELECT text FROM events WHERE kind = ? AND task = ? AND node = ?", INSIDE, task, node)
        with self._reading():
            return read_inside(rows[0][0]) if rows else ()

    def violations(self) -> list[ViolationRecord]:
        """Return the saved tensors that had been written when they were needed."""
        sql = (
            "SELECT run, iteration, task, node, time, operator, saved_name, saved_version, current_version, message"
            " FROM violations ORDER BY id"
        )
        rows = [(run, self._numbers.get(i), *rest) for run, i, *rest in self._rows(sql)]
        return self._records(ViolationRecord, rows)

    def series(self, run: int | None = None) -> list[SeriesRecord]:
        """Return how the loss, and the norm of each parameter's gradient, went over a whole run, or over all.

        They take the same room whatever the number of iterations, and stay when iterations are left out.

        Examples
        --------
        >>> import os, tempfile
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
        >>> layer = gs.nn.Linear(2, 1, bias=False)
        >>> with gi.record(path):
        ...     for scale in (1.0, 0.1, 0.01):
        ...         loss = (layer(gs.ones(1, 2)) * scale).sum()
        ...         loss.backward()
        >>> with gi.open_recording(path) as recording:
        ...     for series in recording.series():
        ...         print(series.kind, series.name, series.samples)
        loss  3
        gradient weight 3
        """
        rows = self._rows(f"SELECT {', '.join(SERIES_COLUMNS)} FROM series ORDER BY id")
        with self._reading():
            found = [read_series(row) for row in rows]
        return [series for series in found if run is None or series.run == run]

    def anomalies(self, run: int | None = None) -> list[AnomalyRecord]:
        """Return what went wrong, and how often, over a whole run, or over all: also in what has been left out."""
        there = (
            f"SELECT all_of.run, what, count(*), min(number), max(number) FROM ({HAPPENED}) AS all_of"
            " JOIN iterations ON iterations.id = iteration GROUP BY all_of.run, what"
        )
        found: dict[tuple[int, str], AnomalyRecord] = {}
        for sql in (there, "SELECT run, kind, count, first, last FROM left_out"):
            for record in self._records(AnomalyRecord, self._rows(sql)):
                before = found.get((record.run, record.kind), record)
                count = record.count if before is record else before.count + record.count
                first, last = min(before.first, record.first), max(before.last, record.last)
                found[record.run, record.kind] = AnomalyRecord(record.run, record.kind, count, first, last)
        return [record for record in found.values() if run is None or record.run == run]

    def modules(self, run: int) -> list[ModuleRecord]:
        """Return the modules that have run, and those that they are part of or hold, of a run.

        What a module of the program's own class says about itself is not recorded: it would run the program's code.

        Examples
        --------
        >>> import os, tempfile
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
        >>> model = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.ReLU())
        >>> with gi.record(path):
        ...     model(gs.ones(1, 3)).sum().backward()
        >>> with gi.open_recording(path) as recording:
        ...     [(module.path, module.kind) for module in recording.modules(recording.runs[0].id)]
        [('', 'Sequential'), ('0', 'Linear'), ('1', 'ReLU')]
        """
        rows = self._rows("SELECT path, kind, arguments FROM module_types WHERE run = ? ORDER BY id", run)
        return list({record.path: record for record in self._records(ModuleRecord, rows)}.values())

    def source_lines(self) -> dict[tuple[str, int], str]:
        """Return the user's lines that made nodes, by file and number."""
        rows = self._rows("SELECT filename, lineno, source FROM locations")
        with self._reading():
            return {(one_line(name), _whole(number)): one_line(text) for name, number, text in rows}

    def steps(self, run: int, *, after: int = 0) -> Iterator[StepRecord]:
        """Yield the steps of optimizers in a run of one of many ranks, in their order, read as they are asked for.

        Parameters
        ----------
        after : int
            Leave out those up to this id.
        """
        layouts = self._layouts()
        last = after
        columns = ", ".join(STEP_COLUMNS)
        while True:
            sql = f"SELECT {columns} FROM steps WHERE run = ? AND id > ? ORDER BY id LIMIT {_STEPS_AT_ONCE}"
            rows = self._rows(sql, run, last)
            if not rows:
                return
            last = rows[-1][0]
            with self._reading():
                found = [read_step(row, layouts, self._numbers) for row in rows]
            yield from found

    def _layouts(self) -> dict[int, tuple[HeldTensor, ...]]:
        rows = self._rows("SELECT id, tensors FROM layouts")
        with self._reading():
            return {number: read_layout(text) for number, text in rows}

    def find(self, spec: str, *, run: int | None = None, iteration: int | None = None) -> list[tuple[int, NodeRecord]]:
        """Return the nodes that a breakpoint's words name, each with the id of its task.

        Parameters
        ----------
        spec : str
            ``'param:*'``, ``'mod:layers.3.*'``, ``'op:Addmm'``, ``'node:12'``, ``'line:train.py:31'``.

        Raises
        ------
        BreakpointError
            If `spec` cannot be understood.
        """
        matches = parse_spec(spec)
        tasks = self.tasks(run=run, iteration=iteration)
        return [(task.id, node) for task in tasks for node in task.nodes if matches(node)]

    # --- values ---

    def value(self, task: int, index: int, which: str = "grad_outputs", nr: int = 0) -> numpy.ndarray | None:
        """Return the elements of a gradient.

        Parameters
        ----------
        task, index : int
            The backward and the node.
        which : str
            ``'grad_outputs'`` or ``'grad_inputs'``.

        Returns
        -------
        ndarray or None
            None where the policy did not keep them, or they went to make room.
        """
        if which not in ("grad_outputs", "grad_inputs"):
            raise ValueError(f"which is 'grad_outputs' or 'grad_inputs', got {which!r}")
        page, at = self.page_of(task, index)
        with self._reading():
            node = page.nodes[at]
            incoming, produced = max(int(node["incoming"]), 0), max(int(node["produced"]), 0)
            begin, count = (0, incoming) if which == "grad_outputs" else (incoming, produced)
            if not 0 <= nr < count:
                return None
            number = int(page.tensors[int(page.first_tensors()[at]) + begin + nr]["value"])
            rows = self._rows("SELECT data FROM tensor_values WHERE id = ?", number) if number >= 0 else []
            return unpack_array(rows[0][0]) if rows else None

    # --- pages ---

    def page_starts(self, task: int) -> list[tuple[int, int]]:
        """Return (index of the first node, number) of each page of a backward."""
        with self._reading():
            if task not in self._starts:
                self._starts = self._read_starts(task)
            starts, end = [], 0
            for number, first, count in self._starts[task]:
                if first != end or type(number) is not int or self._page_owners.setdefault(number, task) != task:
                    raise ValueError(f"the pages of backward {task} do not follow each other")
                starts.append((end, number))
                end += _whole(count)
            return starts

    def _read_starts(self, task: int) -> dict[int, list[tuple[Any, Any, Any]]]:
        """Return (number, index of the first node, count) of each page, by backward, of some from `task` on."""
        last = task + _TASKS_AT_ONCE - 1
        starts: dict[int, list[tuple[Any, Any, Any]]] = {number: [] for number in range(task, last + 1)}
        sql = "SELECT task, id, first, count FROM pages WHERE task BETWEEN ? AND ? ORDER BY task, first"
        for owner, *facts in self._rows(sql, task, last):
            starts[owner].append(tuple(facts))
        return starts

    def page(self, number: int) -> Page:
        """Return a page."""
        with self._reading():
            page = self._pages.get(number)
            if page is None:
                page = self._read_pages(number)
            self._pages.move_to_end(number)
            return page

    def _read_pages(self, number: int) -> Page:
        """Read a page, and where the one before it has been read, the small ones that follow: they are next."""
        last = self._last_of_run(number) if number - 1 in self._pages else number
        found = self._rows(
            "SELECT id, nodes, tensors, histograms, small, previews, checksum FROM pages WHERE id BETWEEN ? AND ?"
            " ORDER BY id",
            number,
            last,
        )
        if not found or found[0][0] != number:
            raise ValueError(f"page {number} is missing")
        numbers, blobs = [row[0] for row in found], [row[1:] for row in found]
        try:
            pages = decode_pages(blobs)
        except _DAMAGE:
            pages = decode_pages(blobs[:1])  # damage on another page is reported when that page is read
        for which, parts, page in zip(numbers, blobs, pages):
            self._count_bytes(which, parts)
            self._pages[which] = page
        while len(self._pages) > _KEPT_PAGES:
            self._pages.popitem(last=False)
        return self._pages[number]

    def _last_of_run(self, number: int) -> int:
        """Return the last of the small pages, known already, that follow a page."""
        counts = {which: count for starts in self._starts.values() for which, _, count in starts}
        last, nodes = number, 0
        for following in range(number + 1, number + _PAGES_AT_ONCE):
            count = counts.get(following)
            if not isinstance(count, int) or nodes + count > _NODES_AT_ONCE:
                break
            last, nodes = following, nodes + count
        return last

    def _count_bytes(self, number: int, row: Sequence[Any]) -> None:
        """Raise where the pages that have been read take more than the file: they lie over each other."""
        nbytes = sum(len(part) for part in row if isinstance(part, (bytes, str)))
        self._page_bytes += nbytes - self._page_sizes.get(number, 0)
        self._page_sizes[number] = nbytes
        if self._page_bytes > self._database.size:
            raise ValueError("its pages lie over each other")

    def page_of(self, task: int, index: int) -> tuple[Page, int]:
        """Return the page with a node of a backward, and where on it the node stands."""
        nodes = self.task(task).nodes
        if not 0 <= index < len(nodes):
            raise RecordingError(f"backward {task} has no node {index}; it has {len(nodes)}")
        return nodes.locate(index)

    def decode(self, page: Page, start: int, stop: int, first: int) -> list[NodeRecord]:
        """Return the records of nodes `start` to `stop` of a page whose first node has index `first`."""
        with self._reading():
            return self._decoder.records(page, start, stop, first)

    def static(self, numbers: Any) -> Any:
        """Return what does not change from iteration to iteration, for rows of the table `nodes`."""
        with self._reading():
            return self._decoder.nodes(numbers)

    # --- the end ---

    def close(self) -> None:
        """Close the file; doing so twice is harmless."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _repr_html_(self) -> str:
        # Pages load when a notebook asks for one.
        from ..reports.recording_html import recording_html

        return recording_html(self)

    def __repr__(self) -> str:
        return (
            f"<Recording {self.path}, {len(self._tasks)} backwards, {sum(t.count for t in self._tasks.values())} nodes>"
        )


class TaskNodes(Sequence[NodeRecord]):
    """The nodes of a backward in the order in which they ran, each read when it is asked for."""

    def __init__(self, recording: Recording, task: int, count: int) -> None:
        self._recording = recording
        self.task = task
        self._count = count
        self._starts: list[tuple[int, int]] | None = None

    def __len__(self) -> int:
        return self._count

    def pages(self) -> list[tuple[int, int]]:
        """Return (index of the first node, number) of each page."""
        if self._starts is None:
            self._starts = self._recording.page_starts(self.task)
        return self._starts

    def locate(self, index: int) -> tuple[Page, int]:
        """Return the page with a node, and where on it the node stands."""
        number, first = self._page_at(index)
        page = self._recording.page(number)
        if index - first >= len(page.nodes):
            raise RecordingError(f"{self._recording.path} is damaged: node {index} of backward {self.task} is missing")
        return page, index - first

    def _page_at(self, index: int) -> tuple[int, int]:
        starts = self.pages()
        at = bisect.bisect_right(starts, (index, 1 << 62)) - 1
        if at < 0:
            raise RecordingError(f"{self._recording.path} is damaged: node {index} of backward {self.task} is missing")
        return starts[at][1], starts[at][0]

    @overload
    def __getitem__(self, index: int) -> NodeRecord: ...

    @overload
    def __getitem__(self, index: slice) -> list[NodeRecord]: ...

    def __getitem__(self, index: int | slice) -> NodeRecord | list[NodeRecord]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return self._between(start, stop)
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(f"backward {self.task} has {self._count} nodes, there is no {index}")
        (found,) = self._between(at, at + 1)
        inside = self._recording.inside(self.task, at) if found.name.startswith(COMPILED) else ()
        return replace(found, inside=inside) if inside else found

    def _between(self, start: int, stop: int) -> list[NodeRecord]:
        found: list[NodeRecord] = []
        while start < stop:
            page, at = self.locate(start)
            end = min(len(page.nodes), at + stop - start)
            found += self._recording.decode(page, at, end, start - at)
            start += end - at
        return found

    def __iter__(self) -> Iterator[NodeRecord]:
        for start in range(0, self._count, 512):
            yield from self._between(start, min(start + 512, self._count))

    def __repr__(self) -> str:
        return f"<{self._count} nodes of backward {self.task}>"

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from ...records.record_html import first_nodes_html

        return first_nodes_html(self)


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a recording; also one that is being written, or that a crash has cut off.

    Parameters
    ----------
    path : path-like
        A file that the recorder writes or has written; it is never written here.

    Raises
    ------
    RecordingError
        If it is not there, is not a recording, is damaged, or was written by a newer version.

    See Also
    --------
    record : Make a recording.

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> gi.open_recording("nowhere.gscope")
    Traceback (most recent call last):
    ...
    gradscope.inspect.recording.file.schema.RecordingError: there is no recording nowhere.gscope
    Make one with `gradscope record SCRIPT -o nowhere.gscope`.
    """
    return Recording(path)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} stands where a number belongs")
    return value


def _number(value: Any) -> Any:
    """Return a number as it was recorded: SQLite has no NaN, which stands there as text."""
    return float("nan") if value == "nan" else value
