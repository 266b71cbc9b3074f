"""Iterations of a program: which backwards lead to one round of optimizer steps."""

from __future__ import annotations

from typing import Any

__all__ = ["IterationCounter"]


class IterationCounter:
    """Decides to which iteration each backward belongs.

    An iteration is a training step: the backwards that lead to one round of optimizer steps. It ends when as many
    different optimizers have stepped as in the largest round so far and another backward begins; so a GAN's two
    optimizers share an iteration, and so do the backwards of gradient accumulation. A program without an optimizer
    has an iteration for each outermost backward. Once the user calls :meth:`begin`, only the user decides.

    Examples
    --------
    >>> counter = IterationCounter()
    >>> def step(optimizer):
    ...     number = counter.task_started(counter.tasks)
    ...     moved = counter.stepped(optimizer)
    ...     return number, moved
    >>> step("D"), step("G"), step("D"), step("G")  # the second backward turns out to belong to the first's iteration
    ((1, None), (2, (1, 1)), (2, None), (2, None))
    """

    def __init__(self) -> None:
        self.number = 0
        self.tasks = 0
        self._by_hand = False
        self._round: set[Any] = set()
        self._size = 0
        self._since = 0  # the first task since the last step
        self._last_round: set[Any] = set()
        self._ended = False

    def task_started(self, task: int) -> int:
        """Return the iteration of an outermost backward; `task` grows from one to the next."""
        self.tasks += 1
        if not self.number or (not self._by_hand and self._over()):
            self._begin()
        if self._ended:
            self._since = task
            self._ended = False
        return self.number

    def stepped(self, optimizer: Any) -> tuple[int, int] | None:
        """Note an optimizer's step.

        Returns
        -------
        tuple of int, or None
            ``(task, iteration)``: all tasks from that one on belong to that iteration, not where they were put.
        """
        if self._by_hand or not self.number:
            return None
        moved = None
        if not self._size:
            # Until now each backward counted as an iteration of its own; all of them belong to the first one.
            if self.number > 1:
                moved = self._since, 1
                self.number = 1
        elif not self._round and self._last_round and optimizer not in self._last_round:
            # This is another optimizer of the iteration that seemed to be over.
            self.number -= 1
            self._round = self._last_round
            moved = self._since, self.number
        self._round.add(optimizer)
        self._size = max(self._size, len(self._round))
        self._ended = True
        return moved

    def begin(self) -> int:
        """Begin an iteration by hand; return its number."""
        self._by_hand = True
        self._begin()
        return self.number

    def _over(self) -> bool:
        if not self._size:
            return True
        return self._ended and len(self._round) >= self._size

    def _begin(self) -> None:
        self.number += 1
        self._last_round, self._round = self._round, set()
