"""The verbs with which a session goes on, and back: what is typed ahead waits, what blocks is on another thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from textual.app import App
from textual.worker import Worker

from gradscope_tui.pane_layout import PaneLayout
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.refusal import can, refuse
from gradscope_tui.sessions.session_protocol import (
    Session,
    can_look_back,
    can_run_again,
    has_ended,
    is_over,
    is_past,
    is_paused,
)
from gradscope_tui.sessions.session_watcher import SessionWatcher
from gradscope_tui.worker_thread import on_thread

__all__ = ["BUSY", "RunVerbs"]

BUSY = {
    "running": "is running; p pauses it",
    "not started": "has not been started",
    "finished": "has ended",
    "failed": "has failed, its traceback is in pane 5",
}
"""Why a verb has to be refused in a state."""

SLOW = 0.5
"""Seconds after which a verb that blocks is said to be at work."""

TYPED_AHEAD = 64
"""Verbs that may wait for the script's next stop."""


class _Verb(NamedTuple):
    """Something to tell the session: whether it soon comes to a stop, and whether it blocks until then."""

    call: Callable[[], object]
    short: bool
    blocks: bool


class RunVerbs:
    """The verbs that let the program go on, or go through what has been recorded."""

    def __init__(self, app: App[Any], session: Session, watcher: SessionWatcher, layout: PaneLayout) -> None:
        self._app = app
        self._session = session
        self._watcher = watcher
        self._layout = layout
        self._ahead: deque[_Verb] = deque()
        self._short = True
        self._asking = False
        self._commands = 0
        self._behind: list[_Verb] = []

    def command_begun(self) -> None:
        """Let verbs wait: what is typed behind a breakpoint is to find it set."""
        self._commands += 1

    def command_ended(self) -> None:
        """Go on with what has been typed behind a command."""
        self._commands -= 1
        if not self._commands:
            behind, self._behind = self._behind, []
            for verb in behind:
                self.go(verb.call, short=verb.short, blocks=verb.blocks)

    def go(self, call: Callable[[], object], *, short: bool = True, blocks: bool = False) -> None:
        """Call a verb that lets the session go on; what it refuses is said, not raised.

        Parameters
        ----------
        call : callable
            The verb.
        short : bool
            Whether it soon comes to a stop: a verb that comes meanwhile waits for that, as keys typed ahead do.
        blocks : bool
            Whether it blocks. In the past every verb does.
        """
        state = str(self._session.state)
        verb = _Verb(call, short, blocks)
        if self._commands:
            self._behind.append(verb)
        elif (self._asking or (state == "running" and self._short)) and len(self._ahead) < TYPED_AHEAD:
            self._ahead.append(verb)
        elif is_paused(state) or (blocks and can_look_back(self._session)):
            self._carry_out(verb)
        else:
            refuse(self._app, f"the script {self._busy()}")

    def _busy(self) -> str:
        """Return in which state the script is, and the ways out of it."""
        state = str(self._session.state)
        busy = BUSY.get(state, f"is {state}")
        if not is_over(state):
            return busy
        back = "N looks back, " if can_look_back(self._session) else ""
        return f"{busy}: {back}{'R starts it again, ' if can_run_again(self._session) else ''}q leaves"

    def _carry_out(self, verb: _Verb) -> None:
        self._short = verb.short
        if verb.blocks or is_past(self._session.state):
            self._asking = True
            self._asked: Worker[None] = self._app.run_worker(self._ask(verb.call), group="verb")
            return
        try:
            verb.call()
        except (RuntimeError, ValueError) as error:
            self._ahead.clear()
            refuse(self._app, str(error))
        else:
            self._watcher.refresh()

    async def _ask(self, call: Callable[[], object], about: str = "looking through what has been recorded …") -> None:
        """Call a verb that blocks, on a thread of its own; should it take long, say so."""
        asked = asyncio.ensure_future(on_thread(call))
        done, _ = await asyncio.wait({asked}, timeout=SLOW)
        if not done:
            self._app.notify(about, timeout=60, markup=False)
        try:
            await asked
            if not done:
                self._app.clear_notifications()
        except (RuntimeError, ValueError) as error:
            self._ahead.clear()
            refuse(self._app, str(error))
        finally:
            self._asking = False
        self._watcher.refresh()
        self._next()

    def stopped(self, expected: bool) -> None:
        """Go on with what has been typed ahead; at a stop that nobody expected, forget it."""
        if not expected:
            self._ahead.clear()
        state = str(self._session.state)
        if state == "failed" or (is_over(state) and getattr(self._session, "exit_status", None)):
            self._layout.uncover(LogPane.NUMBER)
        self._next()

    def _next(self) -> None:
        if self._ahead and not self._asking and self._session.state != "running":
            verb = self._ahead.popleft()
            self.go(verb.call, short=verb.short, blocks=verb.blocks)

    # On --------------------------------------------------------------------------------------------------------------

    def action_step(self, count: int = 1) -> None:
        """Run some nodes."""
        self.go(lambda: self._session.step(count))

    def action_into(self) -> None:
        """Stop after the current node."""
        self.go(self._session.into)

    def action_out(self) -> None:
        """Run to the end of the current module's backward."""
        self.go(self._session.out)

    def action_continue(self) -> None:
        """Run to the next breakpoint."""
        self.go(self._session.cont, short=False)

    def action_next_backward(self) -> None:
        """Run to the next backward."""
        self.go(self._session.next_backward)

    def action_run_to(self, index: int | None = None) -> None:
        """Run to a node, or to the one under the cursor; to one that has been reached, go back.

        To one of which nothing was kept, after the end, the program is run again.
        """
        target = self._app.query_one(GraphPane).index if index is None else index
        state = str(self._session.state)
        if is_over(state) and can_run_again(self._session) and self._ran_free(target):
            self._run_again_to(target)
            return
        passed = is_paused(state) and 0 <= target < self._session.current
        if passed or is_past(state) or is_over(state):
            self.action_goto(target)
        else:
            self.go(lambda: self._session.run_to(target))

    def _ran_free(self, index: int) -> bool:
        """Return whether nothing but its norm was kept of a node of the backward that is shown."""
        nodes = self._session.nodes
        return 0 <= index < len(nodes) and nodes[index].grad_outputs is None

    def _run_again_to(self, index: int) -> None:
        """Start the program again, and stop at this node of the same backward."""
        condition = f"backward == {self._session.task_index}"
        self._session.add_breakpoint(f"node:{index}", condition=condition, temporary=True)
        self.start_again()
        self._ahead.append(_Verb(self._session.cont, short=False, blocks=False))

    def action_pause(self) -> None:
        """Ask a running program to stop."""
        if self._session.state != "running":
            stopped = "has stopped already; q leaves" if is_paused(str(self._session.state)) else self._busy()
            refuse(self._app, f"there is nothing to pause: the script {stopped}")
            return
        self._ahead.clear()
        self._watcher.pausing = True
        self._session.pause()
        self._watcher.refresh()

    # Back ------------------------------------------------------------------------------------------------------------

    def action_step_back(self, count: int = 1) -> None:
        """Look at the node that ran before."""
        self.go(lambda: self._session.back(count), blocks=True)

    def action_back_after(self) -> None:
        """Look at what the node that ran before has produced."""
        self._app.query_one(InspectorPane).show_produced()
        self.go(self._session.back, blocks=True)

    def action_reverse_continue(self) -> None:
        """Go back to where a breakpoint would have stopped."""
        self.go(self._session.reverse_continue, blocks=True)

    def action_goto(self, index: int) -> None:
        """Go to a node of this backward: to one of the past, or run to one that is still to come."""
        onwards = is_past(self._session.state) and index >= self._session.current and not has_ended(self._session)
        self.go(lambda: self._session.run_to(index) if onwards else self._session.goto(index), blocks=True)

    def action_live(self) -> None:
        """Go from the past to where the program is."""
        if not is_past(self._session.state):
            refuse(self._app, "this is no recorded node: the session stands where the script is")
        elif can(self._app, self._session, "live"):
            self.go(self._session.go_live, blocks=True)

    def action_previous_backward(self) -> None:
        """Go to the backward before."""
        self._between("previous_backward", "in a recording; N and C go back in what has been recorded of this run")

    def action_next_iteration(self) -> None:
        """Go to the next iteration of a recording."""
        self._between("next_iteration", "in a recording; ] runs to the next backward")

    def action_previous_iteration(self) -> None:
        """Go to the iteration before, in a recording."""
        self._between("previous_iteration", "in a recording; N and C go back in what has been recorded of this run")

    def _between(self, name: str, where: str) -> None:
        move: Callable[[], None] | None = getattr(self._session, name, None)
        if move is None:
            refuse(self._app, f"that works {where}")
        else:
            self.go(move, blocks=True)

    # Anew ------------------------------------------------------------------------------------------------------------

    def start_again(self) -> None:
        """End the program and start it again."""
        self._ahead.clear()
        self._watcher.pausing = False
        if self._asking:
            refuse(self._app, "the script is being asked for something; try again")
            return
        self._asking = True
        if getattr(self._session, "program", True):
            self._watcher.take_output("── started again ──", "dim")
        self._asked = self._app.run_worker(self._start_again(), group="verb")

    async def _start_again(self) -> None:
        """Start again; meanwhile the screen shows the last of the program before."""
        self._watcher.starting = True
        self._watcher.refresh()
        try:
            await self._ask(self._session.restart, "starting again …")
        finally:
            self._watcher.starting = False
            self._watcher.refresh()
