"""The end of a program that is run for a number of steps alone."""

from __future__ import annotations

import weakref
from typing import Any

from ..records.optimizer_steps import OptimizerHooks
from .program_facts import Fact
from .watch import Watch, guarded

__all__ = ["EnoughSeen", "step_limit"]


class EnoughSeen(BaseException):
    """Leaves a program through its optimizer's step: as many steps have been seen as were asked for."""


class StepLimit(Watch):
    """Ends the program after a number of steps of one optimizer.

    Parameters
    ----------
    steps : int
        How many.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._hooks = OptimizerHooks(after=self._stepped)
        self._taken: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Listen to the optimizers that there are by now."""
        self._hooks.look()

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        taken = self._taken[optimizer] = self._taken.get(optimizer, 0) + 1
        if taken >= self._steps:
            raise EnoughSeen(f"{taken} steps of {type(optimizer).__name__}")


def step_limit(steps: int) -> Fact:
    """Return what ends a program by :class:`EnoughSeen` after so many steps of one optimizer."""
    return Fact("step limit", lambda program: StepLimit(steps), lambda watch: None, backward=True)
