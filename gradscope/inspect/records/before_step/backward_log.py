"""Which parameters the backwards before an optimizer's step reached: what tells why ranks disagree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ...adapters import Adapter

__all__ = ["BackwardLog", "LoggedBackward"]

_KEPT = 16  # backwards before a step: those of gradient accumulation, as far back as one is asked for
_CHECKPOINT = "CheckpointFunctionBackward"


class LoggedBackward(NamedTuple):
    """A backward before a step, with those that ran inside of it.

    Attributes
    ----------
    checkpointed : bool
        Whether a re-entrant checkpoint was in it, which runs a backward of its own.
    unreached : tuple of int
        Which of the step's tensors it had no way to, by their places.
    forward, called : str
        The newest line before it that called an outermost module, and the line that called it, as ``'file:line'``;
        empty where they are not known.
    """

    checkpointed: bool
    unreached: tuple[int, ...]
    forward: str = ""
    called: str = ""


class _Running:
    """A backward: the leaves that it may reach, by their ids, and whether a checkpoint is in it."""

    __slots__ = ("called", "checkpointed", "forward", "leaves", "number")

    def __init__(self, number: int, forward: str, called: str) -> None:
        self.number = number
        self.forward = forward
        self.called = called
        self.leaves: set[int] = set()
        self.checkpointed = False


class BackwardLog:
    """Follows the backwards of a program, on its threads.

    Attributes
    ----------
    count : int
        How many have begun, those inside of others aside.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.count = 0
        self._adapter = adapter
        self._newest: deque[_Running] = deque(maxlen=_KEPT)
        self._stepped: dict[int, int] = {}

    def started(self, task: Any, *, inside: bool, forward: str = "", called: str = "") -> None:
        """Note a backward that begins, or one that begins inside of another.

        Parameters
        ----------
        forward, called : str
            As :class:`LoggedBackward` has them.
        """
        if not inside or not self._newest:
            self.count += 1
            self._newest.append(_Running(self.count, forward, called))
        running = self._newest[-1]
        leaves, names = self._adapter.task_reach(task)
        running.leaves.update(map(id, leaves))
        running.checkpointed = running.checkpointed or _CHECKPOINT in names

    @property
    def leaves(self) -> AbstractSet[int]:
        """The ids of the leaves that the newest backward may reach."""
        return self._newest[-1].leaves if self._newest else frozenset()

    def before_step(
        self, optimizer: int, tensors: Sequence[tuple[int, int, str]], names: Callable[[], Mapping[int, str]]
    ) -> list[LoggedBackward]:
        """Return the newest backwards since the last step of an optimizer, the oldest first.

        Parameters
        ----------
        tensors : sequence of (int, int, str)
            The places of the parameters that are asked for, their ids, and what they are called.
        names : callable
            Returns what leaves are called, by their ids: a whole parameter goes by the name of the parts it stands for.
            Asked only where a parameter itself was no leaf of a backward.
        """
        since, self._stepped[optimizer] = self._stepped.get(optimizer, 0), self.count
        found = []
        for backward in self._newest:
            if backward.number > since:
                unreached = [(place, name) for place, identity, name in tensors if identity not in backward.leaves]
                if unreached:
                    called = names()
                    reached = {called.get(leaf) for leaf in backward.leaves}
                    unreached = [(place, name) for place, name in unreached if name not in reached]
                places = tuple(place for place, _ in unreached)
                found.append(LoggedBackward(backward.checkpointed, places, backward.forward, backward.called))
        return found
