"""The file of a recording while it is written: opened, found again where it is moved, made one file at the end."""

from __future__ import annotations

import ctypes
import itertools
import os
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from . import schema
from .file_watch import FileWatch, discard_log
from .schema import BusyRecordingError, RecordingError
from .untrusted_database import Database

__all__ = ["RecordingFile", "is_alive"]

_LEAVING = 0.3  # seconds in which whoever only looks at the file has left it; another rank looks whose file it is

_NUMBERED = ("runs", "tasks", "iterations", "nodes", "modules", "locations", "specs", "tensor_values", "events",
    "layouts", "steps", "series", "module_types",
)  # fmt: skip


class RecordingFile:
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
    connection : sqlite3.Connection
        To the database; another one once the file has moved.

    Raises
    ------
    RecordingError
        If the file cannot be made.
    """

    def __init__(self, path: str, *, append: bool, page_limit: int | None = None) -> None:
        self.path = path
        self.lost = False
        self._watch, self.connection = _open(path, append)
        self._last = self._last_rows(path)
        self._page_limit = page_limit
        self._limit_pages()
        self._logged = 0  # bytes that only the log holds, roughly

    def last_row(self, table: str) -> int:
        """Return the number of the last row that a table had when the file was opened."""
        return self._last[table]

    def counter(self, table: str) -> Callable[[], int]:
        """Return a function that numbers the rows of a table."""
        return itertools.count(self._last[table] + 1).__next__

    def _last_rows(self, path: str) -> dict[str, int]:
        """Return the number of the last row of each table."""
        found = {}
        try:
            for table in _NUMBERED:
                (last,) = self.connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
                found[table] = int(last)
        except (sqlite3.Error, ValueError, TypeError) as error:
            self.connection.close()
            raise RecordingError(
                f"{path} is damaged, nothing can be added to it: {error}\nRecord into another file."
            ) from None
        return found

    def _limit_pages(self) -> None:
        if self._page_limit is not None:
            self.connection.execute(f"PRAGMA max_page_count = {self._page_limit}")

    def used(self) -> int:
        """Return how many bytes of the file are in use; what has gone leaves room in it for what comes."""
        pages, free, size = (
            self.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

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
        busy, logged, moved = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
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
                    self.connection.backup(copy)
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
        self.connection.close()
        self._watch.close()
        try:
            self._watch, self.connection = _connected(path)
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
            busy, logged, moved = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
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

    # --- its log ---

    def logged(self, nbytes: int) -> None:
        """Count bytes that have been written into the log."""
        self._logged += nbytes

    def limit_log(self, most: int) -> None:
        """Bring what is committed into the file itself where more than so many bytes are in the log alone."""
        if self._logged > most:
            self.secure()

    def secure(self) -> None:
        """Bring what is committed into the file itself, as far as it can be, so that it is there wherever it goes."""
        if self.lost:
            return
        try:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._watch.learn()
            self._logged = 0
        except (sqlite3.Error, OSError):
            return

    def settle(self) -> None:
        """Use a moment in which nothing happens: what is in the log alone goes into the file."""
        if self._logged:
            self.secure()

    def roll_back(self) -> None:
        """Undo a batch that could not be written."""
        try:
            self.connection.rollback()
        except sqlite3.Error:
            pass

    # --- the end ---

    def finish(self) -> None:
        """Make the recording one file."""
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.execute("PRAGMA busy_timeout = 0")
        last = time.monotonic() + _LEAVING
        while not self._leaves_log() and time.monotonic() < last:
            time.sleep(0.01)

    def _leaves_log(self) -> bool:
        """Go on without a log: so the file can be read from anywhere; with a reader there now it keeps its log."""
        try:
            self.connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            return False
        return True

    def close(self) -> None:
        """Close the file."""
        if self.lost:
            return
        try:
            self.connection.close()
        except sqlite3.Error:  # the error has been reported by the write that met it
            pass
        self._watch.close()

    def leave_open(self) -> None:
        """In a forked child: closing it, even when the interpreter ends, would touch the parent's file."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))


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
