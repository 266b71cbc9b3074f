"""The verbs with which a session goes on, and back: what is typed ahead waits, what blocks is on another thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from textual.worker import Worker

from gradscope_tui.pane_layout import PanesApp
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.sessions.session_protocol import can_look_back, has_ended, is_over, is_past, is_paused, why_not
from gradscope_tui.worker_thread import on_thread

__all__ = ["BUSY", "RunningApp"]

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


class RunningApp(PanesApp):
    """An app with the verbs that let the program go on, or go through what has been recorded."""

    _ahead: deque[_Verb]
    _short = True
    _asking = False

    def on_load(self) -> None:
        """Begin with nothing typed ahead."""
        self._ahead = deque()

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
        state = str(self.session.state)
        verb = _Verb(call, short, blocks)
        if (self._asking or (state == "running" and self._short)) and len(self._ahead) < TYPED_AHEAD:
            self._ahead.append(verb)
        elif is_paused(state) or (blocks and can_look_back(self.session)):
            self._carry_out(verb)
        else:
            self.refuse(f"the script {self._busy()}")

    def _busy(self) -> str:
        """Return in which state the script is, and the ways out of it."""
        state = str(self.session.state)
        busy = BUSY.get(state, f"is {state}")
        if not is_over(state):
            return busy
        return f"{busy}: {'N looks back, ' if can_look_back(self.session) else ''}R starts it again, q leaves"

    def _carry_out(self, verb: _Verb) -> None:
        self._short = verb.short
        if verb.blocks or is_past(self.session.state):
            self._asking = True
            self._asked: Worker[None] = self.run_worker(self._ask(verb.call), group="verb")
            return
        try:
            verb.call()
        except (RuntimeError, ValueError) as error:
            self._ahead.clear()
            self.refuse(str(error))
        else:
            self.refresh_session()

    async def _ask(self, call: Callable[[], object], about: str = "looking through what has been recorded …") -> None:
        """Call a verb that blocks, on a thread of its own; should it take long, say so."""
        asked = asyncio.ensure_future(on_thread(call))
        done, _ = await asyncio.wait({asked}, timeout=SLOW)
        if not done:
            self.notify(about, timeout=60, markup=False)
        try:
            await asked
            if not done:
                self.clear_notifications()
        except (RuntimeError, ValueError) as error:
            self._ahead.clear()
            self.refuse(str(error))
        finally:
            self._asking = False
        self.refresh_session()
        self._next()

    def stopped(self, expected: bool) -> None:
        """Go on with what has been typed ahead; at a stop that nobody expected, forget it."""
        if not expected:
            self._ahead.clear()
        state = str(self.session.state)
        if state == "failed" or (is_over(state) and getattr(self.session, "exit_status", None)):
            self.uncover(5)
        self._next()

    def _next(self) -> None:
        if self._ahead and not self._asking and self.session.state != "running":
            verb = self._ahead.popleft()
            self.go(verb.call, short=verb.short, blocks=verb.blocks)

    def refuse(self, text: str) -> None:
        """Say why something cannot be done."""
        self.clear_notifications()
        self.notify(text, severity="warning", timeout=4, markup=False)

    def can(self, action: str) -> bool:
        """Whether the session can ever do an action; if not, the reason is said."""
        reason = why_not(self.session, action)
        if reason:
            self.refuse(reason)
        return not reason

    # On --------------------------------------------------------------------------------------------------------------

    def action_step(self, count: int = 1) -> None:
        """Run some nodes."""
        self.go(lambda: self.session.step(count))

    def action_into(self) -> None:
        """Stop after the current node."""
        self.go(self.session.into)

    def action_out(self) -> None:
        """Run to the end of the current module's backward."""
        self.go(self.session.out)

    def action_continue(self) -> None:
        """Run to the next breakpoint."""
        self.go(self.session.cont, short=False)

    def action_next_backward(self) -> None:
        """Run to the next backward."""
        self.go(self.session.next_backward)

    def action_run_to(self, index: int | None = None) -> None:
        """Run to a node, or to the one under the cursor; to one that has been reached, go back."""
        target = self.query_one(GraphPane).index if index is None else index
        state = str(self.session.state)
        passed = is_paused(state) and 0 <= target < self.session.current
        if passed or is_past(state) or is_over(state):
            self.action_goto(target)
        else:
            self.go(lambda: self.session.run_to(target))

    def action_pause(self) -> None:
        """Ask a running program to stop."""
        if self.session.state != "running":
            stopped = "has stopped already; q leaves" if is_paused(str(self.session.state)) else self._busy()
            self.refuse(f"there is nothing to pause: the script {stopped}")
            return
        self._ahead.clear()
        self._pausing = True
        self.session.pause()
        self.refresh_session()

    # Back ------------------------------------------------------------------------------------------------------------

    def action_step_back(self, count: int = 1) -> None:
        """Look at the node that ran before."""
        self.go(lambda: self.session.back(count), blocks=True)

    def action_back_after(self) -> None:
        """Look at what the node that ran before has produced."""
        self.query_one(InspectorPane).show_produced()
        self.go(self.session.back, blocks=True)

    def action_reverse_continue(self) -> None:
        """Go back to where a breakpoint would have stopped."""
        self.go(self.session.reverse_continue, blocks=True)

    def action_goto(self, index: int) -> None:
        """Go to a node of this backward: to one of the past, or run to one that is still to come."""
        onwards = is_past(self.session.state) and index >= self.session.current and not has_ended(self.session)
        self.go(lambda: self.session.run_to(index) if onwards else self.session.goto(index), blocks=True)

    def action_live(self) -> None:
        """Go from the past to where the program is."""
        if not is_past(self.session.state):
            self.refuse("this is no recorded node: the session stands where the script is")
        elif self.can("live"):
            self.go(self.session.go_live, blocks=True)

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
        move: Callable[[], None] | None = getattr(self.session, name, None)
        if move is None:
            self.refuse(f"that works {where}")
        else:
            self.go(move, blocks=True)

    # Anew ------------------------------------------------------------------------------------------------------------

    def start_again(self) -> None:
        """End the program and start it again."""
        self._ahead.clear()
        self._pausing = False
        if self._asking:
            self.refuse("the script is being asked for something; try again")
            return
        self._asking = True
        if getattr(self.session, "program", True):
            self.take_output("── started again ──", "dim")
        self._asked = self.run_worker(self._ask(self.session.restart, "starting again …"), group="verb")
