"""Decides whether the program stops at a node: for breakpoints, logpoints, and the first NaN or infinity."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ...adapters import Adapter
from ...diagnosis.nan.bad_values import bad_value_text
from ...records.records import Location, StopReason, operator_name
from ...records.tensor_statistics import count_bad
from ..session.debugged_backward import CallFacts, SeenNode, TaskView
from ..session.pause_context import PauseContext
from . import condition_names
from .breakpoints import Breakpoint, BreakpointTable
from .last_iteration import Iterations, LastIteration

__all__ = ["BadBegin", "StopDecision"]

_Found = tuple[StopReason, Breakpoint | None] | None
_KINDS = {"nan": (0, "a NaN"), "inf": (1, "an infinity")}


class BadBegin(NamedTuple):
    """The first node that has made a NaN or an infinity of finite numbers, and in which backward."""

    kind: str
    name: str
    location: Location | None
    backward: int


class StopDecision:
    """Asks the breakpoints of a session about the node that runs.

    Parameters
    ----------
    log : callable
        Takes what a logpoint prints.

    Attributes
    ----------
    bad_begin : BadBegin or None
        Where a backward has made a NaN or an infinity for the first time; None as long as none was seen to.
    """

    def __init__(self, adapter: Adapter, table: BreakpointTable, log: Callable[[str], None]) -> None:
        self.iterations = Iterations()
        self.bad_begin: BadBegin | None = None
        self._adapter = adapter
        self._table = table
        self._log = log

    # --- the same node in the iteration before ---

    def remember(self, view: TaskView, call: Any, seen: SeenNode | None) -> None:
        """Tell the node that is about to run from others in its backward, for ``last`` and ``changed``."""
        if view.counts is None or seen is None or seen.incoming is None:
            return
        facts = CallFacts(view, call.node, view.index)
        view.identity = self.iterations.identity(view.site, facts, view.counts)
        self.iterations.note(view.site, view.identity, next(iter(seen.incoming.summaries), None))

    def about(self, view: TaskView) -> Callable[[Hashable], dict[str, Callable[[], Any]]]:
        """Return what gives the names ``last`` and ``changed`` at the current node of a backward."""
        identity, iterations, adapter = view.identity, self.iterations, self._adapter

        def names(asker: Hashable) -> dict[str, Callable[[], Any]]:
            changed = iterations.changed(asker, identity)
            return {
                "last": lambda: LastIteration(None) if identity is None else iterations.last(identity),
                "changed": lambda: lambda value: changed(condition_names.host(adapter, value)),
            }

        return names

    # --- before and after a node ---

    def before(self, view: TaskView, call: Any) -> _Found:
        """Return why a breakpoint stops before a node, and which."""
        if view.index == 0:
            found = self.entering(call)
            if found is not None:
                return found
        facts = CallFacts(view, call.node, view.index)
        for point in self._table.all():
            if point.matches(facts):
                found = self._at(point, view, call)
                if found is not None:
                    return found
        return None

    def entering(self, call: Any) -> _Found:
        """Return why to stop where a backward begins with a NaN or an infinity, and the breakpoint that wants it."""
        for kind, point in self._table.on_values():
            place, word = _KINDS[kind]
            found = self._has(call.grad_outputs, place) and self._hit(point, f"{word} enters this backward", kind)
            if found:
                return found
        return None

    def after(self, view: TaskView, call: Any) -> _Found:
        """Return why to stop after a node that has made a NaN or an infinity, and the breakpoint that wants it."""
        for kind, point in self._table.on_values():
            place, _ = _KINDS[kind]
            if self._has(call.grad_inputs, place) and not self._has(call.grad_outputs, place):
                name, inherited = self._adapter.node_name(call.node), self._inherited(call)
                view.note_inherited(call.node, inherited)
                if self.bad_begin is None and not inherited:
                    self.bad_begin = BadBegin(kind, name, self._adapter.location(call.node), view.number)
                found = self._hit(point, bad_value_text(name, kind, inherited), kind)
                if found is not None:
                    return found
        return None

    def _inherited(self, call: Any) -> str:
        """Return the saved tensor that a node has a NaN or an infinity from; empty where it has made it."""
        # The diagnosis loads when it is asked for.
        from ...diagnosis.nan.nan_stops import inherited_from

        adapter = self._adapter
        tensors = {one.name: one.data for one in adapter.saved(call.node) if not one.released}
        saved = {name: adapter.to_host(value) for name, value in tensors.items() if adapter.is_tensor(value)}
        produced = [None if grad is None else adapter.to_host(grad) for grad in call.grad_inputs]
        return inherited_from(operator_name(adapter.node_name(call.node)), produced, saved)

    def _at(self, point: Breakpoint, view: TaskView, call: Any) -> _Found:
        text = f"breakpoint {point.id} ({point})"
        if point.condition is None and point.log is None:
            return self._hit(point, text)
        place = PauseContext(self._adapter, view, call, None, view.user_frames(), self.about(view))
        try:
            if not point.holds(place.namespace(point.id)):
                return None
        except Exception as error:
            words = f"its condition `{point.condition}` raised {type(error).__name__}: {error}"
            return self._hit(point, f"breakpoint {point.id}: {words}")
        if point.log is None:
            return self._hit(point, text)
        if not point.passes_by():
            self._print(point, place, view, call)
        return None

    def _print(self, point: Breakpoint, place: PauseContext, view: TaskView, call: Any) -> None:
        try:
            value = place.value(point.log or "", point.id)
            text = value if isinstance(value, str) else repr(value)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        self._table.hit(point)
        self._log(f"logpoint {point.id} at node {view.index} {self._adapter.node_name(call.node)}: {text}")

    def _hit(self, point: Breakpoint | None, text: str, kind: str = "breakpoint") -> _Found:
        if point is None:
            return StopReason(kind, text), None
        return None if point.passes_by() else (StopReason(kind, text, point.id), point)

    def _has(self, grads: Sequence[Any], kind: int) -> bool:
        return any(count_bad(self._adapter.to_host(g))[kind] for g in grads if g is not None)
