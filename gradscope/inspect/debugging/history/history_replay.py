"""Going through what has been recorded, back and forth; the program itself stands still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ...adapters import Adapter
from ...records.records import NodeRecord, StopReason
from ..session.debugged_backward import TaskView
from ..session.pause_context import About, PauseContext
from ..stops.breakpoints import Breakpoint, BreakpointTable
from ..stops.condition_names import SavedNamespace, makers
from .history import History, HistoryPosition

__all__ = ["PastContext", "Replay", "ReplayError"]


NOTHING_BEFORE = (
    "nothing is recorded before this node\n"
    "What runs free keeps norms alone: `record on` records all of it from now on, `break nan` from the start."
)
"""Why one cannot go back, and what to do for the next time."""


class ReplayError(RuntimeError):
    """The history has no node where the cursor was to go."""


class PastNode:
    """A node that has run, as a breakpoint may ask about it."""

    def __init__(self, view: TaskView, record: NodeRecord) -> None:
        self._record = record
        self.task, self.iteration = view.number, view.iteration

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


class PastContext(PauseContext):
    """The program as it was before a node that has run.

    Gradients are those recorded; saved tensors are there as long as the node's backward has not ended.
    """

    def __init__(
        self, adapter: Adapter, position: HistoryPosition, frames: list[Any], about: About | None = None
    ) -> None:
        super().__init__(adapter, position.view, None, None, frames if position.view.live else [], about)
        self._index = position.place
        self._seen = position.view.seen(position.place)

    def _makers(self) -> dict[str, Callable[[], Any]]:
        return makers(
            self._adapter,
            record=lambda: self._view.summarized(self._index),
            index=self._index,
            grads=lambda: self._values("incoming"),
            produced=lambda: self._values("produced"),
            saved=self._saved,
            norm=self._norm,
        )

    def _values(self, side: str) -> Any:
        group = getattr(self._seen, side) if self._seen is not None else None
        if group is None:
            return None if side == "produced" else ()
        values = group.tensors(self._adapter)
        if values is None and not group.dropped:
            raise RuntimeError(
                f"the gradients of node {self._index} have no values: they have a shape and a dtype alone"
            )
        if values is None:
            raise RuntimeError(
                f"the gradients of node {self._index} are kept as numbers only: the budget for values is used up\n"
                "`norm` and `node` still work; HistoryPolicy(max_bytes=...) keeps more."
            )
        return values

    def _norm(self) -> float:
        summaries = self._seen.incoming.summaries if self._seen is not None and self._seen.incoming is not None else ()
        return summaries[0].norm if summaries and summaries[0] is not None else 0.0

    def _saved(self) -> SavedNamespace:
        node = self._view.live_node(self._view.order[self._index])
        if node is None:
            raise RuntimeError(f"backward {self._view.number} has ended, and its saved tensors have been released")
        return SavedNamespace(list(self._adapter.saved(node)))

    def _incoming(self) -> list[Any]:
        return list(self._values("incoming"))

    def _slots(self, slot: int) -> tuple[list[Any], list[Any], str]:
        if not self._view.live:
            raise ValueError(
                f"this node has run, and backward {self._view.number} has ended: its gradients cannot be changed"
            )
        raise ValueError("this node has run: go back to the live node to change a gradient, or ask `what-if` here")


def ran_free_between(later: HistoryPosition, earlier: HistoryPosition) -> str:
    """Return what ran between two nodes of the history that follow each other; empty if nothing did."""
    if earlier.view is later.view:
        first, last = earlier.place + 1, later.place - 1
        return "" if first > last else f"node {first}" if first == last else f"nodes {first} to {last}"
    first, last = earlier.view.number + 1, later.view.number - (later.place < len(later.view.order))
    if first <= last:
        return f"backward {first}" if first == last else f"backwards {first} to {last}"
    inner = later.view.number < earlier.view.number  # the later node goes on with the backward around the earlier one's
    return "" if inner or not later.place else f"the first {later.place} nodes of backward {later.view.number}"


class Replay:
    """The cursor in a history.

    Attributes
    ----------
    cursor : int or None
        Index into the positions of the history; None while the session is where the program is.
    gap : str
        What ran free between where the last step by nodes began and where it has led; empty where nothing did.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.cursor: int | None = None
        self.gap = ""

    @property
    def position(self) -> HistoryPosition | None:
        """Where the cursor is."""
        return None if self.cursor is None else self._history.positions[self.cursor]

    def back(self, count: int, end: int, live: HistoryPosition | None = None) -> StopReason:
        """Go `count` nodes back; `end` is the first position that is not in the past, `live` where the program is."""
        here = end if self.cursor is None else self.cursor
        if not min(here, len(self._history.positions)):
            raise ReplayError(NOTHING_BEFORE)
        self.cursor = max(0, here - count)
        position = self._history.positions[self.cursor]
        passed = self._history.positions[self.cursor : here + 1]
        if here == len(self._history.positions) and live is not None:
            passed.append(live)
        gap = self.gap = self._gap(passed)
        steps = here - self.cursor
        if steps == 1 and gap:
            elsewhere = passed[-1].view is not position.view
            place = f"in backward {position.view.number}" if elsewhere else f"#{position.place}"
            return StopReason("replay", f"the nearest recorded node is {place}: {gap}")
        if position == live:
            return self._text(f"before node {position.place}, which has run")
        text = self._text("one node back" if steps == 1 else f"{steps} nodes back")
        return replace(text, text=f"{text}; {gap}") if gap else text

    def forward(self, count: int, end: int, live: HistoryPosition | None = None) -> StopReason:
        """Go `count` nodes on, to the live node at most; `live` is where the program is."""
        assert self.cursor is not None
        to = self.cursor + count
        passed = self._history.positions[self.cursor : to + 1]
        if to >= end and live is not None:
            passed.append(live)
        reason = self._to(to, end, "next node")
        gap = self.gap = self._gap(passed)
        return replace(reason, text=f"{reason.text}; {gap}") if gap else reason

    @staticmethod
    def _gap(passed: Sequence[HistoryPosition]) -> str:
        """Return what ran free between positions, the earliest first, and what to do for the next time."""
        gaps = filter(None, (ran_free_between(later, earlier) for earlier, later in pairwise(passed)))
        gap = next(gaps, "")
        what = "it" if gap.startswith(("node ", "backward ")) else "them"
        return f"{gap} ran free (`record on` records {what})" if gap else ""

    def live(self, end: int) -> StopReason:
        """Go to where the program is."""
        return self._to(end, end, "")

    def to(self, view: TaskView, index: int, end: int) -> StopReason:
        """Go to a node of a backward."""
        places = (i for i, position in enumerate(self._history.positions[:end]) if position == (view, index))
        found = next(places, None)
        if found is None:
            raise ReplayError(
                f"there is no recorded node {index} here\n`record on` records while the program runs free."
            )
        return self._to(found, end, f"reached node {index}")

    def seek(self, wanted: Callable[[HistoryPosition], str | None], end: int, *, forward: bool) -> StopReason:
        """Go to the next node, or the one before, for which `wanted` gives a reason; to the end if there is none."""
        here = end if self.cursor is None else self.cursor
        for place in range(here + 1, end) if forward else range(here - 1, -1, -1):
            text = wanted(self._history.positions[place])
            if text is not None:
                return self._to(place, end, text)
        if forward:
            return self.live(end)
        if not min(here, len(self._history.positions)):
            raise ReplayError(NOTHING_BEFORE)
        self.cursor = 0
        return self._text("the first node that was recorded")

    def _to(self, place: int, end: int, text: str) -> StopReason:
        self.gap = ""
        if place < end:
            self.cursor = place
            return self._text(text)
        self.cursor = None
        return StopReason("live", "back where the program is")

    @staticmethod
    def _text(text: str) -> StopReason:
        return StopReason("replay", f"{text} (recorded)")


def why_stop(table: BreakpointTable, position: HistoryPosition, place: Callable[[], PastContext]) -> str | None:
    """Return why a breakpoint or a catch stops at a node of the past, None if none does; it is not counted as a hit.

    Parameters
    ----------
    place : callable
        Returns what conditions are asked of.
    """
    view, index = position
    for kind, _ in table.on_values():
        if _appeared(view.summarized(index), kind):
            return f"{view.record(index).name} produced {'a NaN' if kind == 'nan' else 'an infinity'}"
    points = [point for point in table.all() if point.enabled and point.log is None]
    node = PastNode(view, view.record(index)) if points else None
    for point in points:
        if node is not None and point.matches(node) and _holds(point, place):
            return f"breakpoint {point.id} ({point})"
    return None


def _appeared(record: NodeRecord, kind: str) -> bool:
    def count(group: Any) -> int:
        return sum(getattr(summary, f"{kind}s") for summary in group or () if summary is not None)

    return bool(count(record.grad_inputs)) and not count(record.grad_outputs)


def _holds(point: Breakpoint, place: Callable[[], PastContext]) -> bool:
    try:
        return point.holds(place().namespace(point.id))
    except Exception:
        # What the condition asks for may not have been kept: show the node rather than pass over it.
        return True
