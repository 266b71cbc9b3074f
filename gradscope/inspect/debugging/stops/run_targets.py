"""What a program was told when it was let go, and whether it has got there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...records.records import StopReason
from ..session.debugged_backward import CallFacts, TaskView

__all__ = ["Goal", "Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """What the program was told when it was let go: until when to run.

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
class Goal:
    """An order, with where it was given."""

    order: Order
    kind: str
    count: int
    number: int
    depth: int
    module: str
    after: int = -1

    @classmethod
    def at(cls, order: Order, number: int = 0, depth: int = 1, module: str = "") -> Goal:
        """Return the goal of an order given in backward `number`, so deep in others, in the backward of `module`."""
        return cls(order, order.kind, order.count, number, depth, module)

    @property
    def free(self) -> bool:
        """Whether no node is a reason to stop."""
        return self.kind == "cont"

    def lost(self) -> None:
        """The backward has ended before the place was reached: stop at the next chance."""
        if self.kind in ("out", "run-to"):
            self.kind, self.count = "step", 1

    def reached(self, view: TaskView, call: Any, depth: int) -> StopReason | None:
        """Return why to stop before a node, None if it is not the place."""
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
            case "run-to" if view.number == self.number and view.index == self.order.index:
                return StopReason("run-to", f"reached node {self.order.index}")
            case "until" if self.order.matches is not None:
                if self.order.matches(CallFacts(view, call.node, view.index)):
                    return StopReason("run-to", f"reached {self.order.text}")
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
