"""The thread that puts what was recorded on the disk; the program's own threads only hand over."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .pages import NodeItem
from .policy import Policy
from .schema import RecordingError
from .store import Statement, Store

__all__ = ["Writer", "report"]

_INTERVAL = 0.05  # seconds between commits
_HURRY = 4096  # nodes that wait: commit now
_ITEM = 512  # bytes, about, that a waiting item takes besides its tensors
_ROOM = 64 << 20  # bytes that may wait

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Writer:
    """A recording that is being written.

    Parameters
    ----------
    path : str
    policy : Policy
    append : bool
        Add a run to a recording that is there.
    room : int
        How many bytes of copied tensors may wait. Whoever hands over more waits until there is room again.
    page_limit : int, optional
        How many database pages the file may have: a disk that is full, for tests.

    Attributes
    ----------
    failure : str
        Why nothing is written any more; empty while all is well.
    committed, lost : int
        Nodes.
    forked : bool
        Whether this process is a child of the one that records.

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
        self._file = os.path.abspath(path)
        self.failure = ""
        self.committed = self.lost = 0
        self.forked = False
        self._room = room
        self._waiting: deque[Any] = deque()
        self._bytes = 0
        self._took = self._done = 0
        self._stopping = self._hurry = False
        self._idle = True  # whether the thread must be told of the next item
        # Reentrant, for a signal handler of the program that runs a backward.
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._store = Store(path, policy, append=append, page_limit=page_limit)
        self._thread = threading.Thread(target=self._run, name="gradscope recorder", daemon=True)
        self._thread.start()
        _writers.add(self)

    def counter(self, table: str) -> Callable[[], int]:
        """Return a function that numbers the rows of a table; ask while nothing is on its way."""
        return self._store.counter(table)

    # --- handing over, on the program's threads ---

    def put(self, item: Any, nbytes: int = 0) -> None:
        """Hand over a NodeItem, a Change, a Move, a Statement, or a row of the table `nodes` (a list)."""
        if not (nbytes or self._idle or self.failure) and len(self._waiting) < _HURRY:
            self._waiting.append(item)  # which needs no lock; the thread looks again before it sleeps
            return
        with self._lock:
            while self._held() > self._room and not self.failure and self._thread.is_alive():
                self._hurry = True
                self._change.notify_all()
                self._change.wait(0.1)
            if self.failure:
                self.lost += type(item) is NodeItem
                return
            self._waiting.append(item)
            self._bytes += nbytes
            self._hurry = self._hurry or len(self._waiting) >= _HURRY or self._held() > self._room >> 3
            if self._idle or self._hurry:
                self._change.notify_all()

    def execute(self, sql: str, parameters: Sequence[Any]) -> None:
        """Hand over a statement."""
        self.put(Statement(sql, parameters))

    def _held(self) -> int:
        """Return how many bytes wait, about."""
        return self._bytes + len(self._waiting) * _ITEM

    def flush(self) -> None:
        """Wait until all that was handed over is committed."""
        with self._lock:
            wanted = self._took + len(self._waiting)
            while self._done < wanted and not self.failure and self._thread.is_alive():
                self._hurry = True
                self._change.notify_all()
                self._change.wait(0.1)

    def close(self) -> None:
        """Commit what is left, and make the recording one file."""
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
            if batch:
                self._attempt(self._commit, batch)
            with self._lock:
                self._bytes -= nbytes
                self._done += len(batch)
                self._change.notify_all()
                if self._stopping and not self._waiting:
                    break
        self._attempt(lambda batch: self._store.finish(), [])
        self._store.close()

    def _take(self) -> tuple[list[Any], int]:
        with self._lock:
            self._idle = True
            while not self._waiting and not self._stopping:
                self._change.wait()
            self._idle = False
            end = time.monotonic() + _INTERVAL
            while not (self._hurry or self._stopping) and (left := end - time.monotonic()) > 0:
                self._change.wait(left)
            taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            self._took += len(taken)
            self._hurry = False
            return taken, self._bytes

    def _commit(self, batch: list[Any]) -> None:
        if not os.path.exists(self._file):  # the system lets us write on, to where nobody will find it
            raise RecordingError("the file has been moved or deleted")
        self.committed += self._store.commit(batch)

    def _attempt(self, action: Callable[[list[Any]], None], batch: list[Any]) -> None:
        """Do something with the file; where that fails, say so once, and write no more."""
        if self.failure:
            self.lost += _nodes(batch)
            return
        try:
            action(batch)
        except Exception as error:
            self.failure = str(error).strip() or type(error).__name__
            self.lost += _nodes(batch)
            self._store.roll_back()
            report(
                f"gradscope: {self.path}: recording has stopped after {self.committed} nodes: {self.failure}\n"
                "The program goes on; what it does from here is not recorded."
            )

    # --- fork ---

    def leave_to_parent(self) -> None:
        """In a forked child: the file is the parent's, and the locks may be held by threads that are not here."""
        self.forked = True
        self.failure = "this process was forked from the one that records"
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._waiting.clear()
        self._store.leave_open()


def _nodes(batch: list[Any]) -> int:
    return sum(type(item) is NodeItem for item in batch)


def _leave_to_parent() -> None:
    for writer in tuple(_writers):
        writer.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def report(text: str) -> None:
    """Tell the person at the terminal; a program without one is not disturbed.

    Parameters
    ----------
    text : str
    """
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return
