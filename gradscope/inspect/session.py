"""The debuggee's side of a session: it hears of every node, decides whether to stop, and waits at the gate.

All methods but the flags run on the program's own threads. One thread is followed at a time: the first that is in a
backward; backwards that other threads call meanwhile run through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from . import expressions
from .adapters import Adapter, Observer
from .breakpoints import Breakpoint, BreakpointTable
from .gate import Gate, NotParkedError, ProgramAborted
from .records import NodeRecord, SessionState, StopReason
from .snapshots import gradient_summaries, saved_records
from .standing import Standing
from .statistics import count_bad
from .tasks import CallFacts, TaskView
from .tracking import Tracker, module_of_parameter

__all__ = ["Order", "Session"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """What the program was told when it was let go: until when to run.

    Attributes
    ----------
    kind : str
        ``'step'`` (`count` nodes), ``'into'``, ``'out'``, ``'run-to'`` (node `index`), ``'cont'`` or ``'entry'``
        (the next backward).
    count, index : int
    """

    kind: str
    count: int = 1
    index: int = -1


@dataclass(slots=True)
class _Goal:
    """An order, with where it was given."""

    kind: str
    count: int
    index: int
    number: int
    depth: int
    module: str


class Session(Observer):
    """The observer that stops the program.

    Parameters
    ----------
    adapter : Adapter
    gate : Gate
    breakpoints : BreakpointTable
    report : callable
        Called with the state and the reason when the program stops.

    Attributes
    ----------
    task_count : int
        Backwards followed so far.
    tasks_seen : int
        Backwards started so far, on any thread.
    nodes : list of NodeRecord
        Of the backward where the program stopped last.
    current : int
    pause_requested, abort_requested : bool
        Set by the other side.
    """

    def __init__(
        self,
        adapter: Adapter,
        gate: Gate,
        breakpoints: BreakpointTable,
        report: Callable[[SessionState, StopReason], None],
    ) -> None:
        self.adapter = adapter
        self.task_count = 0
        self.tasks_seen = 0
        self.nodes: list[NodeRecord] = []
        self.current = -1
        self.pause_requested = False
        self.abort_requested = False
        self._gate = gate
        self._breakpoints = breakpoints
        self._report = report
        self._tracker = Tracker(adapter)
        self._goal = _Goal("cont", 1, -1, 0, 1, "")
        self._lock = threading.Lock()
        self._followed: int | None = None
        self._views: list[TaskView] = []
        self._muted = threading.local()
        self._error: BaseException | None = None
        self._standing: Standing | None = None

    @property
    def order(self) -> Order:
        """What the program was told last."""
        return Order(self._goal.kind, self._goal.count, self._goal.index)

    @order.setter
    def order(self, order: Order) -> None:
        view = self._views[-1] if self._views else None
        module = ""
        if view is not None and view.nodes:
            module = view.nodes[view.index].module or module_of_parameter(view.nodes[view.index].parameter)
        number = view.number if view is not None else 0
        self._goal = _Goal(order.kind, order.count, order.index, number, max(1, len(self._views)), module)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Listen to the program for the length of the block."""
        with self.adapter.observe(self, forward=True, backward=True):
            yield

    # --- forward ---

    def module_entered(self, module: Any) -> None:
        """A module is about to run forward."""
        if self._deaf():
            return
        if self.abort_requested:
            raise ProgramAborted
        self._tracker.module_entered(module)

    def module_left(self, module: Any) -> None:
        """A module has run forward."""
        if not self._deaf():
            self._tracker.module_left(module)

    def operator_recorded(self, node: Any) -> None:
        """A node has been made."""
        if not self._deaf():
            self._tracker.operator_recorded(node)

    # --- backward ---

    def task_started(self, task: Any) -> None:
        """A backward begins: follow it, unless another thread is being followed."""
        if self._deaf():
            return
        self._obey_abort()
        ident = threading.get_ident()
        with self._lock:
            self.tasks_seen += 1
            if self._followed is None:
                self._followed = ident
            elif self._followed != ident:
                return
        self.task_count += 1
        view = TaskView(self.adapter, self._tracker, task, self.task_count)
        view.recording = self._goal.kind != "cont" or bool(self._breakpoints)
        self._views.append(view)

    def node_entered(self, call: Any) -> None:
        """A node is about to run: stop before it, or let it run."""
        view = self._view_of(call.task)
        if view is None:
            return
        self._obey_abort()
        if not view.recording and not self.pause_requested and self._goal.kind == "cont" and not self._breakpoints:
            view.index += 1
            view.call = call
            return
        with self._mute():
            view.entered(call)
            reason, point = self._reason_before(view, call)
        if reason is not None:
            self._stop(SessionState.PAUSED_BEFORE, reason, view, point)

    def node_exited(self, call: Any) -> None:
        """A node has run: stop after it, or go on."""
        view = self._view_of(call.task)
        if view is None:
            return
        if view.recording:
            with self._mute():
                view.exited(call)
                reason, point = self._reason_after(view, call)
            if reason is not None:
                self._stop(SessionState.PAUSED_AFTER, reason, view, point, call)
        view.call = None

    def task_finished(self, task: Any) -> None:
        """A backward has ended."""
        if self._view_of(task) is not None:
            self._leave()

    def task_failed(self, task: Any, error: BaseException) -> None:
        """A backward has ended by an error: stop where it happened."""
        view = self._view_of(task)
        if view is None:
            return
        if not isinstance(error, ProgramAborted) and error is not self._error:
            self._stop_at_failure(view, error, "exception")
        self._leave()

    def violation(self, error: Any) -> None:
        """A saved tensor has been written since it was saved: stop before the error is raised."""
        if self._deaf() or self._followed != threading.get_ident() or not self._views:
            return
        self._stop_at_failure(self._views[-1], error, "violation")

    def _leave(self) -> None:
        self._views.pop().close()
        if not self._views:
            self._error = None
            with self._lock:
                self._followed = None
        if self._goal.kind in ("out", "run-to"):
            # The backward ended before the place was reached: stop at the next chance.
            self._goal.kind, self._goal.count = "step", 1

    def _view_of(self, task: Any) -> TaskView | None:
        if self._followed != threading.get_ident() or self._deaf():
            return None
        view = self._views[-1] if self._views else None
        return view if view is not None and view.task is task else None

    def _obey_abort(self) -> None:
        if self.abort_requested:
            raise ProgramAborted

    def _deaf(self) -> bool:
        return getattr(self._muted, "depth", 0) > 0

    @contextmanager
    def _mute(self) -> Iterator[None]:
        """Do the debugger's own arithmetic: not recorded, and not heard."""
        self._muted.depth = getattr(self._muted, "depth", 0) + 1
        try:
            with self.adapter.quiet():
                yield
        finally:
            self._muted.depth -= 1

    # --- whether to stop ---

    def _reason_before(self, view: TaskView, call: Any) -> tuple[StopReason | None, Breakpoint | None]:
        reason = self._reached(view, call)
        if self._breakpoints:
            facts = CallFacts(view, call.node, view.index)
            for point in self._breakpoints.all():
                if point.on_nan:
                    if point.enabled and view.index == 0 and self._has_nan(call.grad_outputs):
                        return StopReason("nan", "a NaN enters this backward", point.id), point
                elif point.matches(facts):
                    found = self._condition(point, view, call)
                    if found is not None:
                        return found, point
        return reason, None

    def _reached(self, view: TaskView, call: Any) -> StopReason | None:
        goal, depth = self._goal, len(self._views)
        first = view.index == 0
        entry = StopReason("entry", f"first node of backward {view.number}")
        if self.pause_requested:
            return StopReason("pause", "paused on request")
        if goal.kind == "entry":
            return entry if first and (view.number > goal.number or depth > goal.depth) else None
        if goal.kind == "into":
            return entry if first else StopReason("step", "next node")
        if goal.kind == "step" and depth <= goal.depth:
            goal.count -= 1
            if not goal.count:
                return entry if first else StopReason("step", "next node")
        if goal.kind == "run-to" and view.number == goal.number and view.index == goal.index:
            return StopReason("run-to", f"reached node {goal.index}")
        if goal.kind == "out" and depth <= goal.depth:
            if view.number != goal.number:
                return entry if first else StopReason("step", "next node")
            module = CallFacts(view, call.node, view.index).module
            if goal.module and module != goal.module and not module.startswith(goal.module + "."):
                return StopReason("step", f"the backward of {goal.module} has ended")
        return None

    def _reason_after(self, view: TaskView, call: Any) -> tuple[StopReason | None, Breakpoint | None]:
        for point in self._breakpoints.all() if self._breakpoints else ():
            if not (point.on_nan and point.enabled and self._has_nan(call.grad_inputs)):
                continue
            if not self._has_nan(call.grad_outputs):
                name = self.adapter.node_name(call.node)
                return StopReason("nan", f"{name} produced a NaN from gradients without one", point.id), point
        goal = self._goal
        if goal.kind == "into" and view.number == goal.number and view.index == goal.index:
            return StopReason("step", "after the node"), None
        return None, None

    def _has_nan(self, grads: list[Any]) -> bool:
        return any(count_bad(self.adapter.to_host(g))[0] for g in grads if g is not None)

    def _condition(self, point: Breakpoint, view: TaskView, call: Any) -> StopReason | None:
        if point.condition is None:
            return StopReason("breakpoint", f"breakpoint {point.id} ({point})", point.id)
        standing = Standing(self.adapter, view, call, None, expressions.user_frames())
        try:
            if not point.holds(standing.namespace()):
                return None
        except Exception as error:
            text = f"breakpoint {point.id}: its condition `{point.condition}` raised {type(error).__name__}: {error}"
            return StopReason("breakpoint", text, point.id)
        return StopReason("breakpoint", f"breakpoint {point.id} ({point})", point.id)

    # --- stopping ---

    def _stop(
        self,
        state: SessionState,
        reason: StopReason,
        view: TaskView,
        point: Breakpoint | None = None,
        produced: Any = None,
    ) -> None:
        frames = expressions.user_frames()
        with self._mute():
            view.prepare(frames[0] if frames else None)
            view.recording = True
            if point is not None:
                self._breakpoints.hit(point)
            if state is SessionState.PAUSED_BEFORE:
                view.update(**self._incoming(view))
        self.pause_requested = False
        self.nodes, self.current = view.nodes, view.index
        self._standing = Standing(self.adapter, view, view.call, produced, frames)
        try:
            order = self._gate.park(lambda: self._report(state, reason))
        finally:
            self._standing = None
        self.order = order
        if order.kind == "into":
            # Before a node: stop after it. After one: stop before the next.
            self._goal.index = view.index if state is SessionState.PAUSED_BEFORE else -1

    def _stop_at_failure(self, view: TaskView, error: BaseException, kind: str) -> None:
        self._error = error
        with self._mute():
            view.fail()
        where = self.adapter.node_name(view.call.node) if view.call is not None else "the backward"
        if kind == "violation":
            text = (
                f"{where} needs `{error.saved_name}`, saved at version {error.saved_version}, "  # type: ignore[attr-defined]
                f"but it has been written since and is at version {error.current_version}"  # type: ignore[attr-defined]
            )
        else:
            first = (str(error).strip() or "no message").splitlines()[0]
            text = f"{where} raised {type(error).__name__}: {first}"
        self._stop(SessionState.PAUSED_AFTER, StopReason(kind, text), view)

    def _incoming(self, view: TaskView) -> dict[str, Any]:
        call = view.call
        return {
            "index": view.index,
            "state": "current",
            "grad_outputs": gradient_summaries(self.adapter, call.grad_outputs, "grad_outputs"),
            "saved": saved_records(self.adapter, call.node, summaries=True),
        }

    # --- while it is stopped ---

    def at_stop(self, function: Callable[[Standing], T]) -> T:
        """Call `function` with the place where the program stands; for the parked thread."""
        standing = self._standing
        if standing is None:
            raise NotParkedError
        with self._mute():
            return function(standing)

    def where(self) -> str:
        """Return the user's frames that led to the backward, as a traceback has them."""
        standing = self._standing
        return "" if standing is None else standing.where()
