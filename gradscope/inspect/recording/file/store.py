"""The file of a recording while it is written: batches of what happened go in, each in one transaction.

SQLite lets go of the interpreter in every statement, and a program that computes in Python takes milliseconds to give
it back. So a batch is few statements of many rows, and rows that change (a backward's, while it runs) are kept here and
written as a whole.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import socket
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing
from itertools import chain
from typing import Any, NamedTuple

import numpy

from ..recorder.keep_policy import Policy
from . import schema
from .array_blobs import MOST_BYTES, pack_array
from .file_watch import FileWatch, discard_log
from .iteration_thinning import around_changes, iterations_to_leave_out
from .node_descriptions import NodeDescriptions
from .node_pages import Batch, encode_page
from .run_series import SERIES_COLUMNS, RunSeries
from .schema import BusyRecordingError, RecordingError
from .series_samples import SeriesSamples
from .untrusted_database import Database

__all__ = ["LEAST_BUDGET", "RowUpdate", "IterationChange", "Statement", "Store", "is_alive"]

LEAST_BUDGET = 1 << 20
"""Bytes of a file that no budget can forbid: an empty recording takes a tenth of them."""

_PAGE = 2048  # nodes of one page
_LOG = 8 << 20  # bytes that only the write-ahead log may hold
_COMMIT = 1 << 16  # bytes that a commit writes besides its blobs, roughly
_AGES = 20  # how often ages are checked within the age that the policy allows
_ROW = 256  # bytes that a row takes besides its blobs, at most
_SERIES_ROOM = 64 << 20  # bytes that series may take without a budget; with one they get an eighth of it
_SERIES_PACE = 1 << 18  # bytes of series that are written per second
_SERIES_PAUSE = 60.0  # seconds after which series are written at the latest
_ITERATIONS = 1_000  # newest iterations whose numbers are kept: running backwards belong to those
_LEAVING = 0.3  # seconds in which whoever only looks at the file has left it; another rank looks whose file it is
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


_NUMBERED = ("runs", "tasks", "iterations", "nodes", "modules", "locations", "specs", "tensor_values", "events",
    "layouts", "steps", "series",
)  # fmt: skip


class Store:
    """The file.

    Parameters
    ----------
    append : bool
        Add to a recording that is there.
    page_limit : int, optional
        How many database pages the file may have.

    Attributes
    ----------
    path : str
        Where the file is now.
    lost : bool
        Whether what had been committed is lost.

    Raises
    ------
    RecordingError
        If the file cannot be made.
    """

    def __init__(self, path: str, policy: Policy, *, append: bool, page_limit: int | None = None) -> None:
        self.path = path
        self.lost = False
        self._policy = policy
        self._watch, self._connection = _open(path, append)
        self._last = self._last_rows(path)
        self._page_limit = page_limit
        self._limit_pages()
        self._logged = 0  # bytes that only the log holds, roughly
        self._most = None if policy.budget is None else max(policy.budget, LEAST_BUDGET)
        self._log = _LOG if self._most is None else min(_LOG, self._most // 4)
        self._left_out = 0  # number of iterations that were dropped
        self._node_rows = int(self._connection.execute("SELECT coalesce(sum(nodes), 0) FROM tasks").fetchone()[0])
        self._aged = 0  # the time of the last search for iterations that are too old
        self._rows: dict[str, dict[int, dict[str, Any]]] = {"iterations": {}, "tasks": {}}
        self._changed: dict[str, set[int]] = {"iterations": set(), "tasks": set()}
        self._value_bytes = 0
        self._descriptions = NodeDescriptions(lambda: self._connection)
        self._iteration_numbers: dict[int, int] = {}
        room = _SERIES_ROOM if self._most is None else self._most // 8
        series = RunSeries(self._last["runs"] + 1, room=room, first_id=self._last["series"] + 1)
        self._samples = SeriesSamples(series)
        self._series_due = time.monotonic()
        self._series_bytes = 0  # bytes of series in the file

    def counter(self, table: str) -> Callable[[], int]:
        """Return a function that numbers the rows of a table."""
        return itertools.count(self._last[table] + 1).__next__

    def _last_rows(self, path: str) -> dict[str, int]:
        """Return the number of the last row of each table."""
        found = {}
        try:
            for table in _NUMBERED:
                (last,) = self._connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
                found[table] = int(last)
        except (sqlite3.Error, ValueError, TypeError) as error:
            self._connection.close()
            raise RecordingError(
                f"{path} is damaged, nothing can be added to it: {error}\nRecord into another file."
            ) from None
        return found

    def _limit_pages(self) -> None:
        if self._page_limit is not None:
            self._connection.execute(f"PRAGMA max_page_count = {self._page_limit}")

    # --- where the file is ---

    def follow(self) -> str:
        """Go after the file if it is not where it was, with all that has been committed.

        One that has been deleted, or that another has taken the place of, goes on as a copy beside it; the file that
        is there now is not touched.

        Returns
        -------
        str
            What has happened, for the person; empty while nothing has.

        Raises
        ------
        RecordingError
            If nothing more can be written; :attr:`lost` tells whether what has been committed is lost too.
        """
        watch = self._watch
        if not watch.intact():
            self._abandon()
            raise RecordingError("another program has written into the file, and what was recorded is lost")
        if watch.in_place():
            return ""
        there = watch.moved_to()
        if there == watch.path:  # only the log has been deleted
            self._reopen(there)
            return ""
        if there is not None:
            self._reopen(there)
            return f"the file has been moved to {there}, and recording goes on there"
        what = "another file has taken the place of the recording" if os.path.lexists(watch.path) else (
            "the file has been deleted"
        )  # fmt: skip
        kept = self._keep_copy(what)
        return f"{what}; what was recorded is kept in {kept}, and recording goes on there"

    def _reopen(self, path: str) -> None:
        """Bring all that is committed into the file itself, and go on at its path."""
        copied = self._watch.copy_log(path)
        busy, logged, moved = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy or logged != moved:
            raise RecordingError(f"the file is {path} now, and a program that reads it does not let it go")
        if copied:
            discard_log(path)
        self._move_to(path)

    def _keep_copy(self, what: str) -> str:
        """Copy what is committed to a new file beside the one that is gone; return its path."""
        try:
            path = schema.name_beside(self._watch.path)
            try:
                with closing(sqlite3.connect(path)) as copy:
                    self._connection.backup(copy)
            except BaseException:
                schema.remove(path)
                raise
        except (OSError, sqlite3.Error) as error:
            self._abandon()
            why = getattr(error, "strerror", None) or error
            raise RecordingError(
                f"{what}, and what was recorded is lost: no copy can be made beside it ({why})"
            ) from None
        self._move_to(path)
        return path

    def _move_to(self, path: str) -> None:
        self._watch.remove_logs()
        self._connection.close()
        self._watch.close()
        try:
            self._watch, self._connection = _connected(path)
        except (OSError, sqlite3.Error) as error:
            why = getattr(error, "strerror", None) or error
            raise RecordingError(f"the file is {path} now, where it cannot be written: {why}") from None
        self._limit_pages()
        self.path, self._logged = path, 0

    def rename(self, path: str) -> bool:
        """Go on under another name; return whether that could be.

        It cannot where a file is there that is no recording or is being recorded to, or while somebody reads this one.
        A finished recording is replaced, as one that begins there would.
        """
        if os.path.abspath(path) == self._watch.path:
            return True
        try:
            if os.path.lexists(path):
                schema.check_file(path)
                _refuse_running(path)
            busy, logged, moved = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy or logged != moved:
                return False
            schema.remove(path)
            os.replace(self._watch.path, path)
        except (RecordingError, OSError, sqlite3.Error):
            return False
        self._move_to(path)
        return True

    def _abandon(self) -> None:
        """Let go of a file that is no longer ours, without another byte: closing it would write the log into it."""
        self.lost = True
        self.leave_open()
        self._watch.remove_logs()

    def secure(self) -> None:
        """Bring what is committed into the file itself, as far as it can be, so that it is there wherever it goes."""
        if self.lost:
            return
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._watch.learn()
            self._logged = 0
        except (sqlite3.Error, OSError):
            return

    # --- a batch ---

    def commit(self, batch: Sequence[Any]) -> int:
        """Write a batch; return how many nodes were in it."""
        connection = self._connection
        connection.execute("BEGIN")
        descriptions = [item for item in batch if type(item) is list]
        if descriptions:
            text = _storable(json.dumps(descriptions, ensure_ascii=False))
            self._make_room(2 * len(text))
            self._descriptions.add(descriptions, text)
            self._samples.describe(descriptions)
        nodes: dict[int, list[Batch]] = {}
        statements: list[Statement] = []
        losses: list[dict[str, Any]] = []
        for item in batch:
            if type(item) is Batch:
                nodes.setdefault(item.task, []).append(item)
            elif type(item) is RowUpdate:
                row = self._rows[item.table].setdefault(item.id, {"id": item.id})
                row.update(item.facts)
                self._changed[item.table].add(item.id)
                if item.facts.get("loss") is not None:
                    losses.append(row)
                if item.table == "iterations":
                    self._know_iteration(row)
            elif type(item) is IterationChange:
                statements.append(self._move(item))
            elif type(item) is Statement:
                statements.append(item)
        self._note_losses(losses)
        self._write_nodes(nodes)
        for table in self._rows:
            self._write_changes(table)
        self._make_room(sum(len(value) for s in statements for value in s.parameters if isinstance(value, bytes)))
        for statement in statements:
            connection.execute(statement.sql, [_storable(value) for value in statement.parameters])
        self._trim()
        self._node_rows += sum(map(len, chain.from_iterable(nodes.values())))
        self._limit_rows()
        self._limit_age()
        self._samples.flush()
        self._forget_iterations()
        if time.monotonic() >= self._series_due:
            self._write_series()
        connection.execute("COMMIT")
        self._logged += _COMMIT
        if self._logged > self._log:
            self.secure()
        return sum(map(len, chain.from_iterable(nodes.values())))

    def roll_back(self) -> None:
        """Undo a batch that could not be written."""
        try:
            self._connection.rollback()
        except sqlite3.Error:
            pass

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        columns = _COLUMNS[table]
        most = _VARIABLES // len(columns)
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            marks = ", ".join([f"({', '.join('?' * len(columns))})"] * len(part))
            self._connection.execute(
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
        self._make_room(max(nbytes - self._series_bytes, 0))
        if not self._series_bytes:
            self._connection.execute("DELETE FROM series WHERE run <= ?", (series.run - _SERIES_RUNS,))
        self._insert("series", list(series.rows()))
        self._series_bytes = nbytes
        self._logged += nbytes
        self._series_due = time.monotonic() + min(1.0 + nbytes / _SERIES_PACE, _SERIES_PAUSE)

    def _write_last_series(self) -> None:
        if self._samples.series.changed:
            self._connection.execute("BEGIN")
            self._write_series()
            self._connection.execute("COMMIT")

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
            if self._most is not None and nbytes + sum(value[2] for value in values) > self._most // 4:
                self._write_pages(pages, values, described)
                self._write_changes("iterations")
                self._write_changes("tasks", but=to_come)
                pages, values, described, nbytes = [], [], [], 0
        self._write_pages(pages, values, described)

    def _write_pages(
        self, pages: Sequence[Sequence[Any]], values: list[Sequence[Any]], described: Sequence[Any]
    ) -> None:
        """Write pages, the values of their gradients, and what has gone of the rows in `described` that they need."""
        kept = sum(value[2] for value in values)
        while self._most is not None and kept > self._most // 2:  # one backward has more values than there is room for
            gone = values.pop(0)[2]
            kept, self._value_bytes = kept - gone, self._value_bytes - gone
        nbytes = kept + sum(len(part) for page in pages for part in page[3:7])
        if self._most is not None and described:
            self._descriptions.bring_back(numpy.concatenate(described))
        self._make_room(nbytes + 2 * _COMMIT + _ROW * (len(pages) + len(values)), described)
        self._insert("pages", pages)
        self._insert("tensor_values", values)
        self._logged += nbytes

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
                self._value_bytes += len(data)
                yield taken.value, iteration, len(data), data

    def _trim(self) -> None:
        """Let the oldest values go, where there are more than the policy wants."""
        connection, policy = self._connection, self._policy
        if policy.last is not None and policy.values:
            connection.execute(
                "DELETE FROM tensor_values WHERE iteration <= (SELECT max(id) FROM iterations) - ?", (policy.last,)
            )
        if policy.budget is not None and self._value_bytes > policy.budget:
            self._drop_values(self._value_bytes - policy.budget)

    def _drop_values(self, nbytes: int) -> None:
        """Delete the oldest values, at least a number of bytes of them."""
        newest = -1
        for number, size in self._connection.execute("SELECT id, nbytes FROM tensor_values ORDER BY id"):
            newest = number
            nbytes -= size
            self._value_bytes -= size
            if nbytes <= 0:
                break
        self._connection.execute("DELETE FROM tensor_values WHERE id <= ?", (newest,))

    def _make_room(self, nbytes: int, described: Sequence[Any] = ()) -> None:
        """Delete values, and then iterations, until a number of bytes more fits the budget, with a tenth to spare.

        What iterations alone needed that have gone, goes too, except for the rows of nodes in `described`.
        """
        most = self._most
        if most is None or (over := self._used() + nbytes - most) <= 0:
            return
        self._drop_values(over + most // 10)
        while self._used() + nbytes > most - most // 10:
            thinned = self._thin()
            if (thinned and not self._descriptions.many) or self._descriptions.drop(chain(*described)) or thinned:
                continue
            break
        if self._used() + nbytes > most:
            raise RecordingError(f"what is newest takes more than the budget of {most:,} bytes alone")

    def _used(self) -> int:
        """Return how many bytes of the file are in use; what has gone leaves room in it for what comes."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _thin(self) -> bool:
        """Leave out some of the older iterations; return whether there were any to leave out."""
        numbers = self._ended()
        ended = list(numbers)
        left_out = iterations_to_leave_out(ended, around_changes(ended, self._happened()), numbers)
        if left_out:
            self._leave_out(left_out)
        return bool(left_out)

    def _limit_rows(self) -> None:
        """Let old iterations go where there are more nodes than the policy wants, with a tenth to spare."""
        most = self._policy.rows
        if most is not None and self._node_rows > most:
            while self._node_rows > most - most // 10 and self._thin():
                continue

    def _limit_age(self) -> None:
        """Let iterations go that are older than the policy wants, but for those around which something happened."""
        age = self._policy.age
        if age is None:
            return
        of_run = "run = (SELECT max(id) FROM runs)"  # times count from the start of their run
        (newest,) = self._connection.execute(
            f"SELECT coalesce(max(started), 0) FROM iterations WHERE {of_run}"
        ).fetchone()
        if newest - self._aged < age * 1e9 / _AGES:
            return
        self._aged = newest
        ended = list(self._ended())
        special = around_changes(ended, self._happened())
        old = f"SELECT id FROM iterations WHERE {of_run} AND number > 1 AND ended < ? ORDER BY id"
        found = [number for (number,) in self._connection.execute(old, (newest - int(age * 1e9),))]
        left_out = sorted(set(found) & set(ended) - special)
        if left_out:
            self._leave_out(left_out)

    def _ended(self) -> dict[int, int]:
        """Return the iterations but the first of each run to which no backward will be added any more, with numbers."""
        running = {*self._rows["iterations"], *(row["iteration"] for row in self._rows["tasks"].values())}
        # The recorder may still move backwards to a run's first iteration, or to the one before the last.
        found = self._connection.execute("SELECT id, number FROM iterations WHERE number > 1 ORDER BY id")
        return {iteration: number for iteration, number in found if iteration not in running}

    def _leave_out(self, left_out: Sequence[int]) -> None:
        gone = json.dumps(left_out)
        chosen = "iteration IN (SELECT value FROM json_each(?))"
        self._count_left_out(chosen, gone)
        (nodes,) = self._connection.execute(
            f"SELECT coalesce(sum(nodes), 0) FROM tasks WHERE {chosen}", (gone,)
        ).fetchone()
        self._node_rows -= nodes
        self._connection.execute(f"DELETE FROM pages WHERE task IN (SELECT id FROM tasks WHERE {chosen})", (gone,))
        for table in ("tasks", "tensor_values", "events", "violations", "steps"):
            self._connection.execute(f"DELETE FROM {table} WHERE {chosen}", (gone,))
        self._connection.execute("DELETE FROM iterations WHERE id IN (SELECT value FROM json_each(?))", (gone,))
        self._left_out += len(left_out)
        self._say_left_out()

    def _happened(self) -> dict[int, set[str]]:
        """Return, by iteration, what went wrong in it, and whether the user has made a note."""
        found: dict[int, set[str]] = defaultdict(set)
        for _, iteration, what in self._connection.execute(schema.HAPPENED):
            found[iteration].add(what)
        return found

    def _count_left_out(self, chosen: str, gone: str) -> None:
        """Keep how often things happened in the iterations that go, and in which of them first and last."""
        counted = self._connection.execute(
            f"SELECT all_of.run, what, count(*), min(number), max(number) FROM ({schema.HAPPENED}) AS all_of"
            f" JOIN iterations ON iterations.id = iteration WHERE {chosen} GROUP BY all_of.run, what",
            (gone,),
        ).fetchall()
        for run, kind, count, first, last in counted:
            there = self._connection.execute(
                "UPDATE left_out SET count = count + ?, first = min(first, ?), last = max(last, ?)"
                " WHERE run = ? AND kind = ?",
                (count, first, last, run, kind),
            ).rowcount
            if not there:
                columns = "run, kind, count, first, last"
                self._connection.execute(
                    f"INSERT INTO left_out ({columns}) VALUES (?, ?, ?, ?, ?)", (run, kind, count, first, last)
                )

    def _say_left_out(self) -> None:
        """Say in the file what has been left out: an event before all others."""
        (run,) = self._connection.execute("SELECT max(id) FROM runs").fetchone()
        policy = self._policy
        limits = [f"{self._most:,} bytes"] if self._most is not None else []
        limits += [f"{policy.rows:,} nodes"] if policy.rows is not None else []
        limits += [f"an age of {policy.age:,.0f} s"] if policy.age is not None else []
        text = (
            f"{self._left_out:,} iterations have been left out, to keep the file within {' and '.join(limits)}; "
            "those around a NaN, an error or a note stay longest"
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO events (id, run, time, kind, text) VALUES (?, ?, 0, 'left out', ?)",
            (-run, run, text),
        )

    # --- the end ---

    def idle(self) -> None:
        """Use a moment in which nothing happens: what is in the log alone goes into the file."""
        self._write_last_series()
        if self._logged:
            self.secure()

    def finish(self) -> None:
        """Make the recording one file."""
        self._write_last_series()
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute("PRAGMA busy_timeout = 0")
        last = time.monotonic() + _LEAVING
        while not self._leaves_log() and time.monotonic() < last:
            time.sleep(0.01)

    def _leaves_log(self) -> bool:
        """Go on without a log: so the file can be read from anywhere; with a reader there now it keeps its log."""
        try:
            self._connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            return False
        return True

    def close(self) -> None:
        """Close the file."""
        if self.lost:
            return
        try:
            self._connection.close()
        except sqlite3.Error:  # the error has been reported by the write that met it
            pass
        self._watch.close()

    def leave_open(self) -> None:
        """In a forked child: closing it, even when the interpreter ends, would touch the parent's file."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))


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


def _open(path: str, append: bool) -> tuple[FileWatch, sqlite3.Connection]:
    there = os.path.lexists(path) and (not os.path.isfile(path) or os.path.getsize(path) > 0)
    if there:
        schema.check_file(path)
        _refuse_running(path)
    append = append and there
    if append:
        _check_inside(path)
    try:
        if not append:
            schema.create(path)
        return _connected(path)
    except (sqlite3.Error, OSError, ValueError) as error:  # SQLite's message on a damaged file may be invalid UTF-8
        raise RecordingError(
            f"{path} cannot be written: {error}\nCheck that its directory is there and writable, or name another file."
        ) from None


def _check_inside(path: str) -> None:
    """Raise unless something can be added to a recording: it may be damaged, or a stranger's."""
    try:
        Database(path).close()
    except (sqlite3.Error, ValueError, RecordingError) as error:
        raise RecordingError(
            f"{path} is damaged, nothing can be added to it: {str(error).splitlines()[0]}\nRecord into another file."
        ) from None


def _connected(path: str) -> tuple[FileWatch, sqlite3.Connection]:
    watch = FileWatch(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA busy_timeout = 10000")
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # the store decides when the file changes
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the first query opens the log
            schema.add_tables(connection)  # where a recording of an older layout goes on
            watch.learn()
        except BaseException:
            connection.close()
            raise
    except BaseException:
        watch.close()
        raise
    return watch, connection


def _refuse_running(path: str) -> None:
    """Raise if another process is writing this recording now."""
    try:
        with closing(Database(path)) as database:
            rows = database.rows("SELECT pid, host FROM runs WHERE state = 'running'")
    except (sqlite3.Error, ValueError, RecordingError):  # a damaged recording may be written over
        return
    for pid, host in rows:
        if host == socket.gethostname() and pid != os.getpid() and is_alive(pid):
            raise BusyRecordingError(
                f"{path} is being recorded to by process {pid}\nGive each recorder a file of its own."
            )


def is_alive(pid: Any) -> bool:
    """Whether there is a process of that number on this machine."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, TypeError, OverflowError):
        return False
    return True
