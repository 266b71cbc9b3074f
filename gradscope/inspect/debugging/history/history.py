"""The history of a session: the backwards it has followed, and in which order their nodes ran."""

from __future__ import annotations

from typing import NamedTuple

from ..session.debugged_backward import TaskView
from .history_policy import HistoryPolicy
from .past_gradients import ValueStore

__all__ = ["History", "HistoryPosition"]

_SLACK = 1.25


class HistoryPosition(NamedTuple):
    """Right before a node ran."""

    view: TaskView
    place: int


class History:
    """The backwards followed so far, and every node that ran while somebody looked, in order."""

    def __init__(self, policy: HistoryPolicy) -> None:
        self.policy = policy
        self.store = ValueStore(policy.max_bytes)
        self.positions: list[HistoryPosition] = []
        self._views: list[TaskView] = []
        self._nodes = 0

    def begin(self, view: TaskView) -> None:
        """Take in a backward."""
        self._views.append(view)

    def ended(self, view: TaskView) -> None:
        """Note that a backward has ended; let it go if nothing has been seen of it, or old ones if there are many."""
        if not view.order:
            self._views.remove(view)
            return
        self._nodes += len(view.order)
        # Trimming does not happen every time, because it is a walk over everything.
        if self._nodes > self.policy.max_nodes * _SLACK:
            self._trim()

    def _trim(self) -> None:
        gone: set[int] = set()
        for view in [known for known in self._views if not known.live][:-1]:
            if self._nodes <= self.policy.max_nodes:
                break
            self._nodes -= len(view.order)
            gone.add(id(view))
        self._views = [known for known in self._views if id(known) not in gone]
        self.positions = [position for position in self.positions if id(position.view) not in gone]

    def backward(self, number: int) -> TaskView | None:
        """Return a backward by its number, None where nothing of it is kept."""
        return next((view for view in self._views if view.number == number), None)

    def entered(self, view: TaskView) -> None:
        """Note that a node is about to run."""
        if not self.positions or self.positions[-1] != (view, view.index):
            self.positions.append(HistoryPosition(view, view.index))
