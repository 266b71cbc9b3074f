"""Commands that let a program run on, and the places at which it stops again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...records.records import StopReason
from ..session.debugged_backward import CallFacts, TaskView

__all__ = ["RunCommand", "RunTarget"]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command that lets the program run: until when.

    Attributes
    ----------
    kind : str
        ``'step'`` (`count` nodes), ``'into'``, ``'out'``, ``'run-to'`` (node `index`), ``'until'`` (a node that
        `matches`), ``'cont'`` or ``'entry'`` (the next backward).
    text : str
        What `matches` looks for.
    """

    kind: str
    count: int = 1
    index: int = -1
    matches: Callable[[Any], bool] | None = None
    text: str = ""


@dataclass(slots=True)
class RunTarget:
    """Where a command stops the program, counted from where it was given."""

    command: RunCommand
    kind: str
    count: int
    number: int
    depth: int
    module: str
    after: int = -1

    @classmethod
    def at(cls, command: RunCommand, number: int = 0, depth: int = 1, module: str = "") -> RunTarget:
        """Return the target of a command given in backward `number`, so deep in others, in the backward of `module`."""
        return cls(command, command.kind, command.count, number, depth, module)

    @property
    def free(self) -> bool:
        """Whether no node is a reason to stop."""
        return self.kind == "cont"

    def lost(self) -> None:
        """Stop at the next node: the backward has ended before the place was reached."""
        if self.kind in ("out", "run-to"):
            self.kind, self.count = "step", 1

    def reached(self, view: TaskView, call: Any, depth: int) -> StopReason | None:
        """Return why to stop before a node; None if the place is another."""
        first = view.index == 0
        entry = StopReason("entry", f"first node of backward {view.number}")
        match self.kind:
            case "entry":
                return entry if first and (view.number > self.number or depth > self.depth) else None
            case "into":
                return entry if first else StopReason("step", "next node")
            case "step" if depth <= self.depth:
                self.count -= 1
                if not self.count:
                    return entry if first else StopReason("step", "next node")
            case "run-to" if view.number == self.number and view.index == self.command.index:
                return StopReason("run-to", f"reached node {self.command.index}")
            case "until" if self.command.matches is not None:
                if self.command.matches(CallFacts(view, call.node, view.index)):
                    return StopReason("run-to", f"reached {self.command.text}")
            case "out" if depth <= self.depth:
                return self._left(view, call, entry if first else StopReason("step", "next node"))
        return None

    def _left(self, view: TaskView, call: Any, elsewhere: StopReason) -> StopReason | None:
        if view.number != self.number:
            return elsewhere
        module = CallFacts(view, call.node, view.index).module
        if self.module and module != self.module and not module.startswith(self.module + "."):
            return StopReason("step", f"the backward of {self.module} has ended")
        return None
