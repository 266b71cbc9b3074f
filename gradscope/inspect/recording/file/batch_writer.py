"""Batches of what happened, written into the file of a recording, each in one transaction.

SQLite lets go of the interpreter in every statement, and a program that computes in Python takes milliseconds to give
it back. So a batch is few statements of many rows, and rows that change (a backward's, while it runs) are kept here and
written as a whole.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy

from ..recorder.keep_policy import Policy
from .array_blobs import MOST_BYTES, pack_array
from .budget import Budget
from .node_descriptions import NodeDescriptions
from .node_pages import Batch, encode_page
from .recording_file import RecordingFile
from .run_series import SERIES_COLUMNS, RunSeries
from .series_samples import SeriesSamples

__all__ = ["BatchWriter", "IterationChange", "RowUpdate", "Statement"]

_PAGE = 2048  # nodes of one page
_LOG = 8 << 20  # bytes that only the write-ahead log may hold
_COMMIT = 1 << 16  # bytes that a commit writes besides its blobs, roughly
_ROW = 256  # bytes that a row takes besides its blobs, at most
_SERIES_ROOM = 64 << 20  # bytes that series may take without a budget; with one they get an eighth of it
_SERIES_PACE = 1 << 18  # bytes of series that are written per second
_SERIES_PAUSE = 60.0  # seconds after which series are written at the latest
_ITERATIONS = 1_000  # newest iterations whose numbers are kept: running backwards belong to those
_SERIES_RUNS = 8  # newest runs of a file that keep their series
_VARIABLES = 32_000 if sqlite3.sqlite_version_info >= (3, 32) else 999  # that one statement may have

_COLUMNS = {
    "iterations": ("id", "run", "number", "started", "ended", "label"),
    "tasks": (
        "id", "run", "iteration", "number", "parent", "thread", "started", "ended", "state", "error", "nodes", "bad",
        "loss",
    ),
    "pages": ("task", "first", "count", "nodes", "tensors", "histograms", "small", "previews", "checksum"),
    "tensor_values": ("id", "iteration", "nbytes", "data"),
    "series": SERIES_COLUMNS,
}  # fmt: skip


class RowUpdate:
    """New values in a row of `tasks` or `iterations`, which begins with the first of them."""

    __slots__ = ("facts", "id", "table")

    def __init__(self, table: str, id: int, **facts: Any) -> None:
        self.table = table
        self.id = id
        self.facts = facts


class IterationChange:
    """The backwards of a run from `first` to `last` belong to another iteration than it seemed."""

    __slots__ = ("first", "iteration", "last", "run")

    def __init__(self, first: int, last: int, run: int, iteration: int) -> None:
        self.first = first
        self.last = last
        self.run = run
        self.iteration = iteration


class Statement(NamedTuple):
    """A statement for SQLite, with its parameters."""

    sql: str
    parameters: Sequence[Any]


class BatchWriter:
    """Writes batches into a file, within the budget of a policy."""

    def __init__(self, file: RecordingFile, policy: Policy) -> None:
        self._file = file
        self._policy = policy
        self._rows: dict[str, dict[int, dict[str, Any]]] = {"iterations": {}, "tasks": {}}
        self._changed: dict[str, set[int]] = {"iterations": set(), "tasks": set()}
        self._descriptions = NodeDescriptions(lambda: file.connection)
        self._budget = Budget(file, policy, self._descriptions, self._running)
        self._log = _LOG if self._budget.most is None else min(_LOG, self._budget.most // 4)
        self._iteration_numbers: dict[int, int] = {}
        room = _SERIES_ROOM if self._budget.most is None else self._budget.most // 8
        series = RunSeries(file.last_row("runs") + 1, room=room, first_id=file.last_row("series") + 1)
        self._samples = SeriesSamples(series)
        self._series_due = time.monotonic()
        self._series_bytes = 0  # bytes of series in the file

    def _running(self) -> set[int]:
        """Return the iterations to which backwards may still be added."""
        return {*self._rows["iterations"], *(row["iteration"] for row in self._rows["tasks"].values())}

    def commit(self, batch: Sequence[Any]) -> int:
        """Write a batch; return how many nodes were in it."""
        connection = self._file.connection
        connection.execute("BEGIN")
        self._describe([item for item in batch if type(item) is list])
        nodes: dict[int, list[Batch]] = {}
        statements: list[Statement] = []
        losses: list[dict[str, Any]] = []
        for item in batch:
            if type(item) is Batch:
                nodes.setdefault(item.task, []).append(item)
            elif type(item) is RowUpdate:
                losses += self._update(item)
            elif type(item) is IterationChange:
                statements.append(self._move(item))
            elif type(item) is Statement:
                statements.append(item)
        self._note_losses(losses)
        self._write_nodes(nodes)
        for table in self._rows:
            self._write_changes(table)
        self._execute(statements)
        count = sum(map(len, chain.from_iterable(nodes.values())))
        self._budget.apply(count)
        self._samples.flush()
        self._forget_iterations()
        if time.monotonic() >= self._series_due:
            self._write_series()
        connection.execute("COMMIT")
        self._file.logged(_COMMIT)
        self._file.limit_log(self._log)
        return count

    def _describe(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows of the table `nodes`."""
        if rows:
            text = _storable(json.dumps(rows, ensure_ascii=False))
            self._budget.make_room(2 * len(text))
            self._descriptions.add(rows, text)
            self._samples.describe(rows)

    def _update(self, update: RowUpdate) -> list[dict[str, Any]]:
        """Change a row, which is written later; return it if its loss has become known."""
        row = self._rows[update.table].setdefault(update.id, {"id": update.id})
        row.update(update.facts)
        self._changed[update.table].add(update.id)
        if update.table == "iterations":
            self._know_iteration(row)
        return [row] if update.facts.get("loss") is not None else []

    def _execute(self, statements: Sequence[Statement]) -> None:
        blobs = (value for _, parameters in statements for value in parameters if isinstance(value, bytes))
        self._budget.make_room(sum(map(len, blobs)))
        for sql, parameters in statements:
            self._file.connection.execute(sql, [_storable(value) for value in parameters])

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        columns = _COLUMNS[table]
        most = _VARIABLES // len(columns)
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            marks = ", ".join([f"({', '.join('?' * len(columns))})"] * len(part))
            self._file.connection.execute(
                f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES {marks}",
                [_storable(value) for row in part for value in row],
            )

    def _write_changes(self, table: str, but: Set[int] = frozenset()) -> None:
        rows, columns = self._rows[table], _COLUMNS[table]
        changed = sorted(self._changed[table] - but)
        self._insert(table, [[rows[number].get(name) for name in columns] for number in changed])
        self._changed[table] -= set(changed)
        for number in changed:
            if rows[number].get("ended") is not None:
                del rows[number]

    def _move(self, move: IterationChange) -> Statement:
        for number, row in self._rows["tasks"].items():
            if move.first <= number <= move.last and row["run"] == move.run:
                row["iteration"] = move.iteration
        self._samples.series.collapse(self._iteration_number(move.iteration))
        facts = move.iteration, move.first, move.last, move.run
        return Statement("UPDATE tasks SET iteration = ? WHERE id BETWEEN ? AND ? AND run = ?", facts)

    # --- series ---

    def _know_iteration(self, row: dict[str, Any]) -> None:
        """Remember the number of an iteration: its row may be in the file alone when backwards are added to it."""
        self._iteration_numbers[row["id"]] = row["number"]

    def _forget_iterations(self) -> None:
        """Forget the oldest numbers: not before a batch is written, which may have any number of iterations."""
        for row in list(self._iteration_numbers)[: max(0, len(self._iteration_numbers) - _ITERATIONS)]:
            del self._iteration_numbers[row]

    def _iteration_number(self, row: int) -> int:
        known = self._iteration_numbers.get(row)
        return max(self._iteration_numbers.values(), default=0) if known is None else known

    def _note_losses(self, tasks: Sequence[dict[str, Any]]) -> None:
        for task in tasks:
            self._samples.note_loss(self._iteration_number(task["iteration"]), float(task["loss"]))

    def _write_series(self) -> None:
        """Write all series anew, and see to it that this is no large part of what is written."""
        series = self._samples.series
        if not series.changed:
            return
        nbytes = series.nbytes
        self._budget.make_room(max(nbytes - self._series_bytes, 0))
        if not self._series_bytes:
            self._file.connection.execute("DELETE FROM series WHERE run <= ?", (series.run - _SERIES_RUNS,))
        self._insert("series", list(series.rows()))
        self._series_bytes = nbytes
        self._file.logged(nbytes)
        self._series_due = time.monotonic() + min(1.0 + nbytes / _SERIES_PACE, _SERIES_PAUSE)

    def write_last_series(self) -> None:
        """Write the series as they are now, before a pause or the end."""
        if self._samples.series.changed:
            self._file.connection.execute("BEGIN")
            self._write_series()
            self._file.connection.execute("COMMIT")

    # --- nodes and values ---

    def _write_nodes(self, by_task: dict[int, list[Batch]]) -> None:
        """Write nodes: all at once, or where a budget holds, so few at a time that older ones can make room."""
        pages: list[Sequence[Any]] = []
        values: list[Sequence[Any]] = []
        described: list[Any] = []
        to_come = set(by_task)
        nbytes = 0
        for task, batches in by_task.items():
            to_come.discard(task)
            row = self._rows["tasks"].get(task)
            if row is None:
                continue
            self._changed["tasks"].add(task)
            iteration = self._iteration_number(row["iteration"])
            for part in _parts(batches):
                count = sum(map(len, part))
                pages.append((task, row["nodes"], count, *self._page(row, part)))
                for batch in part:
                    self._samples.note(iteration, batch)
                row["nodes"] += count
                described += [batch.template.nodes["node"] for batch in part]
                nbytes += sum(map(len, pages[-1][3:7]))
            if self._policy.values:
                values += self._values(row["iteration"], batches)
            if self._budget.most is not None and nbytes + sum(value[2] for value in values) > self._budget.most // 4:
                self._write_pages(pages, values, described)
                self._write_changes("iterations")
                self._write_changes("tasks", but=to_come)
                pages, values, described, nbytes = [], [], [], 0
        self._write_pages(pages, values, described)

    def _write_pages(
        self, pages: Sequence[Sequence[Any]], values: list[Sequence[Any]], described: Sequence[Any]
    ) -> None:
        """Write pages, the values of their gradients, and what has gone of the rows in `described` that they need."""
        budget = self._budget
        kept = sum(value[2] for value in values)
        # One backward may have more values than there is room for.
        while budget.most is not None and kept > budget.most // 2:
            gone = values.pop(0)[2]
            kept, budget.value_bytes = kept - gone, budget.value_bytes - gone
        nbytes = kept + sum(len(part) for page in pages for part in page[3:7])
        if budget.most is not None and described:
            self._descriptions.bring_back(numpy.concatenate(described))
        budget.make_room(nbytes + 2 * _COMMIT + _ROW * (len(pages) + len(values)), described)
        self._insert("pages", pages)
        self._insert("tensor_values", values)
        self._file.logged(nbytes)

    @staticmethod
    def _page(task: dict[str, Any], batches: Sequence[Batch]) -> tuple[Any, ...]:
        page = encode_page(batches)
        if task.get("bad") is None:
            bad = page.first_bad()
            if bad is not None:
                task["bad"] = task["nodes"] + bad
        return page.blobs()

    def _values(self, iteration: int, batches: Sequence[Batch]) -> Iterator[Sequence[Any]]:
        for taken in chain.from_iterable([batch.others for batch in batches]):
            if taken is not None and taken.value >= 0 and taken.array is not None:
                if taken.array.nbytes > MOST_BYTES:
                    taken.array = None
                    continue
                data = pack_array(taken.array)
                taken.array = None  # another node may have the same snapshot
                self._budget.value_bytes += len(data)
                yield taken.value, iteration, len(data), data


def _storable(value: Any) -> Any:
    """Return a value as SQLite takes it: paths may have bytes that are no text, which UTF-8 cannot say."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def _parts(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Yield the batches of each page."""
    part: list[Batch] = []
    for batch in batches:
        if part and sum(map(len, part)) + len(batch) > _PAGE:
            yield part
            part = []
        part.append(batch)
    yield part
