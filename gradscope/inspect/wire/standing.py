"""Where a program stands: what a debugger sends to its front whenever that changes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..records.records import NodeRecord
from .messages import BreakpointRecord, Standing

if TYPE_CHECKING:
    from ..debugging.session.debugger import Debugger

__all__ = ["StandingSource", "breakpoint_record"]

_KEPT = 4


class StandingSource:
    """Reads where a debugger stands, and numbers the orders in which its nodes were.

    Parameters
    ----------
    debugger : Debugger
        What is read; on any thread.
    """

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._serial = itertools.count(1).__next__
        self._arrangements: list[tuple[int, Any, Sequence[NodeRecord]]] = []
        self._next = itertools.count(1).__next__
        self._lock = threading.Lock()

    def read(self) -> Standing:
        """Return where the debugger stands."""
        debugger = self._debugger
        with self._lock:  # a later reading must have a larger serial
            nodes = debugger.nodes
            return Standing(
                serial=self._serial(),
                state=debugger.state,
                reason=debugger.reason,
                task_index=debugger.task_index,
                task_count=debugger.task_count,
                node_count=len(nodes),
                arrangement=self._number(nodes),
                current=debugger.current,
                live=debugger.live,
                ended=debugger.ended,
                recorded=debugger.recorded,
                record_always=debugger.record_always,
                exit_status=debugger.exit_status,
                breakpoints=tuple(map(breakpoint_record, debugger.breakpoints)),
                catching=debugger.catching,
                limits=debugger.limits,
                watches=debugger.watches,
                threads=debugger.threads,
                tasks=debugger.tasks,
            )

    def nodes(self, arrangement: int) -> Sequence[NodeRecord]:
        """Return the nodes in an order that was sent lately, by its number, else those that are shown."""
        for number, _, nodes in tuple(self._arrangements):
            if number == arrangement:
                return nodes
        return self._debugger.nodes

    def _number(self, nodes: Sequence[NodeRecord]) -> int:
        if not nodes:
            return 0
        order = getattr(nodes, "order", None)
        for number, known, _ in self._arrangements:
            if known is order:
                return number
        number = self._next()
        self._arrangements = [(number, order, nodes), *self._arrangements[: _KEPT - 1]]
        return number


def breakpoint_record(point: Any) -> BreakpointRecord:
    """Return a breakpoint as it is sent."""
    return BreakpointRecord(**{name: getattr(point, name) for name in BreakpointRecord.__struct_fields__})
