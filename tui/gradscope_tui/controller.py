"""Between a session and the widgets: reads the one when it tells of a change, and shows it on the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.worker import Worker

from gradscope_tui.messages import SessionChanged
from gradscope_tui.session import Session, is_paused
from gradscope_tui.threads import on_thread
from gradscope_tui.widgets.dock import BreakpointPane
from gradscope_tui.widgets.inspector import Inspector
from gradscope_tui.widgets.keybar import KeyBar
from gradscope_tui.widgets.log import LogPane
from gradscope_tui.widgets.rail import NodeRail
from gradscope_tui.widgets.source import SourcePane
from gradscope_tui.widgets.status import Status, StatusBar

if TYPE_CHECKING:
    from gradscope.inspect.records import DebuggerEvent, NodeRecord

__all__ = ["SessionApp"]

POLL = 1 / 10
"""Seconds between two looks at a session that is running."""

PATIENCE = 0.1
"""Seconds after which the inspector shows what it has, while the program is still asked for the rest."""

NEEDS_PAUSE = frozenset({"step", "into", "out", "continue", "run_to", "next_backward", "edit"})
"""Actions that make sense only where the session has stopped."""

EXPECTED = frozenset({"step", "entry", "run-to"})
"""Kinds of reasons for which a verb stops."""

ALARMS = frozenset({"exception", "nan", "violation"})
"""Kinds of reasons that are bad news."""


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
        self._records: tuple[NodeRecord, ...] = ()
        self._marks: tuple[object, frozenset[int]] = (None, frozenset())
        self._stop: object = None
        self._shown_task = 0
        self._printed: deque[tuple[str, str]] = deque()
        self._stop_listening: Callable[[], None] = lambda: None
        self._told = threading.Event()
        self._stale = threading.Event()

    def follow_session(self) -> None:
        """Start to follow the session, and the session itself if it has not been started."""
        self._stop_listening = self.session.add_listener(self._listen)
        self._printed.extend((line, "") for line in self.session.output)
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
        else:
            self._stale.set()
            self._tell()

    def take_output(self, line: str, ink: str = "") -> None:
        """Take a line of output from whatever thread it comes."""
        self._printed.append((line, ink))
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
        lines = [self._printed.popleft() for _ in range(len(self._printed))]
        if lines:
            self.query_one(LogPane).write(lines)
        if self._stale.is_set():
            self._stale.clear()
            self.refresh_session()

    def _poll(self) -> None:
        """Follow a session that is running."""
        if self.session.state == "running":
            self.refresh_session()
            self.look()

    def refresh_session(self) -> None:
        """Read the session and show what it says; at a new stop the cursor goes to the node."""
        session = self.session
        state, reason, task, current = str(session.state), session.reason, session.task_index, session.current
        self._records = nodes = tuple(session.nodes)
        points = tuple(session.breakpoints)
        here = nodes[current] if 0 <= current < len(nodes) else None
        alarm = reason is not None and reason.kind in ALARMS
        marks = self._marked(task)
        status = Status(
            script=self.script,
            state=state,
            node=max(0, current),
            total=len(nodes),
            what=f"{here.name} {here.parameter or here.module}".rstrip() if here else "",
            why=reason.text if reason is not None and state != "running" else "",
            task=task,
            breakpoints=len(points),
            alarm=alarm,
        )
        rail = self.query_one(NodeRail)
        paused = is_paused(state)
        if paused:
            self._shown_task = task
        rail.show(nodes, self._shown_task, current if paused else -1, marks)
        rail.set_heading(about="" if self._shown_task == task else f"of backward {self._shown_task}, the last stop")
        self.query_one(StatusBar).show(status, marks, frozenset(n.index for n in nodes if n.state == "failed"))
        self.query_one(BreakpointPane).show(points)
        off = set() if paused else set(NEEDS_PAUSE)
        self.query_one(KeyBar).show(frozenset(off if state == "running" else off | {"pause"}))
        stop = (state, task, current, reason)
        if state != "running" and stop != self._stop:
            self._stop = stop
            if here is not None and paused:
                rail.cursor = current
            if alarm and reason is not None:
                self.query_one(LogPane).write([(reason.text, "bad")])
            self.stopped(paused and reason is not None and reason.kind in EXPECTED)
        if state != "running":
            self.look()

    def stopped(self, expected: bool) -> None:
        """The session has stopped anew; `expected` if because it did what it was told."""

    def _marked(self, task: int) -> frozenset[int]:
        """Return the indices of the nodes with a breakpoint; matching is done again only when it may have changed."""
        points = tuple(self.session.breakpoints)
        key = (task, len(self._records), tuple((p.id, p.enabled) for p in points))
        if key != self._marks[0]:
            found = frozenset(n.index for n in self._records for p in points if p.matches(n)) if points else frozenset()
            self._marks = key, found
        return self._marks[1]

    # What the cursor is on -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Show the node under the cursor in the inspector and the source pane."""
        self._looking: Worker[None] = self.run_worker(self._look, group="look", exclusive=True)

    async def _look(self) -> None:
        """Show what is known about the node, and ask the program for the rest."""
        index = self.query_one(NodeRail).cursor
        if not 0 <= index < len(self._records):
            self.query_one(Inspector).show(None, {})
            self.query_one(SourcePane).show(None)
            return
        node = self._records[index]
        why = "the gradient of a leaf is accumulated here" if node.name == "AccumulateGrad" else "its line is not known"
        self.query_one(SourcePane).show(node.location, f"{node.name}: {why}")
        if is_paused(self.session.state):
            asked = asyncio.ensure_future(on_thread(lambda: self.session.inspect(index)))
            try:
                done, _ = await asyncio.wait({asked}, timeout=PATIENCE)
                if not done:
                    self._inspect(node)
                node = await asked
            except (RuntimeError, ValueError):  # it has gone on meanwhile: what is known is shown
                pass
            finally:
                asked.cancel()
        self._inspect(node)

    def _inspect(self, node: NodeRecord) -> None:
        names = {}
        for edge in node.edges:
            position = self.query_one(NodeRail).position(edge.target_key)
            if position is not None and edge.target_key is not None:
                target = self._records[position]
                names[edge.target_key] = f"#{position} {target.operator} {target.parameter or target.module}".rstrip()
        self.query_one(Inspector).show(node, names)
