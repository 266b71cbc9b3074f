"""The thread that puts what was recorded on the disk; the program's own threads only hand over."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ...adapters.event_guards import fault_of, own_error
from ...output.terminal_text import report
from ..file.batch_writer import BatchWriter, Statement
from ..file.node_pages import Batch
from ..file.recording_file import RecordingFile
from ..file.schema import RecordingError
from .keep_policy import Policy
from .recording_names import one_at_a_time

__all__ = ["Writer"]

_INTERVAL = 0.05  # seconds between commits
_IDLE = 0.5  # seconds between looks at a file to which nothing is written
_PATIENCE = 3.0  # seconds for which the end of a recording waits for the name of its rank
_ITEM = 512  # bytes that a node or another item takes besides its tensors, roughly
_HURRY = 4096 * _ITEM  # waiting bytes at which a commit is made at once
_OF_THE_FILE = OSError, sqlite3.Error, RecordingError, MemoryError
"""The errors that say why nothing can be written; others are gradscope's own."""

_ROOM = 64 << 20  # bytes that may wait before the program is held up

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Writer:
    """A recording that is being written.

    Parameters
    ----------
    append : bool
        Add a run to a recording that is there.
    room : int
        How many bytes of copied tensors may wait. Whoever hands over more waits until there is room again.
    page_limit : int, optional
        How many database pages the file may have: a disk that is full, for tests.

    Attributes
    ----------
    path : str
        Where the file is now.
    failure : str
        Why nothing is written any more; empty while all is well.
    fault : str
        The error of gradscope's own, and its line, where it was one.
    committed, lost : int
        Nodes.
    forked : bool
        Whether this process is a child of the one that records.
    quiet : callable
        To be set: called by the thread when there was nothing to write, with the number of items before that.
    stop_of : callable
        To be set: called with a `fault`, it returns what says in the file that nothing follows for that.
    gather : callable
        To be set: called by the thread before it commits, it puts what more there is, and returns whether there may be
        more soon.

    Raises
    ------
    RecordingError
        If the file cannot be made.
    """

    def __init__(
        self, path: str, policy: Policy, *, append: bool = False, room: int = _ROOM, page_limit: int | None = None
    ) -> None:
        for writer in tuple(_writers):
            if os.path.abspath(writer.path) == os.path.abspath(path):
                raise RecordingError(f"{path} is being recorded to already\nGive each recorder a file of its own.")
        self.path: str = path
        self.failure = self.fault = ""
        self.committed = self.lost = 0
        self.forked = False
        self._room = room
        self._waiting: list[Any] = []
        self._bytes = 0
        self._took = self._done = 0
        self._stopping = self._hurry = False
        self._name: str | None = None  # under which the file goes on
        self._last: Statement | None = None
        self._idle = True  # whether the thread sleeps, and must be told of the next item
        self.gather: Callable[[], bool | None] = bool
        self.stop_of: Callable[[str], Statement] = _say_nothing
        self.quiet: Callable[[int], object] = int
        # The lock is reentrant, for a signal handler of the program may run a backward.
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._file = RecordingFile(path, append=append, page_limit=page_limit)
        self._batches = BatchWriter(self._file, policy)
        self._thread = threading.Thread(target=self._run, name="gradscope recorder", daemon=True)
        self._thread.start()
        _writers.add(self)

    def counter(self, table: str) -> Callable[[], int]:
        """Return a function that numbers the rows of a table; ask while nothing is on its way."""
        return self._file.counter(table)

    # --- handing over, on the program's threads ---

    def put(self, item: Any, nbytes: int = 0) -> None:
        """Hand over a Batch, a RowUpdate, an IterationChange, a Statement, or a row of the table `nodes` (a list)."""
        nbytes += _ITEM * (len(item) if type(item) is Batch else 1)
        with self._lock:
            while self._bytes > self._room and not self.failure and self._can_wait():
                self._hurry = True
                self._change.notify_all()
                self._change.wait(0.1)
            if self.failure:
                self.lost += _nodes([item])
                return
            self._waiting.append(item)
            self._bytes += nbytes
            self._hurry = self._hurry or self._bytes > min(_HURRY, self._room >> 3)
            if self._idle or self._hurry:
                self._change.notify_all()

    def _can_wait(self) -> bool:
        return self._thread.is_alive() and threading.current_thread() is not self._thread

    def execute(self, sql: str, parameters: Sequence[Any]) -> None:
        """Hand over a statement."""
        self.put(Statement(sql, parameters))

    def rename(self, path: str) -> None:
        """Go on under another name, as soon as nobody else has it: see :meth:`.RecordingFile.rename`."""
        self._name = path

    def flush(self) -> None:
        """Wait until all that was handed over is committed."""
        with self._lock:
            wanted = self._took + len(self._waiting)
            while self._done < wanted and not self.failure and self._thread.is_alive():
                self._hurry = True
                self._change.notify_all()
                self._change.wait(0.1)

    def close(self, last: Statement | None = None) -> None:
        """Commit what is left, and make the recording one file.

        Parameters
        ----------
        last : Statement, optional
            What says that it is finished, for which it must have its name: another rank that is waiting for the name of
            a finished recording would replace it.
        """
        self._last = last
        _writers.discard(self)
        if self.forked:
            return
        with self._lock:
            self._stopping = True
            self._change.notify_all()
        self._thread.join()

    # --- the thread ---

    def _run(self) -> None:
        while True:
            batch, nbytes = self._take()
            self._attempt(self._commit, batch)
            if not batch:
                self.quiet(self._took)
            with self._lock:
                self._bytes -= nbytes
                self._done += len(batch)
                self._change.notify_all()
                if self._stopping and not self._waiting:
                    break
        self._attempt(self._finish, [])
        if self.fault:
            self._end_after_fault()
        self._file.close()

    def _take(self) -> tuple[list[Any], int]:
        """Return what there is, once it is time, and how many bytes it takes."""
        more = self.gather()
        with self._lock:
            self._idle = True
            while not self._waiting and not self._stopping:
                if not self._change.wait(_INTERVAL if more else _IDLE):
                    return [], 0
            self._idle = False
            end = time.monotonic() + _INTERVAL
            while not (self._hurry or self._stopping) and (left := end - time.monotonic()) > 0:
                self._change.wait(left)
        self.gather()
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
            self._took += len(taken)
            self._hurry = False
            return taken, self._bytes

    def _commit(self, batch: list[Any]) -> None:
        self._follow()
        if batch:
            self.committed += self._batches.commit(batch)
        else:
            self._batches.write_last_series()
            self._file.settle()
        self._take_name()

    def _take_name(self) -> None:
        if self._name is None:
            return
        with one_at_a_time(self._name):
            if self._file.rename(self._name):
                self.path, self._name = self._file.path, None

    def _finish(self, batch: list[Any]) -> None:
        self._follow()
        self._take_name()
        # Another rank that began under this one's name leaves it as soon as it knows its own.
        last = time.monotonic() + _PATIENCE
        while self._name is not None and time.monotonic() < last:
            time.sleep(0.05)
            self._take_name()
        if self._last is not None:
            self._batches.commit([self._last])
        self._batches.write_last_series()
        self._file.finish()

    def _follow(self) -> None:
        """Go after the file; warn where that has been moved."""
        told = self._file.follow()
        if told:
            report(f"gradscope: {self.path}: {told}\nLook at it with `gradscope view {self._file.path}`.")
            self.path = self._file.path

    def _attempt(self, action: Callable[[list[Any]], None], batch: list[Any]) -> None:
        """Do something with the file; where that fails, warn once, and write no more."""
        if self.failure:
            self.lost += _nodes(batch)
            return
        try:
            action(batch)
        except Exception as error:
            if not isinstance(error, _OF_THE_FILE):
                self.fault = fault_of(error)
            self.failure = own_error(self.fault) if self.fault else str(error).strip() or type(error).__name__
            self.lost += _nodes(batch)
            self._file.roll_back()
            if self.fault:
                self._execute(self.stop_of(self.fault))
            self._file.secure()
            report(
                f"gradscope: {self.path}: recording has stopped after {self.committed} nodes: {self.failure}\n"
                "The program goes on; what it does from here is not recorded."
            )
            if self._file.lost:
                self.committed, self.lost = 0, self.lost + self.committed

    def _end_after_fault(self) -> None:
        """Make the recording one file, with no more than what says that it is finished."""
        if self._last is not None:
            self._execute(self._last)
        with suppress(Exception):  # it may be what has failed
            self._file.finish()

    def _execute(self, statement: Statement) -> None:
        with suppress(sqlite3.Error):
            self._file.connection.execute(*statement)

    # --- fork ---

    def leave_to_parent(self) -> None:
        """In a forked child: the file is the parent's, and the locks may be held by threads that are not here."""
        self.forked = True
        self.failure = "this process was forked from the one that records"
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._waiting.clear()
        self._file.leave_open()


def _say_nothing(fault: str) -> Statement:
    return Statement("SELECT 1", ())


def _nodes(batch: list[Any]) -> int:
    return sum(len(item) for item in batch if type(item) is Batch)


def _leave_to_parent() -> None:
    for writer in tuple(_writers):
        writer.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
