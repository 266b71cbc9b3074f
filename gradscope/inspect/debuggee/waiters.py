"""Threads that wait for a change, which an exception may interrupt at any moment, Ctrl-C above all."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

__all__ = ["Waiters"]

_SLICE = 0.5  # seconds


class Waiters:
    """The threads that wait for something to change.

    ``threading.Condition`` is Python code: Ctrl-C that comes as its wait begins or ends leaves a lock that is released
    twice, or never. Here only C code holds a lock.

    Examples
    --------
    >>> import threading
    >>> waiters, done = Waiters(), []
    >>> def finish():
    ...     done.append(True)
    ...     waiters.wake()
    >>> threading.Thread(target=finish).start()
    >>> waiters.wait(lambda: bool(done))
    True
    >>> waiters.wait(lambda: False, timeout=0.01)
    False
    """

    def __init__(self) -> None:
        self._bells: list[threading.Lock] = []

    def wait(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Block until `ready()` is true; return whether it is.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without end by default.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        bell = threading.Lock()
        bell.acquire()
        try:
            self._bells.append(bell)
            while not ready():
                left = _SLICE if deadline is None else min(deadline - time.monotonic(), _SLICE)
                if left <= 0:
                    return False
                # It waits in slices, so that Ctrl-C reaches a main thread that waits here on every platform.
                bell.acquire(timeout=left)
            return True
        finally:
            with contextlib.suppress(ValueError):
                self._bells.remove(bell)

    def wake(self) -> None:
        """Let all threads that wait look again."""
        for bell in tuple(self._bells):
            with contextlib.suppress(RuntimeError):  # it has been released already
                bell.release()
