"""The threads of a program that call backward(), and which of them the session follows."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .debugged_backward import TaskView
from .session_records import ThreadRecord

__all__ = ["Lane", "Lanes"]


class Lane:
    """A thread, and the backwards it has in progress, the innermost last."""

    __slots__ = ("error", "name", "number", "thread", "views")

    def __init__(self, number: int) -> None:
        self.number = number
        self.thread = weakref.ref(threading.current_thread())
        self.name = threading.current_thread().name
        self.views: list[TaskView] = []
        self.error: BaseException | None = None

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        thread = self.thread()
        return thread is not None and thread.is_alive()

    def view_of(self, task: Any) -> TaskView | None:
        """Return the innermost backward if it is `task`."""
        view = self.views[-1] if self.views else None
        return view if view is not None and view.task is task else None


class Lanes:
    """All of them. The first thread that is in a backward is followed until it has left it, or the one chosen."""

    def __init__(self) -> None:
        self.followed: Lane | None = None
        self._chosen: Lane | None = None
        self._lanes: dict[int, Lane] = {}
        self._lock = threading.Lock()
        self._count = 0

    def mine(self) -> Lane | None:
        """Return the calling thread's, None if it has not called backward()."""
        return self._lanes.get(threading.get_ident())

    def of(self, task: Any) -> Lane | None:
        """Return the lane in whose innermost backward `task` is: a device runs nodes on a thread of its own."""
        mine = self.mine()
        if mine is not None and mine.view_of(task) is not None:
            return mine
        return next((lane for lane in list(self._lanes.values()) if lane.view_of(task) is not None), mine)

    def enter(self) -> Lane:
        """Return the calling thread's, which is about to run a backward; follow it if none is followed."""
        ident = threading.get_ident()
        with self._lock:
            lane = self._lanes.get(ident)
            if lane is None or lane.thread() is not threading.current_thread():
                self._count += 1
                lane = self._lanes[ident] = Lane(self._count)
            if self._chosen is not None and not self._chosen.alive:
                self._chosen = self.followed = None
            if self.followed is None and self._chosen in (None, lane):
                self.followed = lane
            return lane

    def leave(self, lane: Lane) -> None:
        """Note that a thread has no backward in progress any more."""
        lane.error = None
        with self._lock:
            if self.followed is lane and self._chosen is None:
                self.followed = None

    def choose(self, number: int) -> None:
        """Follow a thread by its number.

        Raises
        ------
        ValueError
            If there is none that runs.
        """
        with self._lock:
            found = [lane for lane in self._lanes.values() if lane.number == number and lane.alive]
            if not found:
                known = ", ".join(str(lane.number) for lane in self._lanes.values() if lane.alive) or "none"
                raise ValueError(f"there is no thread {number} that has called backward() (there are: {known})")
            self._chosen = found[0]

    def stop_in(self, lane: Lane) -> None:
        """Follow a thread that has stopped by itself."""
        with self._lock:
            self.followed = lane

    def switch(self) -> None:
        """Follow the chosen thread from now on."""
        with self._lock:
            if self._chosen is not None:
                self.followed = self._chosen

    def records(self) -> tuple[ThreadRecord, ...]:
        """Return the threads that run, by number."""
        with self._lock:
            lanes = sorted((lane for lane in self._lanes.values() if lane.alive), key=lambda lane: lane.number)
            followed = self._chosen or self.followed
        return tuple(ThreadRecord(lane.number, lane.name, lane is followed, len(lane.views)) for lane in lanes)
