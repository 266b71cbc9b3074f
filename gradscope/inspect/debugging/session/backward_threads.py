"""The threads of a program that call backward(), and which of them the session follows."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .debugged_backward import TaskView
from .session_records import ThreadRecord

__all__ = ["BackwardThread", "BackwardThreads"]


class BackwardThread:
    """A thread, and the backwards it has in progress, the innermost last."""

    __slots__ = ("_thread", "error", "name", "number", "views")

    def __init__(self, number: int) -> None:
        self.number = number
        self._thread = weakref.ref(threading.current_thread())
        self.name = threading.current_thread().name
        self.views: list[TaskView] = []
        self.error: BaseException | None = None

    @property
    def is_current(self) -> bool:
        """Whether it is the calling thread; another may have got its ident after it has ended."""
        return self._thread() is threading.current_thread()

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        thread = self._thread()
        return thread is not None and thread.is_alive()


class BackwardThreads:
    """The threads that have called backward(), and which one the session follows.

    That is the first thread in a backward, until it has left it; or the one that the user has chosen.
    """

    def __init__(self) -> None:
        self.followed: BackwardThread | None = None
        self._chosen: BackwardThread | None = None
        self._by_ident: dict[int, BackwardThread] = {}
        self._lock = threading.Lock()
        self._count = 0

    def mine(self) -> BackwardThread | None:
        """Return the calling thread, None if it has not called backward().

        A device's own thread runs the nodes of another one: that is returned where there is but one in a backward.
        """
        known = self._by_ident.get(threading.get_ident())
        if known is not None or not _is_of_no_python():
            return known
        busy = [thread for thread in list(self._by_ident.values()) if thread.views]
        return busy[0] if len(busy) == 1 else None

    def of(self, task: Any) -> tuple[BackwardThread, TaskView] | None:
        """Return a backward, and the thread whose innermost it is: a device runs nodes on a thread of its own."""
        mine = self._by_ident.get(threading.get_ident())
        if mine is not None and mine.views and mine.views[-1].task is task:
            return mine, mine.views[-1]
        for thread in list(self._by_ident.values()):
            view = thread.views[-1] if thread.views else None
            if view is not None and view.task is task:
                return thread, view
        return None

    def enter(self) -> BackwardThread:
        """Return the calling thread, which is about to run a backward; follow it if none is followed."""
        ident = threading.get_ident()
        with self._lock:
            thread = self._by_ident.get(ident)
            if thread is None or not thread.is_current:
                self._count += 1
                thread = self._by_ident[ident] = BackwardThread(self._count)
            if self._chosen is not None and not self._chosen.alive:
                self._chosen = self.followed = None
            if self.followed is None and self._chosen in (None, thread):
                self.followed = thread
            return thread

    def leave(self, thread: BackwardThread) -> None:
        """Note that a thread has no backward in progress any more."""
        thread.error = None
        with self._lock:
            if self.followed is thread and self._chosen is None:
                self.followed = None

    @property
    def busy(self) -> bool:
        """Whether a thread is in a backward."""
        return any(thread.views for thread in list(self._by_ident.values()))

    def choose(self, number: int) -> None:
        """Follow a thread by its number.

        Raises
        ------
        ValueError
            If there is none that runs.
        """
        with self._lock:
            found = [thread for thread in self._by_ident.values() if thread.number == number and thread.alive]
            if not found:
                known = ", ".join(str(thread.number) for thread in self._by_ident.values() if thread.alive) or "none"
                raise ValueError(f"there is no thread {number} that has called backward() (there are: {known})")
            self._chosen = found[0]

    def stop_in(self, thread: BackwardThread) -> None:
        """Follow a thread that has stopped by itself."""
        with self._lock:
            self.followed = thread

    def switch(self) -> None:
        """Follow the chosen thread from now on."""
        with self._lock:
            if self._chosen is not None:
                self.followed = self._chosen

    def records(self) -> tuple[ThreadRecord, ...]:
        """Return the threads that run, by number."""
        with self._lock:
            running = sorted((each for each in self._by_ident.values() if each.alive), key=lambda each: each.number)
            followed = self._chosen or self.followed
        return tuple(ThreadRecord(each.number, each.name, each is followed, len(each.views)) for each in running)


def _is_of_no_python() -> bool:
    """Whether Python has not started the calling thread, as PyTorch's engine has those of devices."""
    return isinstance(threading.current_thread(), threading._DummyThread)
