"""What the nodes of all iterations share: in the file as long as a page needs it, and out of the way after that."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from .node_pages import NODE

__all__ = ["NodeDescriptions"]

_PARTS = ", ".join(f"json_extract(value, '$[{i}]')" for i in range(9))
_INSERT = f"INSERT INTO nodes SELECT {_PARTS} FROM json_each(?)"
_COLUMNS = {"nodes": 9, "modules": 2, "locations": 5}
_MODULE, _LOCATION = 2, 4  # the positions of these columns in a row of `nodes`
_MOST_GONE = 200_000  # nodes after which the recorder forgets the oldest rows
_FEW = 1_000


class NodeDescriptions:
    """The tables `nodes`, `modules` and `locations` of a recording that is being written.

    Rows that no page refers to may be dropped. They are kept in memory, and come back when a page needs them again: the
    recorder gives a node its row once.

    Parameters
    ----------
    connection : callable
        Returns the connection to the file, which may move.
    """

    def __init__(self, connection: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connection
        self._gone: dict[str, dict[int, Sequence[Any]]] = {table: {} for table in _COLUMNS}
        self._described = 0
        self._enough = _FEW

    @property
    def many(self) -> bool:
        """Whether so many have come since some were dropped that it is worth while to look for more."""
        return self._described >= self._enough

    def add(self, rows: Sequence[Sequence[Any]], text: str) -> None:
        """Add rows of `nodes`, which are given as JSON too."""
        self._bring_back("modules", [row[_MODULE] for row in rows])
        self._bring_back("locations", [row[_LOCATION] for row in rows])
        self._connection().execute(_INSERT, (text,))
        self._described += len(rows)

    def bring_back(self, numbers: Any) -> None:
        """See to it that rows of `nodes`, an array of their numbers, are in the file."""
        if self._gone["nodes"]:
            rows = self._bring_back("nodes", numpy.unique(numbers).tolist())
            self._bring_back("modules", [row[_MODULE] for row in rows])
            self._bring_back("locations", [row[_LOCATION] for row in rows])

    def _bring_back(self, table: str, numbers: Iterable[Any]) -> list[Sequence[Any]]:
        gone = self._gone[table]
        rows = [gone.pop(number) for number in dict.fromkeys(numbers) if number in gone] if gone else []
        marks = ", ".join("?" * _COLUMNS[table])
        self._connection().executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        return rows

    def drop(self, keep: Any = ()) -> int:
        """Drop what no page refers to, except for the rows `keep` of `nodes`; return how many rows of `nodes` that was.

        A page that is read while this happens is one of an iteration that has been left out.
        """
        connection = self._connection()
        needed = {int(number) for number in keep}
        for (blob,) in connection.execute("SELECT nodes FROM pages"):
            needed.update(numpy.unique(numpy.frombuffer(blob, NODE)["node"]).tolist())
        before = len(self._gone["nodes"])
        self._drop("nodes", f"id NOT IN (SELECT value FROM json_each('{json.dumps(sorted(needed))}'))")
        dropped = len(self._gone["nodes"]) - before
        for table, column in (("modules", "module"), ("locations", "location")):
            self._drop(table, f"id NOT IN (SELECT {column} FROM nodes WHERE {column} IS NOT NULL)")
        self._described, self._enough = 0, max(_FEW, len(needed))
        return dropped

    def _drop(self, table: str, condition: str) -> None:
        connection, gone = self._connection(), self._gone[table]
        gone.update((row[0], row) for row in connection.execute(f"SELECT * FROM {table} WHERE {condition}"))
        connection.execute(f"DELETE FROM {table} WHERE {condition}")
        for number in list(gone)[: max(0, len(gone) - _MOST_GONE)]:
            del gone[number]
