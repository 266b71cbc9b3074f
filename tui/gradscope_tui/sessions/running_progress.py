"""How a program that runs gets on: for how long, how many backwards a second, at which line."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["QUIET", "RunningProgress"]

QUIET = 0.15
"""Seconds in which a program that runs is not called running: a step that takes less leaves the screen as it is."""

_SOON = 0.2
"""Seconds after which it is told how it gets on."""


class RunningProgress:
    """How a program gets on from one stop to the next.

    Parameters
    ----------
    clock : callable
        Tells seconds.

    Examples
    --------
    >>> times = iter([0.0, 0.1, 4.0])
    >>> progress = RunningProgress(lambda: next(times))
    >>> progress.begin(3)
    >>> progress.is_quiet(), progress.text(11, "is at train.py:31")
    (True, '4 s  2.0 backwards/s  at train.py:31')
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._first = 0

    def begin(self, backwards: int) -> None:
        """Note that the program runs, and how many backwards there have been; once until it stops."""
        if self._since is None:
            self._since, self._first = self._clock(), backwards

    def end(self) -> None:
        """Note that it has stopped."""
        self._since = None

    def is_quiet(self) -> bool:
        """Whether it has begun a moment ago, so that it may have stopped again before anybody sees that it runs."""
        return self._since is not None and self._clock() - self._since < QUIET

    def text(self, backwards: int, place: str) -> str:
        """Return how it gets on.

        Parameters
        ----------
        backwards : int
            How many there have been by now.
        place : str
            Where it is, as the program tells it: ``'is at train.py:31'``; empty where that is not known.
        """
        seconds = 0.0 if self._since is None else self._clock() - self._since
        if seconds < _SOON:
            return ""
        done = backwards - self._first
        rate = f"{done / seconds:.1f} backwards/s" if done > 1 else ""
        return "  ".join(part for part in (f"{seconds:.0f} s", rate, place.removeprefix("is ")) if part)
