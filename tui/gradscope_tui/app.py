"""The terminal app: a controller between a session, which runs in a thread of its own, and the widgets."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.containers import Container
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input

from gradscope_tui.actions import ACTIONS, bindings
from gradscope_tui.commands import CommandError, add_breakpoint, edit_gradient, run_command
from gradscope_tui.messages import CommandAnswered, SessionChanged
from gradscope_tui.screens import ConfirmQuit, HelpScreen
from gradscope_tui.session import Session, is_over, is_paused
from gradscope_tui.widgets.dock import BreakpointPane
from gradscope_tui.widgets.inspector import Inspector
from gradscope_tui.widgets.keybar import KeyBar
from gradscope_tui.widgets.log import LogPane
from gradscope_tui.widgets.pane import LinePane
from gradscope_tui.widgets.prompt import Prompt
from gradscope_tui.widgets.rail import NodeRail
from gradscope_tui.widgets.source import SourcePane
from gradscope_tui.widgets.status import Status, StatusBar

if TYPE_CHECKING:
    from gradscope.inspect.records import DebuggerEvent, NodeRecord

__all__ = ["GradscopeApp"]

POLL = 1 / 10
"""Seconds between two looks at a session that is running."""

PATIENCE = 2.0
"""Seconds that an ended program is given to leave its backward."""

NEEDS_PAUSE = frozenset({"step", "into", "out", "continue", "run_to", "edit"})
"""Actions that make sense only where the session has stopped."""

ALARMS = frozenset({"exception", "nan", "violation"})
"""Kinds of reasons that are bad news."""


class GradscopeApp(App[int]):
    """The debugger's terminal face.

    Parameters
    ----------
    session : Session
        The program under the debugger. The app reads its immutable records and calls its verbs, which return at once;
        everything else happens in the session's own threads.
    script : str
        What to call the program.
    """

    CSS_PATH = "gradscope_tui.tcss"
    TITLE = "gradscope"
    BINDINGS = bindings()
    HORIZONTAL_BREAKPOINTS: ClassVar = [(0, "-tiny"), (60, "-narrow"), (120, "-wide")]
    VERTICAL_BREAKPOINTS: ClassVar = [(0, "-flat"), (16, "-tall")]

    active: reactive[int] = reactive(1)
    maximised: reactive[bool] = reactive(False)

    def __init__(self, session: Session, script: str = "") -> None:
        super().__init__()
        self.animation_level = "none"
        self.session = session
        self.script = script
        self._told = threading.Event()
        self._printed = 0
        self._stop: tuple[object, ...] = ()
        self._docked = {3: 3, 4: 4}

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        yield StatusBar(id="status")
        with Container(id="panes", classes="-alone"):
            yield NodeRail(id="pane1")
            yield Inspector(id="pane2")
            yield SourcePane(id="pane3", classes="-dock")
            yield BreakpointPane(id="pane4", classes="-dock")
            yield LogPane(id="pane5", classes="-dock")
        yield KeyBar(id="keys")
        yield Prompt(id="prompt")

    def on_mount(self) -> None:
        """Start to listen to the session."""
        self.query_one(NodeRail).focus()
        self.session.add_listener(self._listen)
        self.set_interval(POLL, self._poll)
        self.refresh_session()

    # What the session tells ------------------------------------------------------------------------------------------

    def _listen(self, event: DebuggerEvent) -> None:
        """Pass on, from whatever thread it comes, that something has changed; many changes make one message."""
        if not self._told.is_set():
            self._told.set()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
                self.post_message(SessionChanged())

    def on_session_changed(self) -> None:
        """Read the session again."""
        self._told.clear()
        self.refresh_session()

    def _poll(self) -> None:
        """Follow a session that is running."""
        if self.session.state == "running":
            self.refresh_session()

    def refresh_session(self) -> None:
        """Read the session and show what it says; at a new stop the cursor goes to the node."""
        session = self.session
        state, reason, nodes = str(session.state), session.reason, session.nodes
        stops = session.breakpoints
        marks = frozenset(n.index for n in nodes for stop in stops if stop.matches(n)) if stops else frozenset()
        rail = self.query_one(NodeRail)
        rail.show(nodes, session.task_index, marks)
        current = nodes[session.current] if 0 <= session.current < len(nodes) else None
        status = Status(
            script=self.script,
            state=state,
            node=max(0, session.current),
            total=len(nodes),
            what=f"{current.name} {current.parameter or current.module}".rstrip() if current else "",
            why=reason.text if reason is not None and state != "running" else "",
            task=session.task_index,
            breakpoints=len(stops),
            alarm=reason is not None and str(reason.kind) in ALARMS,
        )
        failed = frozenset({status.node}) if current is not None and status.alarm else frozenset()
        self.query_one(StatusBar).show(status, marks, failed)
        self.query_one(BreakpointPane).show(stops)
        log = self.query_one(LogPane)
        for line in session.output[self._printed :]:
            log.write(line)
            self._printed += 1
        paused = is_paused(state)
        self.query_one(KeyBar).show(frozenset({"pause"}) | (NEEDS_PAUSE if state != "running" else frozenset()))
        self.query_one(KeyBar).show((NEEDS_PAUSE if not paused else frozenset()) | ({"pause"} - {state == "running" and "pause"}))
