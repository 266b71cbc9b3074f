"""The prompt of a program that ran before the prompt was attached, and runs on when it leaves."""

from __future__ import annotations

from ..debugging.prompt.line_mode import LineMode
from ..debugging.session.session_errors import SessionError
from ..records.records import SessionState
from .client import RemoteDebugger

__all__ = ["AttachedPrompt"]


class AttachedPrompt(LineMode):
    """A session at a prompt.

    Parameters
    ----------
    debugger : RemoteDebugger
        Attached to the program.
    """

    def __init__(self, debugger: RemoteDebugger) -> None:
        super().__init__(debugger)  # type: ignore[arg-type] # RemoteDebugger has the same verbs
        self._remote = debugger

    def _start(self) -> None:
        """Stop the program where it is, as gdb does."""
        if self._remote.state is SessionState.NOT_STARTED:
            super()._start()
            return
        if self._remote.state is SessionState.RUNNING:
            self._say(f"attached to {self._remote.title}, process {self._remote.pid}; it stops at its next node")
            try:
                self._remote.pause()
            except SessionError:  # the program has stopped by itself meanwhile
                pass
        self._wait()

    def _over(self) -> bool:
        return self._leaving or self._remote.ended

    def _do_detach(self, argument: str) -> None:
        self._leaving = True

    def _leave(self) -> None:
        """Let the program run on."""
