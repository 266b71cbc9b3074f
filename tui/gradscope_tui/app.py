"""The terminal app: its panes, and what every key does."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import SystemCommand
from textual.screen import Screen

from gradscope_tui.actions import ACTIONS, bindings
from gradscope_tui.commands import edit_gradient, run_command
from gradscope_tui.panes import PanesApp
from gradscope_tui.screens import ConfirmQuit, HelpScreen
from gradscope_tui.session import Session, is_over, is_paused
from gradscope_tui.terminal import own_terminal
from gradscope_tui.threads import on_thread
from gradscope_tui.widgets.dock import BreakpointPane
from gradscope_tui.widgets.log import LogPane
from gradscope_tui.widgets.prompt import Prompt
from gradscope_tui.widgets.rail import NodeRail
from gradscope_tui.widgets.states import basename
from gradscope_tui.widgets.status import StatusBar

if TYPE_CHECKING:
    from gradscope.inspect.debugger import Debugger

__all__ = ["GradscopeApp", "run_app"]

BUSY = {
    "running": "is running; p pauses it",
    "finished": "has ended; q leaves",
    "failed": "has failed, its traceback is in pane 5; q leaves",
}
"""Why a verb has to be refused in a state."""

TYPED_AHEAD = 64
"""Verbs that may wait for the script's next stop."""

LEAVE = 2.0
"""Seconds that an ended program is given to leave its backward."""


