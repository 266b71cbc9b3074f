"""Debuggers in the program's own process: they stop the program only while a front is attached."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack

from ..adapters import Adapter
from ..debuggee.main_thread import MainThreadProgram
from ..debuggee.program import Program
from ..debugging.session.debugger import Debugger
from ..debugging.session.session_errors import SessionError
from ..debugging.stops.run_targets import RunCommand
from ..output.terminal_text import say
from ..records.records import SessionState, StopReason
from .process_groups import StretchedTimeouts

__all__ = ["RunningProgramDebugger", "ScriptDebugger", "ServedDebugger"]


class ServedDebugger(Debugger):
    """A session whose program runs free while no front is attached.

    Attributes
    ----------
    watched : bool
        Whether a front is attached.
    """

    watched = False

    def __init__(self, program: Program, adapter: Adapter | None = None) -> None:
        super().__init__(program, adapter)
        self._timeouts = StretchedTimeouts()
        self._session.on_backward = self._backward_begins

    def _backward_begins(self) -> None:
        if self.watched:  # a group may have been made since the front has come
            self._timeouts.stretch()

    def attached(self) -> None:
        """Let breakpoints stop the program, those of former fronts too: a front has come."""
        if not self.watched:
            self.watched = True
            self._table.switch(True)
            self._session.listen_as_needed()
            self._timeouts.stretch()

    def detach(self) -> None:
        """Let the program run free: the front has gone."""
        self.watched = False
        self._timeouts.restore()
        self._table.switch(False)
        self._session.pause_requested = False  # this has the session hear no more than it needs
        if self.ended or self._state is SessionState.NOT_STARTED:
            return
        if self._state is SessionState.REPLAYING:
            self.go_live()
        if self._state.paused:
            self.cont()

    def _stopped(self, state: SessionState, reason: StopReason) -> None:
        super()._stopped(state, reason)
        # This is said only now: a front that leaves sees by the state that it must let the program go on.
        if state.paused and not self.watched:
            say(f"gradscope: stopped: {reason}; `gradscope attach {os.getpid()}` looks at it", file=sys.stderr)


class ScriptDebugger(ServedDebugger):
    """A session with a script that runs on the main thread of this process.

    Parameters
    ----------
    program : MainThreadProgram
        The script.
    """

    def __init__(self, program: MainThreadProgram, adapter: Adapter | None = None) -> None:
        super().__init__(program, adapter)
        self._started = threading.Event()
        self._pid = os.getpid()

    def run_script(self) -> None:
        """Wait until a front starts the script, and run it on this thread, to its end."""
        self._started.wait()
        if not self.ended:
            self._run()

    def run_free(self) -> None:
        """Run the script at once, without a stop."""
        self._go(RunCommand("cont"))
        self.run_script()

    @property
    def forked(self) -> bool:
        """Whether this process is a child that the script has forked, in which nobody looks at it."""
        return os.getpid() != self._pid

    def abort(self) -> None:
        """End the script; one that was never started will not be."""
        super().abort()
        self._started.set()

    def restart(self) -> None:
        """Raise SessionError: only the starter of the process can start another one."""
        raise SessionError("a process runs its script once: start it again")

    def _begin(self, command: RunCommand) -> None:
        self._session.command = command
        self._started.set()

    def _run_ended(self) -> None:
        if not self.forked:  # a thread of the parent may have held the lock at the fork
            super()._run_ended()


class RunningProgramDebugger(ServedDebugger):
    """A session with the program that makes it, from here on.

    Parameters
    ----------
    title : str
        What to call the program.
    """

    def __init__(self, title: str, adapter: Adapter | None = None) -> None:
        super().__init__(Program(title), adapter)
        self._state = SessionState.RUNNING
        self._live = self._state, None
        self._listening = ExitStack()

    def listen(self) -> None:
        """Observe the program's backwards from now on."""
        self._table.switch(False)
        self._listening.enter_context(self._session.observing())

    def close(self) -> None:
        """Stop observing them."""
        self._listening.close()

    def program_ends(self) -> None:
        """Note that the program comes to its end."""
        self._session.end()
        self._stopped(SessionState.FINISHED, StopReason("finished", "the program has ended"))

    def restart(self) -> None:
        """Raise SessionError: the program runs already."""
        raise SessionError("the program was not started by the debugger, so it cannot be started again")
