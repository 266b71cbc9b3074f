"""The life of a debugger session: its program is started, stops, goes on and ends; who waits and listens is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ...adapters import Adapter, AnyAdapter
from ...debuggee.broadcast import Broadcast, Listener, OutputWriter
from ...debuggee.pause_gate import ProgramAborted
from ...debuggee.program import Program
from ...debuggee.program_thread import ProgramThread
from ...debuggee.waiters import Waiters
from ...records.records import DebuggerEvent, SessionState, StopReason
from ..history.history_policy import HistoryPolicy
from ..stops.breakpoints import BreakpointTable
from ..stops.run_targets import RunCommand
from ..stops.watches import WatchList
from .pause_context import PauseContext
from .session_errors import ProgramEndedError, SessionError
from .session_observer import SessionObserver

__all__ = ["DebuggerCore"]

T = TypeVar("T")

_TIMEOUT = 10
_LEAVING = 2.0
_KEPT_LOG = 100_000
_AFTER_THE_END = "`back` goes to the nodes that were recorded, `restart` starts it again."


class DebuggerCore:
    """What all verbs of a :class:`Debugger` stand on."""

    def __init__(
        self, program: Program, adapter: Adapter | None = None, *, history: HistoryPolicy | None = None
    ) -> None:
        self.title = program.title
        self.log: list[str] = []
        self._program = program
        self._adapter = adapter or AnyAdapter()
        self._policy = history or HistoryPolicy()
        self._changed = threading.RLock()
        self._waiters = Waiters()
        self._broadcast = Broadcast(lambda: self._state)
        self._table = BreakpointTable()
        self._watches = WatchList()
        # After the program's end there is no thread of it on which one request waits for the other; this lock does it.
        self._afterwards = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._gate = self._program.gate
        self._state = SessionState.NOT_STARTED
        self._reason: StopReason | None = None
        self._last_stop: StopReason | None = None
        self._live: tuple[SessionState, StopReason | None] = (self._state, None)
        self._thread: threading.Thread | None = None
        self._session = SessionObserver(
            self._adapter, self._gate, self._table, self._watches, self._policy, self._stopped, self._logged
        )

    # --- where it stands ---

    @property
    def state(self) -> SessionState:
        """Running, paused before or after a node, replaying, finished, failed, or not started."""
        return self._state

    @property
    def ended(self) -> bool:
        """Whether the program has come to its end; the cursor may be in its past (``REPLAYING``) all the same."""
        return self._live[0].ended

    @property
    def reason(self) -> StopReason | None:
        """Why the program last stopped, or how the cursor got where it is."""
        return self._reason

    @property
    def exit_status(self) -> int | None:
        """The program's own exit status, as python would return it; None before it has ended."""
        return self._program.exit_status

    @property
    def error(self) -> BaseException | None:
        """What the program raised, if it ended so."""
        return self._program.error

    @property
    def traceback(self) -> str:
        """The program's traceback, if it raised, without the debugger's own frames."""
        return self._program.traceback

    @property
    def output(self) -> list[str]:
        """Lines the program has written to stdout and stderr, without their ends; the last 100,000."""
        return self._broadcast.output

    # --- waiting and ending ---

    def wait(self, timeout: float | None = None) -> SessionState:
        """Block until the program is paused or has ended.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without end by default.

        Returns
        -------
        SessionState
            ``RUNNING`` after a timeout.
        """
        self._waiters.wait(lambda: self._state is not SessionState.RUNNING, timeout)
        with self._changed:  # with the state come the reason, and all else that has changed
            state, thread = self._state, self._thread
        if state.ended and thread is not None and thread is not threading.current_thread():
            # It may still be freeing a graph of PyTorch, which an interpreter that ends meanwhile turns into a crash.
            thread.join(_LEAVING)
        return state

    def abort(self) -> None:
        """End the program: at once if it is paused, at the next module call or node otherwise.

        Of a backward in progress, ``.grad`` of all leaves is put back as it was before; what backwards that had ended
        have accumulated stays. :meth:`conclusion` says so.
        """
        with self._changed:
            if self.ended:
                self._session.replay.cursor = None
                self._state, self._reason = self._live
                return
            self._session.abort_requested = True
            if self._state is SessionState.NOT_STARTED:
                self._live = SessionState.FINISHED, StopReason("finished", "never started")
                self._state, self._reason = self._live
                self._waiters.wake()
            elif self._state.paused:
                self._state = SessionState.RUNNING
                self._gate.abort()
                self._program.end()
            elif self._state is SessionState.RUNNING:
                self._program.end()

    def leave(self) -> None:
        """End the program, as whoever has started it leaves; see :meth:`abort`."""
        self.abort()

    restarts_in = "the same process: imported modules, random generators and files stay as they are"
    """What :meth:`restart` leaves as it is."""

    def restart(self) -> None:
        """End the program and start it from its beginning; stop at the first node of its first backward.

        Breakpoints, watches, listeners and whether all is recorded stay. It is the same process: imported modules stay
        imported and keep what they hold, random generators go on where they were unless the program seeds them, and
        files that have been written stay written.

        Raises
        ------
        SessionError
            If the program does not end.
        """
        if self._state is not SessionState.NOT_STARTED:
            if not self._state.ended:
                self.abort()
            if not self.wait(_TIMEOUT).ended:
                raise SessionError(f"{self.title} does not end, so it cannot be started again")
            if self._thread is not None:
                self._thread.join(_TIMEOUT)
        self._program.exit_status, self._program.error, self._program.traceback = None, None, ""
        before = self._session
        self._reset()
        self._session.record_always = before.record_always
        self._session.tracker.take_over(before.tracker)
        self._go(RunCommand("entry"))

    def conclusion(self) -> tuple[int, str]:
        """Return the exit status for whoever ran the debugger, and the line that explains it.

        Returns
        -------
        status : int
            The program's own if it is not zero; 1 if it raised, or never called backward(), or is being left where a
            backward failed.
        text : str
            How it ended, and what to do where nothing was seen: for the terminal, without a newline at the end.
        """
        name = self.title
        if not self.ended:
            failed = self.reason is not None and self.reason.kind in ("exception", "violation")
            place = self._program.whereabouts()
            where = f": it does not come back from {place}" if place and not self.state.paused else ""
            return int(failed), f"{name} was left before its end{where}"
        if self._session.abort_requested:
            last = self._last_stop
            failed = last is not None and last.kind in ("exception", "violation")
            return int(failed), f"{name} was ended before its end; {self._undone()}"
        status = self.exit_status or 0
        if self.error is not None:
            return status or 1, f"{name} raised {type(self.error).__name__} (exit status {status or 1})"
        if not self._session.tasks_seen and status == 0:
            return 1, (
                f"{name} finished without calling backward(), so there was nothing to stop at.\n" + self._how_to_train()
            )
        return status, f"{name} finished (exit status {status})"

    def _how_to_train(self) -> str:
        unseen = self._program.processes.unseen
        if unseen:
            return f"Not looked into: {unseen}."
        return "Call .backward() or gradscope.autograd.grad() in it, or pass it the arguments that make it train."

    def _undone(self) -> str:
        return self._session.restored or "no backward was in progress, so .grad stays as the program left it"

    # --- listening ---

    def add_listener(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback(event)`` when the state, the output, the breakpoints or the watches change.

        Parameters
        ----------
        callback : callable
            Called on whatever thread the change happens, often the program's: it must be quick, and must not call verbs
            or :meth:`wait`.

        Returns
        -------
        callable
            Ends it.
        """
        return self._broadcast.listen(callback)

    def echo_to(self, write: OutputWriter) -> Callable[[], None]:
        """Pass on what the program writes as it writes it; listeners hear of whole lines.

        Parameters
        ----------
        write : OutputWriter
            Called on the thread that writes; what it raises, the program's ``print`` raises.

        Returns
        -------
        callable
            Ends it.
        """
        return self._broadcast.echo_to(write)

    # --- inside ---

    def _go(self, command: RunCommand) -> None:
        with self._changed:
            self._check_not_running()
            if self.ended:
                raise ProgramEndedError(f"the program is {self._live[0].value}: it cannot go on\n{_AFTER_THE_END}")
            fresh = self._state is SessionState.NOT_STARTED
            self._state = SessionState.RUNNING
            if fresh:
                self._begin(RunCommand("entry") if command.kind in ("step", "into", "out") else command)
            else:
                self._gate.go(command)
        self._broadcast.tell(DebuggerEvent("state", SessionState.RUNNING))

    def _check_not_running(self) -> None:
        if self._state is SessionState.RUNNING:
            raise SessionError("the program is running\n`pause` stops it at its next node.")

    def _begin(self, command: RunCommand) -> None:
        self._session.command = command
        self._thread = ProgramThread(self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._session.observing():
                self._program.run(self._broadcast.write)
        finally:  # whoever waits for the program waits for ever else
            self._run_ended()

    def _run_ended(self) -> None:
        self._broadcast.flush()
        self._session.end()
        state = SessionState.FINISHED if self._program.error is None else SessionState.FAILED
        text = f"the program has ended (exit status {self._program.exit_status})"
        alone = self._session.let_alone
        if alone and self._session.view is not None:
            text += f"; {'a backward' if alone == 1 else f'{alone} backwards'} ran after the one that is shown"
        if self._session.abort_requested:
            text = f"ended on request; {self._undone()}"
        self._stopped(state, StopReason("finished", text))

    def _stopped(self, state: SessionState, reason: StopReason) -> None:
        with self._changed:
            if state.paused:
                if self._session.abort_requested:  # abort() was called while the program was on its way here
                    raise ProgramAborted
                self._last_stop = reason
                self._session.pause_requested = False  # also one that was asked for on the way here
            self._state, self._reason = self._live = state, reason
            self._waiters.wake()
        self._broadcast.tell(DebuggerEvent("state", state, reason))

    def _logged(self, text: str) -> None:
        self.log.append(text)
        if len(self.log) > _KEPT_LOG:
            del self.log[: _KEPT_LOG // 10]
        self._broadcast.tell(DebuggerEvent("log", self._state, text=text))

    def _at_stop(self, function: Callable[[PauseContext], T]) -> T:
        if self._state.ended:
            raise SessionError(f"the program is {self._state.value}: nothing can be evaluated in it\n{_AFTER_THE_END}")
        return self._there(lambda: self._session.at_stop(function))

    def _there(self, function: Callable[[], T]) -> T:
        """Call `function` on the program's thread, and on this one when the program has ended."""
        if self.ended:
            with self._afterwards:
                return function()
        result: T = self._gate.submit(function).result()
        return result
