"""The terminal app: what every key does, and how it is started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.app import SystemCommand
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import WorkerFailed

from gradscope_tui.actions import ACTIONS, bindings
from gradscope_tui.command_line import run_command
from gradscope_tui.navigation import FindingApp
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.watches_pane import WatchesPane
from gradscope_tui.screens.confirm_screen import ConfirmScreen
from gradscope_tui.screens.help_screen import HelpScreen
from gradscope_tui.screens.threads_screen import ThreadsScreen
from gradscope_tui.screens.what_if_screen import WhatIfScreen
from gradscope_tui.sessions.saved_breakpoints import SavedBreaks
from gradscope_tui.sessions.session_protocol import Session, has_ended, is_past, is_paused
from gradscope_tui.terminal.shutdown_signals import SIGNALLED, ended_by_signals
from gradscope_tui.terminal.terminal_output import own_terminal
from gradscope_tui.widgets.labels import basename
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.debugger import Debugger
    from gradscope.inspect.recording import Recording

__all__ = ["GradscopeApp", "run_app", "view_recording"]

LEAVE = 2.0
"""Seconds that an ended program is given to leave its backward."""


class GradscopeApp(FindingApp):
    """The debugger's terminal face.

    Parameters
    ----------
    session : Session
        The program under the debugger, or a recording.
    script : str
        What to call it.
    breaks : SavedBreaks, optional
        Where its breakpoints are kept from one session to the next; nowhere by default.
    """

    CSS_PATH = "gradscope_tui.tcss"
    TITLE = "gradscope"
    BINDINGS = bindings()

    def __init__(self, session: Session, script: str = "", breaks: SavedBreaks | None = None) -> None:
        super().__init__(session, script)
        self.left = False
        self.failure: BaseException | None = None
        self.signalled = 0
        self._breaks = breaks
        self._loop_to_tell: asyncio.AbstractEventLoop | None = None

    def on_mount(self) -> None:
        """Start."""
        self._loop_to_tell = asyncio.get_running_loop()
        if self.signalled:
            self.run_worker(self._leave(), group="leave")
            return
        self.arrange()
        if self._breaks is not None:
            said = self._breaks.load(self.session)
            if said:
                self.take_output(said, "dim")
        self.follow_session()
        # Back from the shell: the terminal has forgotten the screen.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh())
        self.theme_changed_signal.subscribe(self, lambda _: self.recolour())

    def _handle_exception(self, error: Exception) -> None:
        """Leave with `failure` where a recording turns out to be damaged; every other error is one of ours."""
        cause = error.error if isinstance(error, WorkerFailed) else error
        if isinstance(cause, getattr(self.session, "damage", ())):
            self.failure, self.left = cause, True
            self.exit(2)
        else:
            super()._handle_exception(error)

    def on_key(self, event: events.Key) -> None:
        """Give the prompt what was typed, or pasted, at once with the key that opens it: that has gone to a pane."""
        entry = self.focused
        if isinstance(entry, Input) and event.is_printable and event.character:
            entry.insert_text_at_cursor(event.character)
            event.prevent_default()

    def stopped(self, expected: bool) -> None:
        """At a NaN or an infinity, say where it comes from; go on with what has been typed ahead."""
        reason = self.session.reason
        if reason is not None and reason.kind in ("nan", "inf", "violation"):
            self.command("explain")
        super().stopped(expected)

    def refresh_session(self) -> None:
        """Read the session, show what it says, and keep its breakpoints."""
        super().refresh_session()
        if self._breaks is not None:
            problem = self._breaks.keep(self.session)
            if problem:
                self.refuse(problem)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Give every action to the palette, with Textual's own themes and screenshot."""
        for action in ACTIONS:
            if action.id != "command_palette":
                yield SystemCommand(
                    f"{action.label} ({action.shown})", action.help, partial(self.run_action, action.id)
                )
        yield from (c for c in super().get_system_commands(screen) if c.title in ("Theme", "Screenshot"))

    # Breakpoints and watches -----------------------------------------------------------------------------------------

    def action_break(self) -> None:
        """Set or remove a breakpoint on the operator under the cursor."""
        node = self.query_one(GraphPane).node
        if node is None:
            self.refuse("there is no node yet to set a breakpoint on; B asks for one")
            return
        spec = f"op:{node.operator}"
        same = [point.id for point in self.session.breakpoints if point.spec == spec and not point.condition]
        for number in same:
            self.session.remove_breakpoint(number)
        if not same:
            self.session.add_breakpoint(spec)
        self.refresh_session()

    def action_delete(self) -> None:
        """Remove the breakpoint or the watch under the cursor of its pane."""
        point, watch = self.query_one(BreakpointsPane).selected, self.query_one(WatchesPane).selected
        if self.active == 4 and point is not None:
            self.session.remove_breakpoint(point.id)
        elif self.active == 6 and watch is not None:
            self.session.remove_watch(watch.id)
        else:
            self.refuse("d removes the breakpoint or watch under the cursor of pane 4 or 6; press 4 or 6 first")
            return
        self.refresh_session()

    def action_switch(self) -> None:
        """Switch what is under the cursor on or off: a breakpoint, a switch, a folded module."""
        pane = self.query_one(BreakpointsPane)
        if self.active != 4:
            super().action_switch()
        elif pane.selected is not None:
            self.session.enable_breakpoint(pane.selected.id, not pane.selected.enabled)
        elif pane.trouble is not None:
            kind, caught = pane.trouble
            self.session.catch(kind, not caught)
        self.refresh_session()

    def action_break_spec(self) -> None:
        """Ask for a breakpoint."""
        self.query_one(Prompt).ask("break")

    def action_watch(self) -> None:
        """Ask for a watch expression."""
        self.query_one(Prompt).ask("watch")

    # Questions -------------------------------------------------------------------------------------------------------

    def action_command(self) -> None:
        """Ask for a command."""
        self.query_one(Prompt).ask("command")

    def action_edit(self) -> None:
        """Ask for a gradient."""
        state = str(self.session.state)
        if not self.can("edit"):
            return
        if has_ended(self.session):
            self.refuse("the script has ended: its gradients can no longer be changed; R starts it again")
        elif is_past(state):
            self.refuse("this node has run: L goes to where the script is, i asks what if")
        elif not is_paused(state):
            self.refuse(f"the script is {state}: a gradient can be changed only where it has stopped")
        else:
            self.query_one(Prompt).ask("edit after" if state == "paused after" else "edit before", "0 ")

    def action_what_if(self) -> None:
        """Ask for a gradient, and show what would become of the parameters."""
        state = str(self.session.state)
        if not self.can("what_if"):
            return
        if has_ended(self.session):
            self.refuse("the script has ended, and its tensors with it: there is nothing to run; R starts it again")
        elif is_paused(state):
            self.query_one(Prompt).ask("what if", "0 ")
        else:
            self.refuse(f"the script is {state}: what-if is asked where it has stopped")

    def action_skip(self) -> None:
        """Leave out the node that is about to run."""
        if self.can("skip"):
            self.command("skip")

    def action_threads(self) -> None:
        """Show the nested backwards and the threads, and choose which to follow."""
        if self.can("threads"):
            self.push_screen(ThreadsScreen(self.session.tasks, self.session.threads), self._follow_thread)

    def _follow_thread(self, number: int | None) -> None:
        if number is not None:
            self.command(f"thread {number}")

    @on(Prompt.Closed)
    def _prompt_closed(self) -> None:
        self.arrange()

    @on(Prompt.Answered)
    def _prompt_answered(self, event: Prompt.Answered) -> None:
        match event.kind:
            case "command":
                self.command(event.text, echo=True)
            case "break" | "watch":
                self.command(f"{event.kind} {event.text}")
            case "what if":
                self.command(f"what-if {event.text}")
            case "filter":
                self.filter(event.text)
            case "find":
                self.find_in_log(event.text)
            case "save":
                self.save_log(event.text)
            case _:
                self.command(f"set {event.text}")

    def command(self, line: str, *, echo: bool = False) -> None:
        """Carry out a command of line mode; `echo` repeats it in the log."""
        if echo:
            self.log_answer(f":{line}", "head")
        self.run_worker(self._say_errors(run_command(self, line)), group="command")

    async def _say_errors(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry out a command; what goes wrong is said, not raised."""
        try:
            await work
        except Exception as error:
            known = isinstance(error, (ValueError, RuntimeError))
            text = str(error) if known else f"{type(error).__name__}: {error}"
            self.log_answer(text, "bad")
            if not self.is_seen(5):
                self.refuse(text)

    async def ask_what_if(self, slot: int, expression: str) -> None:
        """Show what would become of the parameters if a gradient were another."""
        index = self.session.current
        found = await on_thread(lambda: self.session.what_if(slot, expression))
        self.push_screen(WhatIfScreen(found, expression, self.session.nodes[index]))

    # Help and end ----------------------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(HelpScreen())

    def action_restart(self) -> None:
        """Start the program again, or read what is new in a recording; ask first if it has not ended."""
        if self._nothing_to_lose():
            self.start_again()
        else:
            what = f"{self.script or 'The script'} {self._where()}. Starting it again ends it here; it is the same "
            what += "process: imported modules and random generators stay as they are."
            self._confirm("Restart?", what, "start again", self.start_again)

    async def action_quit(self) -> None:
        """Leave, at once if the program has ended."""
        if self._nothing_to_lose():
            self.left = True
            self.exit(0)
            return
        what = f"{self.script or 'The script'} {self._where()}. Quitting ends it there: "
        what += "of a backward in progress, .grad is put back as it was before."
        self._confirm("Quit?", what, "quit", lambda: self.run_worker(self._leave(), group="leave"))

    def _nothing_to_lose(self) -> bool:
        return has_ended(self.session) or getattr(self.session, "program", True) is False

    def _where(self) -> str:
        state = str(self.session.state)
        return f"is paused in backward {self.session.task_index}" if is_paused(state) else f"is {state}"

    def _confirm(self, title: str, what: str, yes: str, do: Callable[[], object]) -> None:
        def answered(agreed: bool | None) -> None:
            if agreed:
                do()

        if not isinstance(self.screen, ConfirmScreen):
            self.push_screen(ConfirmScreen(title, what, yes), answered)

    async def _leave(self) -> None:
        """End the program, wait a little for it, and leave."""
        self.session.abort()
        self.notify("ending the script …", timeout=LEAVE, markup=False)
        await on_thread(lambda: self.session.wait(LEAVE))
        self.left = True
        self.exit(0)

    def leave_by(self, number: int) -> None:
        """Leave without a question because of a signal; may be called at any moment, once or again."""
        again, self.signalled = self.signalled, self.signalled or number
        if not again and self._loop_to_tell is not None:
            with suppress(RuntimeError):  # the loop is closed: it has been left already
                self._loop_to_tell.call_soon_threadsafe(lambda: self.run_worker(self._leave(), group="leave"))


def run_app(debugger: Debugger) -> int:
    """Run the terminal UI on a session until the person leaves.

    Parameters
    ----------
    debugger : Debugger
        The session; started if it has not been.

    Returns
    -------
    int
        An exit status: 0, that of the app if it failed, or 128 and the number of the signal that ended it.
        ``debugger.conclusion()`` tells how the program ended.
    """
    app = GradscopeApp(debugger, script=basename(debugger.title), breaks=SavedBreaks(debugger.title))
    try:
        return _run(app)
    finally:
        if not (app.left or has_ended(debugger)):
            debugger.abort()
            debugger.wait(LEAVE)


def view_recording(recording: Recording) -> int:
    """Open a recording in the terminal UI until the person leaves.

    Parameters
    ----------
    recording : Recording
        Open.

    Returns
    -------
    int
        An exit status: 0, that of the app if it failed, or 128 and the number of the signal that ended it.

    Raises
    ------
    RecordingError
        If it turns out to be damaged while it is looked at.
    """
    from gradscope_tui.sessions.recorded_session import RecordedSession

    return _run(GradscopeApp(RecordedSession(recording), script=basename(recording.path)))


def _run(app: GradscopeApp) -> int:
    late: list[str] = []  # what is written when the screen is gone, such as the app's own traceback

    def take(line: str) -> None:
        if app.is_running:
            app.take_output(line)
        else:
            late.append(line)

    with own_terminal(take) as driver:
        if driver is not None:
            app.driver_class = driver
        with ended_by_signals(app.leave_by):
            app.run()
    with suppress(OSError):  # the terminal has been closed
        for line in late:
            print(line, file=sys.stderr, flush=True)
    if app.signalled:
        return SIGNALLED + app.signalled
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
