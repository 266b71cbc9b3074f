"""How much of its time a program that runs free is looked at, where nothing is to stop it."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter

__all__ = ["LookingTime"]

_SHARE = 0.1
"""Of the program's time at most, looking may take."""


class LookingTime:
    """Decides after each backward whether the next ones are let alone, by how long both kinds of iteration take.

    An iteration that is looked at takes longer than one that is not; that is what looking costs. So many are let alone
    afterwards that it costs a tenth of the time: none where it costs less than that anyway.

    Parameters
    ----------
    clock : callable, optional
        Returns seconds.

    Examples
    --------
    >>> times = iter([0, 3, 4, 5, 6, 9])
    >>> looking = LookingTime(lambda: next(times))
    >>> looking.ended(), looking.ended()
    (False, True)
    >>> looking.passes(), looking.passes()
    (False, True)
    >>> looking.ended(), looking.ended()
    (False, True)
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._plain = math.inf
        self._until = -math.inf
        self._last: float | None = None
        self._switching = 0.0
        self._began: float | None = None

    def interrupted(self) -> None:
        """Note that the program has been held up: the iteration that runs tells nothing."""
        self._last = self._began = None

    def ended(self) -> bool:
        """Note that a backward has ended that was looked at; return whether to let the next ones alone."""
        now = self._clock()
        last, self._last = self._last, now
        if last is None:  # its forward pass was not looked at
            return False
        took, self._began = now - last, None
        if self._plain == math.inf:  # one iteration is let alone to see what it takes
            return True
        cost = took - self._plain
        # Looking again costs that twice: the backward at which it begins is looked at without its forward pass.
        self._until = last + (2 * cost + self._switching) / _SHARE
        return cost > _SHARE * took

    def switched(self, seconds: float) -> None:
        """Note how long it has taken to begin to look again."""
        self._switching = seconds

    def passes(self) -> bool:
        """Note that a backward begins that is let alone; return whether to look at it and at those that follow."""
        now = self._clock()
        if self._began is not None:
            self._plain = min(self._plain, now - self._began)
        self._began = now
        looks = self._plain < math.inf and now >= self._until
        if looks:
            self.interrupted()
        return looks
