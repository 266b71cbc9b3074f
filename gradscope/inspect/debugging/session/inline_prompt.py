"""The prompt on the program's own thread: that of ``gi.post_mortem()``, and of ``gi.set_trace()`` at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, TextIO

from ....program_files import source_name
from ...adapters import Adapter, AnyAdapter
from ...debuggee.pause_gate import Gate, ProgramAborted
from ...debuggee.program import Program
from ..prompt.line_mode import LineMode
from ..stops.condition_names import user_frame
from ..stops.run_targets import RunCommand
from .debugger import Debugger
from .requested_stops import stop_at_error, stop_here
from .session_errors import SessionError

__all__ = ["post_mortem", "prompt_here"]


class _PromptGate(Gate):
    """A gate whose thread asks at a prompt itself what to do."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt: Callable[[], None] = lambda: None

    def park(self, announce: Callable[[], None] | None = None) -> Any:
        """Ask at the prompt."""

        def ask() -> None:
            if announce is not None:
                announce()
            self.prompt()

        try:
            return super().park(ask)
        except ProgramAborted:
            raise ProgramAborted("the debugger was left at set_trace()") from None


class _RunningProgram(Program):
    """The program that runs already."""

    def __init__(self) -> None:
        frame = user_frame()
        super().__init__(source_name(frame.f_code.co_filename) if frame is not None else "<program>")
        self.prompt_gate = self.gate = _PromptGate()


class _InlineDebugger(Debugger):
    """A session with the program that calls it."""

    def __init__(self, adapter: Adapter, *, dead: bool = False) -> None:
        self._here = _RunningProgram()
        super().__init__(self._here, adapter)
        self._dead = dead
        self._listening = ExitStack()

    def attach(self, prompt: Callable[[], None]) -> None:
        """Listen to the program from here on; `prompt` asks what to do at each stop."""

        def ask() -> None:
            prompt()
            if self._session.abort_requested or (self._asked.kind == "cont" and not self._table):
                self._listening.close()

        self._asked = RunCommand("cont")
        self._here.prompt_gate.prompt = ask
        self._listening.enter_context(self._session.observing())

    def stop_here(self) -> None:
        """Stop where the program is."""
        stop_here(self._session)

    def examine(self, error: BaseException) -> bool:
        """Stop where a backward has failed."""
        try:
            return stop_at_error(self._session, error)
        except ProgramAborted:
            return True
        finally:
            self._listening.close()

    def _go(self, command: RunCommand) -> None:
        if self._dead:
            raise SessionError("this backward has failed and cannot go on; `quit` leaves")
        self._asked = command
        super()._go(command)

    def restart(self) -> None:
        """Refuse: the program is not the session's to start."""
        raise SessionError("the program was not started by the debugger, so it cannot be started again")


class _InlinePrompt(LineMode):
    """A prompt on the program's own thread."""

    _noted = 0

    def ask(self) -> None:
        """Take commands until the program is to go on."""
        self._leaving = False
        self.say_stop()
        self.prompt()
        if self.debugger.state.paused:
            self.debugger.abort()

    def ask_from(self, commands: Iterable[str]) -> None:
        """Carry out commands, and leave."""
        self.say_stop()
        for command in commands:
            self._say(f"(gradscope) {command}")
            self.obey(command)
        self.debugger.abort()

    def say_stop(self) -> None:
        """Say where the program has stopped, and what is not known of it."""
        super().say_stop()
        for note in self.debugger.log[self._noted :]:
            self._say("  " + note.replace("\n", "\n  "))
        self._noted = len(self.debugger.log)

    def _over(self) -> bool:
        return self._leaving or not self.debugger.state.paused

    def _wait(self, presses: int = 0) -> None:
        # The thread that would stop next is this one. A move through the past is over already.
        if self.debugger.state.paused:
            self.say_stop()


def prompt_here(adapter: Adapter | None = None, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
    """Stop in the function that calls, and ask at a prompt what to do; see :func:`gradscope.inspect.set_trace`."""
    debugger = _InlineDebugger(adapter or AnyAdapter())
    prompt = _InlinePrompt(debugger, stdin=stdin, stdout=stdout)
    debugger.attach(prompt.ask)
    debugger.stop_here()


def post_mortem(
    error: BaseException | None = None,
    *,
    commands: Iterable[str] | None = None,
    adapter: Adapter | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> None:
    """Look at a backward that has failed: the node, its gradients and saved tensors, the lines that led there.

    Parameters
    ----------
    error : BaseException, optional
        What it raised; the exception being handled, or else the last uncaught one, by default.
    commands : iterable of str, optional
        Carry out these commands of line mode instead of asking at a prompt.
    stdin, stdout : file, optional
        The process's own by default.

    Raises
    ------
    ValueError
        If there is no such exception, or it did not leave a backward.

    See Also
    --------
    set_trace, track

    Notes
    -----
    Nothing has to be switched on before. Inside ``with gi.track():`` nodes also know their line and module.

    PyTorch's engine leaves no trace of its nodes: the node is found by the frame of a custom Function's backward, by
    the names and versions in the message, and by which nodes still hold what they saved. What cannot be known, most
    often the gradients that arrived, and sometimes which of a few nodes it was, is said below the stop.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> y = gs.ones(2, requires_grad=True).exp()
    >>> with gs.no_grad():
    ...     z = y.add_(1)
    >>> try:
    ...     y.sum().backward()
    ... except RuntimeError:
    ...     gi.post_mortem(commands=["print saved.result", "step"])  # doctest: +ELLIPSIS
    stopped in node 1 of 3: ExpBackward0 - ExpBackward0 needs `result`, saved at version 0, but it has been written ...
    (gradscope) print saved.result
    tensor([3.7183, 3.7183])
    (gradscope) step
    *** this backward has failed and cannot go on; `quit` leaves
    """
    error = error or sys.exc_info()[1] or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        raise ValueError("there is no exception to look at\nPass one, or call post_mortem() in `except` or after it.")
    debugger = _InlineDebugger(adapter or AnyAdapter(), dead=True)
    prompt = _InlinePrompt(debugger, stdin=stdin, stdout=stdout)
    debugger.attach(prompt.ask if commands is None else lambda: prompt.ask_from(commands))
    if not debugger.examine(error):
        raise ValueError(
            f"{type(error).__name__} did not leave a backward that had begun, so there is no node to look at\n"
            "pdb.post_mortem() shows where it was raised."
        )
