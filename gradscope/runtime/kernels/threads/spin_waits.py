"""What one thread waits for of another: awake at first, where that is compiled, and without the interpreter's lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy

from .. import loading

__all__ = ["Signal", "waits_awake"]

_AWAKE = 200.0
"""Microseconds that a thread waits awake before it sleeps: to wake it takes some 20, which others wait for."""

_Loop = Callable[[numpy.ndarray, int, int, int], None]


def waits_awake() -> bool:
    """Whether waiting is compiled."""
    return loading.compiled("waiting_loops") is not None


class Signal:
    """Is sent again and again by some threads, and waited for by another.

    Examples
    --------
    >>> signal = Signal()
    >>> seen = signal.count
    >>> signal.send()
    >>> signal.comes_after(seen)
    True
    """

    def __init__(self) -> None:
        self._counter = numpy.zeros(8, numpy.int64)  # of which the first counts: no other memory is in its cache line
        self._loop: _Loop | None = getattr(loading.compiled("waiting_loops"), "wait_for_change", None)

    @property
    def count(self) -> int:
        """How often it was sent: more often than before, where it was."""
        return int(self._counter[0])

    def send(self) -> None:
        """Have whoever waits go on."""
        self._counter[0] += 1

    def comes_after(self, seen: int, more: float = 0.0) -> bool:
        """Whether it is sent while this waits awake; where waiting is not compiled it does not wait.

        Parameters
        ----------
        seen : int
            The count since which it matters.
        more : float
            Microseconds to wait when it has been sent.
        """
        if self._loop is not None:
            turns = _turns_a_microsecond(self._loop)
            self._loop(self._counter, seen, int(_AWAKE * turns), int(more * turns))
        return self.count != seen


@cache
def _turns_a_microsecond(loop: _Loop) -> float:
    counter, turns, took = numpy.zeros(1, numpy.int64), 1_000, []
    for _ in range(4):  # others may take the processor away
        started = time.perf_counter_ns()
        loop(counter, 0, turns, 0)
        took.append(time.perf_counter_ns() - started)
    return turns * 1_000 / max(min(took), 1)
