"""A database that a stranger may have made: only a recording's own tables are read, and nothing costs what it likes.

What the file could ask for is bounded by its size: a sound file has no text or blob longer than itself, no more rows
than bytes to hold them, and no statement that reads more than there is. Statements that take too long are ended.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

from . import schema
from .schema import RecordingError

__all__ = ["Database", "check_schema"]

_TIMEOUT = 20.0  # seconds of this thread's own time that a statement may take
_STEPS = 50_000  # instructions of SQLite's machine between two looks at the clock
_ROW = 16  # bytes that a row of a recorder has at least
_LEAST_ROWS = 4096
_LEAST_LENGTH = 1 << 20
_MOST_LENGTH = 10**9  # SQLite's own limit

_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 4,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class Database:
    """A recording's database, open for reading.

    Raises
    ------
    RecordingError
        If it has other tables than a recording, or views, or triggers.
    sqlite3.Error
        If it is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0  # bytes of the file and its log
        self._ends = 0.0
        self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        name = quote(os.path.abspath(self.path))
        log = os.path.exists(f"{self.path}-wal")
        # A finished recording has no log; then nothing need be written beside it, and it can be read from anywhere.
        ways = ["mode=ro"] if log else ["mode=ro", "mode=ro&immutable=1"]
        for way in ways:
            connection = sqlite3.connect(f"file:{name}?{way}", uri=True, check_same_thread=False)
            try:
                self._restrict(connection)
                check_schema(connection, self.path)
                connection.execute("PRAGMA temp_store = MEMORY")
                connection.execute("PRAGMA query_only = OFF")  # for what stands in memory
                schema.add_tables(connection, temporary=True)
                connection.execute("PRAGMA query_only = ON")
                return connection
            except BaseException as error:
                connection.close()
                if way == ways[-1] or not isinstance(error, sqlite3.Error):
                    raise
        raise AssertionError("there is always a way to try")

    def _restrict(self, connection: sqlite3.Connection) -> None:
        self._measure(connection)
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        connection.set_progress_handler(lambda: time.thread_time() > self._ends, _STEPS)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}")

    def _measure(self, connection: sqlite3.Connection) -> None:
        """Take note of how large the file is: one that is being written grows."""
        self._ends = time.thread_time() + _TIMEOUT
        size = sum(os.path.getsize(name) for name in (self.path, f"{self.path}-wal") if os.path.exists(name))
        self.size = max(self.size, size)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(self.size, _LEAST_LENGTH), _MOST_LENGTH))

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """Return the rows of a query.

        Raises
        ------
        ValueError
            If there are more than a file of this size has.
        sqlite3.Error
            If the file is damaged, or the query takes too long.
        """
        self._measure(self._connection)
        try:
            return list(self._bounded(self._connection.execute(sql, parameters)))
        except sqlite3.OperationalError as error:
            if str(error) != "interrupted":
                raise
            raise ValueError(f"it takes longer than {_TIMEOUT:.0f} s to find out what it holds") from None

    def _bounded(self, found: Iterator[Any]) -> Iterator[Any]:
        rows, room = max(_LEAST_ROWS, self.size // _ROW), max(_LEAST_LENGTH, self.size)
        for row in found:
            rows -= 1
            room -= sum([len(value) for value in row if isinstance(value, (str, bytes))])
            if rows < 0 or room < 0:
                raise ValueError(f"it claims to hold more than a file of {self.size} bytes can")
            yield row

    def close(self) -> None:
        """Close the file; doing so twice is harmless."""
        self._connection.close()


def check_schema(connection: sqlite3.Connection, path: str) -> None:
    """Raise unless a database has a recording's tables, and nothing else.

    Parameters
    ----------
    path : str
        For the message.

    Raises
    ------
    RecordingError
        If a table, index, trigger or view is there that the recorder does not make, or one is missing.
    """
    # The schema of a damaged file may be no text.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    found = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100"))
    connection.text_factory = str
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    wanted = _schema(version)
    strange = min(found - wanted, key=str, default=None)
    if strange is not None:
        raise RecordingError(
            f"{path} is refused: its {strange[0]} {strange[1]!r} is none that a recording has\n"
            "It is damaged, or made to harm whoever opens it: ask for another from whoever made it."
        )
    missing = min(wanted - found, default=None)
    if missing is not None:
        raise RecordingError(
            f"{path} is damaged: its {missing[0]} {missing[1]!r} is missing\n"
            "What other tools salvage from a SQLite file, they may from this."
        )


@functools.cache
def _schema(version: int) -> frozenset[tuple[str, str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema.tables_of(version))
        return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