class GradscopeApp(PanesApp):
    """The debugger's terminal face; see `SessionApp` for its parameters."""

    CSS_PATH = "gradscope_tui.tcss"
    TITLE = "gradscope"
    BINDINGS = bindings()

    def __init__(self, session: Session, script: str = "") -> None:
        super().__init__(session, script)
        self.left = False
        self._short = True
        self._ahead: deque[tuple[Callable[[], None], bool]] = deque()

    def on_mount(self) -> None:
        """Start."""
        self.arrange()
        self.follow_session()
        # Back from the shell: the terminal has forgotten the screen.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Give every action to the palette, with Textual's own themes and screenshot."""
        for action in ACTIONS:
            if action.id != "command_palette":
                yield SystemCommand(
                    f"{action.label} ({action.shown})", action.help, partial(self.run_action, action.id)
                )
        yield from (c for c in super().get_system_commands(screen) if c.title in ("Theme", "Screenshot"))

    # Nodes -----------------------------------------------------------------------------------------------------------

    @on(NodeRail.Selected)
    def _cursor_moved(self) -> None:
        self.look()

    @on(StatusBar.Clicked)
    def _timeline_clicked(self, event: StatusBar.Clicked) -> None:
        self.show_node(event.index)

    def show_node(self, index: int) -> None:
        """Move the cursor to a node."""
        self.query_one(NodeRail).cursor = index

    def action_here(self) -> None:
        """Move the cursor to the node where the session stands."""
        if self.session.current >= 0:
            self.show_node(self.session.current)

    # Verbs -----------------------------------------------------------------------------------------------------------

    def _go(self, verb: Callable[[], None], *, short: bool = True) -> None:
        """Call a verb that lets the script go on; what it refuses is said, not raised.

        A verb that comes while the script still carries out a `short` one waits for the stop, as keys typed ahead do.
        """
        state = self.session.state
        if state == "running" and self._short and len(self._ahead) < TYPED_AHEAD:
            self._ahead.append((verb, short))
        elif not is_paused(state):
            self.refuse(f"the script {BUSY.get(str(state), f'is {state}')}")
        else:
            self._short = short
            try:
                verb()
            except (RuntimeError, ValueError) as error:
                self._ahead.clear()
                self.refuse(str(error))
            else:
                self.refresh_session()

    def stopped(self, expected: bool) -> None:
        """Go on with what has been typed ahead; at a stop that nobody expected, forget it."""
        if not expected:
            self._ahead.clear()
        if self.session.state == "failed":
            self.uncover(5)
        if self._ahead:
            verb, short = self._ahead.popleft()
            self._go(verb, short=short)

    def action_step(self, count: int = 1) -> None:
        """Run some nodes."""
        self._go(lambda: self.session.step(count))

    def action_into(self) -> None:
        """Stop after the current node."""
        self._go(self.session.into)

    def action_out(self) -> None:
        """Run to the end of the current module's backward."""
        self._go(self.session.out)

    def action_continue(self) -> None:
        """Run to the next breakpoint."""
        self._go(self.session.cont, short=False)

    def action_next_backward(self) -> None:
        """Run to the next backward."""
        self._go(self.session.next_backward)

    def action_run_to(self, index: int | None = None) -> None:
        """Run to a node, or to the one under the cursor."""
        target = self.query_one(NodeRail).cursor if index is None else index
        self._go(lambda: self.session.run_to(target))

    def action_pause(self) -> None:
        """Ask a running program to stop."""
        if self.session.state != "running":
            state = str(self.session.state)
            self.refuse(f"there is nothing to pause: the script {BUSY.get(state, f'is {state}')}")
            return
        self._ahead.clear()
        self.session.pause()
        self.notify("the script will stop before its next node", timeout=2, markup=False)

    def action_break(self) -> None:
        """Set or remove a breakpoint on the operator under the cursor."""
        node = self.query_one(NodeRail).node
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
        """Remove the breakpoint under the cursor of its pane."""
        point = self.query_one(BreakpointPane).selected if self.active == 4 else None
        if point is None:
            self.refuse("d removes the breakpoint under the cursor of pane 4; press 4 first")
            return
        self.session.remove_breakpoint(point.id)
        self.refresh_session()

    # Questions -------------------------------------------------------------------------------------------------------

    def action_command(self) -> None:
        """Ask for a command."""
        self.query_one(Prompt).ask("command")

    def action_break_spec(self) -> None:
        """Ask for a breakpoint."""
        self.query_one(Prompt).ask("break")

    def action_edit(self) -> None:
        """Ask for a gradient."""
        if not is_paused(self.session.state):
            self.refuse(f"the script is {self.session.state}: a gradient can be changed only where it has stopped")
        else:
            self.query_one(Prompt).ask("edit after" if self.session.state == "paused after" else "edit before", "0 ")

    @on(Prompt.Closed)
    def _prompt_closed(self) -> None:
        self.arrange()

    @on(Prompt.Answered)
    def _prompt_answered(self, event: Prompt.Answered) -> None:
        if event.kind == "command":
            self.run_worker(self._say_errors(run_command(self, event.text), f":{event.text}"), group="command")
        elif event.kind == "break":
            self.run_worker(self._say_errors(run_command(self, f"break {event.text}")), group="command")
        else:
            self.run_worker(self._say_errors(edit_gradient(self, event.text)), group="command")

    async def _say_errors(self, work: Coroutine[Any, Any, None], echo: str = "") -> None:
        """Carry out a command; what goes wrong is said, not raised."""
        if echo:
            self.log_answer(echo, "head")
        try:
            await work
        except Exception as error:
            known = isinstance(error, (ValueError, RuntimeError))
            text = str(error) if known else f"{type(error).__name__}: {error}"
            self.log_answer(text, "bad")
            self.refuse(text)

    def log_answer(self, text: str, ink: str = "dim") -> None:
        """Write an answer of the debugger into the log, and show it."""
        self.query_one(LogPane).write([(line, ink) for line in text.split("\n")])
        self.uncover(5)

    def refuse(self, text: str) -> None:
        """Say why something cannot be done."""
        self.clear_notifications()
        self.notify(text, severity="warning", timeout=4, markup=False)

    # Help and end ----------------------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(HelpScreen())

    async def action_quit(self) -> None:
        """Leave, at once if the program has ended."""
        state = self.session.state
        if is_over(state):
            self.exit(0)
        elif not isinstance(self.screen, ConfirmQuit):
            where = f"paused in backward {self.session.task_index}" if is_paused(state) else state
            what = f"{self.script or 'The script'} is {where}. Quitting ends it there: "
            what += "gradients accumulated so far stay in .grad, the others are lost."
            self.push_screen(ConfirmQuit(what), self._leave)

    async def _leave(self, leave: bool | None) -> None:
        """End the program, wait a little for it, and leave."""
        if leave:
            self.session.abort()
            self.notify("ending the script …", timeout=LEAVE, markup=False)
            await on_thread(lambda: self.session.wait(LEAVE))
            self.left = True
            self.exit(0)


def run_app(debugger: Debugger) -> int:
    """Run the terminal UI on a session until the person leaves.

    Parameters
    ----------
    debugger : Debugger
        The session; started if it has not been.

    Returns
    -------
    int
        An exit status: 0, or that of the app if it failed. ``debugger.conclusion()`` tells how the program ended.
    """
    app = GradscopeApp(debugger, script=basename(debugger.title))
    late: list[str] = []  # what is written when the screen is gone, such as the app's own traceback

    def take(line: str) -> None:
        if app.is_running:
            app.take_output(line)
        else:
            late.append(line)

    with own_terminal(take) as driver:
        if driver is not None:
            app.driver_class = driver
        try:
            app.run()
        finally:
            if not (app.left or is_over(debugger.state)):
                debugger.abort()
                debugger.wait(LEAVE)
    for line in late:
        print(line, file=sys.stderr)
    return app.return_code or 0
