"""The budget of a recording: what goes of it where it has more bytes, nodes or age than the policy wants."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from itertools import chain
from typing import Any

from ..recorder.keep_policy import Policy
from . import schema
from .iteration_thinning import around_changes, iterations_to_leave_out
from .node_descriptions import NodeDescriptions
from .recording_file import RecordingFile
from .schema import RecordingError

__all__ = ["LEAST_BUDGET", "Budget"]

LEAST_BUDGET = 1 << 20
"""Bytes of a file that no budget can forbid: an empty recording takes a tenth of them."""

_AGES = 20  # how often ages are checked within the age that the policy allows


class Budget:
    """What a policy lets a file keep: the oldest values go first, then older iterations, and what they alone needed.

    Parameters
    ----------
    running : callable
        Returns the iterations to which backwards may still be added.

    Attributes
    ----------
    most : int or None
        Bytes that the file may have.
    value_bytes : int
        Bytes of the values in the file.
    """

    def __init__(
        self, file: RecordingFile, policy: Policy, descriptions: NodeDescriptions, running: Callable[[], Set[int]]
    ) -> None:
        self._file = file
        self._policy = policy
        self._descriptions = descriptions
        self._running = running
        self.most = None if policy.budget is None else max(policy.budget, LEAST_BUDGET)
        self._nodes = int(file.connection.execute("SELECT coalesce(sum(nodes), 0) FROM tasks").fetchone()[0])
        self.value_bytes = 0
        self._left_out = 0  # number of iterations that were dropped
        self._aged = 0  # the time of the last search for iterations that are too old

    def apply(self, nodes: int) -> None:
        """Let go of what is too much, after so many nodes have been added."""
        self._trim()
        self._nodes += nodes
        self._limit_rows()
        self._limit_age()

    def _trim(self) -> None:
        """Let the oldest values go, where there are more than the policy wants."""
        policy = self._policy
        if policy.last is not None and policy.values:
            self._file.connection.execute(
                "DELETE FROM tensor_values WHERE iteration <= (SELECT max(id) FROM iterations) - ?", (policy.last,)
            )
        if policy.budget is not None and self.value_bytes > policy.budget:
            self._drop_values(self.value_bytes - policy.budget)

    def _drop_values(self, nbytes: int) -> None:
        """Delete the oldest values, at least a number of bytes of them."""
        newest = -1
        for number, size in self._file.connection.execute("SELECT id, nbytes FROM tensor_values ORDER BY id"):
            newest = number
            nbytes -= size
            self.value_bytes -= size
            if nbytes <= 0:
                break
        self._file.connection.execute("DELETE FROM tensor_values WHERE id <= ?", (newest,))

    def make_room(self, nbytes: int, described: Sequence[Any] = ()) -> None:
        """Delete values, and then iterations, until a number of bytes more fits the budget, with a tenth to spare.

        What iterations alone needed that have gone, goes too, except for the rows of nodes in `described`.
        """
        most = self.most
        if most is None or (over := self._file.used() + nbytes - most) <= 0:
            return
        self._drop_values(over + most // 10)
        while self._file.used() + nbytes > most - most // 10:
            thinned = self._thin()
            if (thinned and not self._descriptions.many) or self._descriptions.drop(chain(*described)) or thinned:
                continue
            break
        if self._file.used() + nbytes > most:
            raise RecordingError(f"what is newest takes more than the budget of {most:,} bytes alone")

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
        if most is not None and self._nodes > most:
            while self._nodes > most - most // 10 and self._thin():
                continue

    def _limit_age(self) -> None:
        """Let iterations go that are older than the policy wants, but for those around which something happened."""
        age = self._policy.age
        if age is None:
            return
        of_run = "run = (SELECT max(id) FROM runs)"  # times count from the start of their run
        (newest,) = self._file.connection.execute(
            f"SELECT coalesce(max(started), 0) FROM iterations WHERE {of_run}"
        ).fetchone()
        if newest - self._aged < age * 1e9 / _AGES:
            return
        self._aged = newest
        ended = list(self._ended())
        special = around_changes(ended, self._happened())
        old = f"SELECT id FROM iterations WHERE {of_run} AND number > 1 AND ended < ? ORDER BY id"
        found = [number for (number,) in self._file.connection.execute(old, (newest - int(age * 1e9),))]
        left_out = sorted(set(found) & set(ended) - special)
        if left_out:
            self._leave_out(left_out)

    def _ended(self) -> dict[int, int]:
        """Return the iterations but the first of each run to which no backward will be added any more, with numbers."""
        running = self._running()
        # The recorder may still move backwards to a run's first iteration, or to the one before the last.
        found = self._file.connection.execute("SELECT id, number FROM iterations WHERE number > 1 ORDER BY id")
        return {iteration: number for iteration, number in found if iteration not in running}

    def _leave_out(self, left_out: Sequence[int]) -> None:
        gone = json.dumps(left_out)
        chosen = "iteration IN (SELECT value FROM json_each(?))"
        self._count_left_out(chosen, gone)
        (nodes,) = self._file.connection.execute(
            f"SELECT coalesce(sum(nodes), 0) FROM tasks WHERE {chosen}", (gone,)
        ).fetchone()
        self._nodes -= nodes
        self._file.connection.execute(f"DELETE FROM pages WHERE task IN (SELECT id FROM tasks WHERE {chosen})", (gone,))
        for table in ("tasks", "tensor_values", "events", "violations", "steps"):
            self._file.connection.execute(f"DELETE FROM {table} WHERE {chosen}", (gone,))
        self._file.connection.execute("DELETE FROM iterations WHERE id IN (SELECT value FROM json_each(?))", (gone,))
        self._left_out += len(left_out)
        self._say_left_out()

    def _happened(self) -> dict[int, set[str]]:
        """Return, by iteration, what went wrong in it, and whether the user has made a note."""
        found: dict[int, set[str]] = defaultdict(set)
        for _, iteration, what in self._file.connection.execute(schema.HAPPENED):
            found[iteration].add(what)
        return found

    def _count_left_out(self, chosen: str, gone: str) -> None:
        """Keep how often things happened in the iterations that go, and in which of them first and last."""
        counted = self._file.connection.execute(
            f"SELECT all_of.run, what, count(*), min(number), max(number) FROM ({schema.HAPPENED}) AS all_of"
            f" JOIN iterations ON iterations.id = iteration WHERE {chosen} GROUP BY all_of.run, what",
            (gone,),
        ).fetchall()
        for run, kind, count, first, last in counted:
            there = self._file.connection.execute(
                "UPDATE left_out SET count = count + ?, first = min(first, ?), last = max(last, ?)"
                " WHERE run = ? AND kind = ?",
                (count, first, last, run, kind),
            ).rowcount
            if not there:
                columns = "run, kind, count, first, last"
                self._file.connection.execute(
                    f"INSERT INTO left_out ({columns}) VALUES (?, ?, ?, ?, ?)", (run, kind, count, first, last)
                )

    def _say_left_out(self) -> None:
        """Say in the file what has been left out: an event before all others."""
        (run,) = self._file.connection.execute("SELECT max(id) FROM runs").fetchone()
        policy = self._policy
        limits = [f"{self.most:,} bytes"] if self.most is not None else []
        limits += [f"{policy.rows:,} nodes"] if policy.rows is not None else []
        limits += [f"an age of {policy.age:,.0f} s"] if policy.age is not None else []
        text = (
            f"{self._left_out:,} iterations have been left out, to keep the file within {' and '.join(limits)}; "
            "those around a NaN, an error or a note stay longest"
        )
        self._file.connection.execute(
            "INSERT OR REPLACE INTO events (id, run, time, kind, text) VALUES (?, ?, 0, 'left out', ?)",
            (-run, run, text),
        )
