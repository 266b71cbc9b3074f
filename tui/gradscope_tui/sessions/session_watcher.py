"""Between a session and the widgets: reads the one when it tells of a change, and shows it on the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from textual.app import App
from textual.css.query import NoMatches
from textual.filter import LineFilter
from textual.message import Message
from textual.worker import Worker

from gradscope.inspect.debugging.session.node_sequence import candidates_of
from gradscope_tui.actions import ACTIONS
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.modules_pane import ModulesPane
from gradscope_tui.panes.source_pane import SourcePane
from gradscope_tui.panes.watches_pane import WatchesPane
from gradscope_tui.sessions.session_protocol import (
    Session,
    can_look_back,
    has_ended,
    is_over,
    is_past,
    is_paused,
    why_not,
)
from gradscope_tui.terminal.terminal_output import VisibleText
from gradscope_tui.widgets.key_bar import KeyBar
from gradscope_tui.widgets.line_pane import LinePane
from gradscope_tui.widgets.status_bar import Status, StatusBar
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.records.records import DebuggerEvent, NodeRecord, StopReason

__all__ = ["SessionApp", "SessionChanged", "unless_closed"]

POLL = 1 / 10
"""Seconds between two looks at a session that is running."""

PATIENCE = 0.1
"""Seconds after which the inspector shows what it has, while the program is still asked for the rest."""

NEEDS_PAUSE = frozenset(
    {
        "step", "into", "out", "continue", "run_to", "next_backward", "step_back", "back_after", "reverse_continue",
        "edit", "skip", "what_if",
    }
)  # fmt: skip
"""Actions that make sense only where the session has stopped."""

LOOKS_BACK = frozenset({"run_to", "step_back", "back_after", "reverse_continue"})
"""Actions that make sense after the end of the program too, if anything of it was recorded."""

NEEDS_PRESENT = frozenset({"edit", "skip"})
"""Actions that make sense only where the program waits, not at an earlier node."""

EXPECTED = frozenset({"step", "entry", "run-to", "replay", "live"})
"""Kinds of reasons for which a verb stops."""

ALARMS = frozenset({"exception", "nan", "inf", "violation"})
"""Kinds of reasons that are bad news."""

PAUSING = "stops before its next node"
"""What is said of a script that runs after it has been asked to pause."""

AT_ONCE = 2_000
"""Lines of output that are written at once: keys come before the next ones."""

MANY = 10_000
"""Nodes up to which breakpoints are looked for on all of them while the screen waits."""


def unless_closed() -> AbstractContextManager[None]:
    """Pass over what a message, or an answer, still wants to show while the app is being closed: its widgets go."""
    return contextlib.suppress(NoMatches)


_VISIBLE = VisibleText()


class SessionChanged(Message):
    """The session has stopped, gone on, ended, printed something or changed its breakpoints.

    Many changes may be told by one message: whoever gets it reads the session itself.
    """


class SessionApp(App[int]):
    """An app whose widgets follow a session.

    Parameters
    ----------
    session : Session
        The program under the debugger. The app reads its immutable records and calls its verbs, which return at once;
        what may block waits on a thread of its own.
    script : str
        What to call the program.
    """

    def __init__(self, session: Session, script: str = "") -> None:
        super().__init__()
        self.animation_level = "none"
        self.session = session
        self.script = script
        self._records: Sequence[NodeRecord] = ()
        self._marks: tuple[object, frozenset[int]] = (None, frozenset())
        self._stop: object = None
        self._shown_task = 0
        self._present = (0, -1)
        self._printed: deque[tuple[str, str]] = deque(maxlen=LogPane.KEPT)
        self._stop_listening: Callable[[], None] = lambda: None
        self._pausing = False
        self._told = threading.Event()
        self._stale = threading.Event()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what every line passes on its way to the terminal."""
        return [*super().get_line_filters(), _VISIBLE]

    def follow_session(self) -> None:
        """Start to follow the session, and the session itself if it has not been started."""
        self._stop_listening = self.session.add_listener(self._listen)
        color = "" if getattr(self.session, "program", True) else "dim"
        self._printed.extend((line, color) for line in self.session.output)
        if self.session.state == "not started":
            self.session.start()
        self.set_interval(POLL, self._poll)
        self._stale.set()
        self.on_session_changed()

    def on_unmount(self) -> None:
        """Hear no more of the session."""
        self._stop_listening()

    # On other threads ------------------------------------------------------------------------------------------------

    def _listen(self, event: DebuggerEvent) -> None:
        """Hear of a change on whatever thread it happens."""
        if event.kind == "output":
            self.take_output(event.text, "warn" if event.stream == "stderr" else "")
        elif event.kind == "log":
            self.take_output(f"● {event.text}", "good")
        else:
            self._stale.set()
            self._tell()

    def take_output(self, line: str, color: str = "") -> None:
        """Take a line of output from whatever thread it comes."""
        self._printed.append((line, color))
        self._tell()

    def _tell(self) -> None:
        """Send one message for many changes."""
        if not self._told.is_set():
            self._told.set()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
                self.post_message(SessionChanged())

    # On the app's thread ---------------------------------------------------------------------------------------------

    def on_session_changed(self) -> None:
        """Show what has changed."""
        self._told.clear()
        lines = [self._printed.popleft() for _ in range(min(len(self._printed), AT_ONCE))]
        if self._printed:
            self._tell()
        with unless_closed():
            if lines:
                self.query_one(LogPane).write(lines)
            if self._stale.is_set():
                self._stale.clear()
                self.refresh_session()

    def _poll(self) -> None:
        """Follow a session that is running."""
        if self.session.state == "running":
            with unless_closed():
                self.refresh_session()
                self.look()

    def refresh_session(self) -> None:
        """Read the session and show what it says; at a new stop the cursor goes to the node."""
        session = self.session
        state, reason, task, current = str(session.state), session.reason, session.task_index, session.current
        self._records = nodes = session.nodes
        here = nodes[current] if 0 <= current < len(nodes) else None
        paused, past = is_paused(state), is_past(state)
        if paused and not past:
            self._present = task, current
        live = self._present[1] if past and self._present[0] == task and not has_ended(session) else -1
        self._shown_task = task if paused else self._present[0]
        self._show_rail(task if paused else session.task_count, current if paused else -1, live)
        self._show_status(here, live)
        self.query_one(BreakpointsPane).show(tuple(session.breakpoints), session.catching)
        self.query_one(WatchesPane).show(tuple(session.watches))
        self._show_modules()
        self.query_one(KeyBar).show(self.unavailable())
        stop = (state, task, current, reason)
        if state != "running" and stop != self._stop:
            self._stop, self._pausing = stop, False
            if here is not None and paused:
                self.query_one(GraphPane).select(current)
                if state == "paused after" and here.state == "done":
                    self.query_one(InspectorPane).show_produced()
            self._log_reason(reason)
            self.stopped(paused and reason is not None and reason.kind in EXPECTED)
        if state != "running":
            self.look()

    def _log_reason(self, reason: StopReason | None) -> None:
        """Write down why it has stopped, where that is bad news, or too long for the status bar."""
        if reason is not None and reason.kind in ALARMS:
            self.query_one(LogPane).write([(reason.text, "bad")])
        elif reason is not None and not self.query_one(StatusBar).has_room(reason.text):
            self.query_one(LogPane).write([(reason.text, "dim")])

    def _show_rail(self, task: int, current: int, live: int) -> None:
        past = is_past(self.session.state)
        rail = self.query_one(GraphPane)
        for pane in self.query(LinePane):
            pane.set_class(past, "-replaying")
        points = tuple(self.session.breakpoints)
        rail.show(
            self._records, self._shown_task, current, lambda node: any(point.matches(node) for point in points), live
        )
        about = "◁ REPLAYING" if past else ""
        if self._shown_task != task:
            about = f"of backward {self._shown_task}, the last stop"
        if rail.filtered:
            about += f" {len(rail.found)} of {len(self._records)} nodes"
        rail.set_heading(about=about.strip())

    def _show_status(self, here: NodeRecord | None, live: int) -> None:
        session = self.session
        state, reason, task, current = str(session.state), session.reason, session.task_index, session.current
        marks = self._marked(task)
        inside = [outer.number for outer in session.tasks[-2::-1]] if is_paused(state) else []
        status = Status(
            script=self.script,
            state=state,
            node=max(0, current),
            total=len(self._records),
            what=f"{here.name} {here.parameter or here.module}".rstrip() if here else "",
            why=self._why(),
            task=task if is_paused(state) else session.task_count,
            tasks=session.task_count,
            inside=tuple(inside),
            live=live,
            reached=self._present[1] if task == self._present[0] else len(self._records),
            ended=is_past(state) and has_ended(session),
            breakpoints=len(session.breakpoints),
            alarm=reason is not None and reason.kind in ALARMS,
        )
        failed = {n.index for n in (here,) if n is not None and n.state == "failed"}
        self.query_one(StatusBar).show(status, marks, frozenset(failed))

    def _why(self) -> str:
        """Return why the session has stopped, or of one that runs whether it is about to."""
        if self.session.state == "running":
            return PAUSING if self._pausing else ""
        return self.session.reason.text if self.session.reason is not None else ""

    def _show_modules(self) -> None:
        rail, state = self.query_one(GraphPane), self.session.state
        current = len(self._records) if is_over(state) else self.session.current
        self.query_one(ModulesPane).show(rail.outline, rail.folded, current)

    def unavailable(self) -> frozenset[str]:
        """Return the actions that make no sense now, or never in this session."""
        state = self.session.state
        off = {action.id for action in ACTIONS if why_not(self.session, action.id)}
        if not is_paused(state):
            off |= NEEDS_PAUSE - LOOKS_BACK if can_look_back(self.session) else NEEDS_PAUSE
        if has_ended(self.session):
            off |= {"edit", "skip", "what_if"}
        if is_past(state):
            off |= NEEDS_PRESENT
        else:
            off.add("live")
        return frozenset(off if state == "running" else off | {"pause"})

    def stopped(self, expected: bool) -> None:
        """The session has stopped anew; `expected` if because it did what it was told."""

    def _marked(self, task: int) -> frozenset[int]:
        """Return the indices of the nodes with a breakpoint; looked for again only when it may have changed."""
        nodes = self._records
        points = [point for point in self.session.breakpoints if point.enabled]
        key = (task, len(nodes), tuple(point.id for point in points))
        if key == self._marks[0]:
            return self._marks[1]

        def find() -> frozenset[int]:
            looked_at = candidates_of(nodes)
            return frozenset(node.index for node in looked_at if any(point.matches(node) for point in points))

        self._marks = key, frozenset()
        if points and len(nodes) <= MANY:
            self._marks = key, find()
        elif points:
            self._marking: Worker[None] = self.run_worker(self._mark(key, find), group="marks", exclusive=True)
        return self._marks[1]

    async def _mark(self, key: object, find: Callable[[], frozenset[int]]) -> None:
        """Look for breakpoints on very many nodes, and show where they are."""
        marks = await on_thread(find, collect=False)
        if key == self._marks[0]:
            self._marks = key, marks
            self.refresh_session()

    # What the cursor is on -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Show the node under the cursor in the inspector and the source pane."""
        self._looking: Worker[None] = self.run_worker(self._look, group="look", exclusive=True)

    async def _look(self) -> None:
        """Show what is known about the node, and ask the program for the rest."""
        with unless_closed():
            await self._look_closely()

    async def _look_closely(self) -> None:
        index = self.query_one(GraphPane).index
        if not 0 <= index < len(self._records):
            self.query_one(InspectorPane).show(None, {})
            self.query_one(SourcePane).show(None)
            return
        node = self._records[index]
        if self.session.state != "running":
            asked = asyncio.ensure_future(on_thread(lambda: self.session.inspect(index)))
            try:
                done, _ = await asyncio.wait({asked}, timeout=PATIENCE)
                if not done:
                    self._show_node(node)
                node = await asked
            except (RuntimeError, ValueError):  # it has gone on meanwhile: what is known is shown
                pass
            finally:
                asked.cancel()
        self._show_node(node)

    def recolour(self) -> None:
        """Write down again, in the colours of another theme, what is kept as it was written."""
        self.query_one(InspectorPane).redraw()
        self.query_one(SourcePane).redraw()

    def _show_node(self, node: NodeRecord) -> None:
        why = "the gradient of a leaf is accumulated here" if node.name == "AccumulateGrad" else "its line is not known"
        names = {}
        for edge in node.edges:
            position = self.query_one(GraphPane).position(edge.target_key)
            if position is not None and edge.target_key is not None:
                target = self._records[position]
                names[edge.target_key] = f"#{position} {target.operator} {target.parameter or target.module}".rstrip()
        with self.batch_update():
            self.query_one(SourcePane).show(node.location, f"{node.name}: {why}")
            self.query_one(InspectorPane).show(node, names)
