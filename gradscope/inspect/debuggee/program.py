"""The program that a session runs: a function here, a script in :mod:`.script`."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any
from weakref import WeakSet

from ...program_files import is_library_file, source_name
from ...runtime.memory import device
from .broadcast import OutputWriter
from .pause_gate import Gate, ProgramAborted
from .processes import StartedProcesses
from .program_thread import Interrupter, aborts_unreported
from .whereabouts import current_line

__all__ = [
    "CallProgram",
    "Program",
    "exit_status_of",
    "hide_instruments",
    "own_part",
    "own_traceback",
    "print_uncaught",
]

_GRADSCOPE = Path(__file__).parents[2]
_INSTRUMENTS = (str(_GRADSCOPE / "inspect"), str(_GRADSCOPE / "check"))

_DISPATCHER = (os.path.join("torch", "_ops.py"), os.path.join("torch", "utils", "_stats.py"))

_MODE_DISPATCHER = os.path.join("torch", "overrides.py")

_NO_LINE = -1

_PROGRAMS: WeakSet[Program] = WeakSet()


def _in_child() -> None:
    for program in _PROGRAMS:
        program.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Program:
    """Something that runs on a thread of its own and may call backward().

    Attributes
    ----------
    exit_status : int or None
        What python would return, once it has ended.
    error : BaseException or None
        What it raised, other than SystemExit.
    traceback : str
        Of the error, as python prints it.
    gate : Gate
        Where it waits while it is paused.
    processes : StartedProcesses
        Those that a script has started, which the debugger does not see into.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.processes = StartedProcesses()
        self.exit_status: int | None = None
        self.error: BaseException | None = None
        self.traceback = ""
        self.gate = Gate()
        self.interrupter = Interrupter()
        _PROGRAMS.add(self)

    def run(self, write: OutputWriter) -> None:
        """Run to the end; raise nothing, but set ``exit_status`` and ``error``."""
        raise NotImplementedError

    def forked(self) -> None:
        """Go on without the debugger: this is a child process, in which there is none."""
        self.gate.gone = True

    def end(self) -> None:
        """Have the running program raise :class:`ProgramAborted`, wherever it is; return at once."""
        self.interrupter.end()

    def whereabouts(self) -> str:
        """Return where the program's thread is in the user's code, as ``file:line``, or an empty text."""
        frame = sys._current_frames().get(self.interrupter.ident or 0)
        while frame is not None and is_library_file(frame.f_code.co_filename):
            frame = frame.f_back
        return "" if frame is None else f"{source_name(frame.f_code.co_filename)}:{current_line(frame)}"


class CallProgram(Program):
    """A function as a program.

    Parameters
    ----------
    function : callable
        Without arguments.

    Examples
    --------
    >>> program = CallProgram(lambda: 1 / 0)
    >>> program.run(lambda text, stream: None)
    >>> program.exit_status, type(program.error).__name__
    (1, 'ZeroDivisionError')
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(getattr(function, "__name__", type(function).__name__))
        self._function = function
        self._where = device.current()  # the function runs on another thread, which has a current device of its own

    def run(self, write: OutputWriter) -> None:
        """Call the function."""
        try:
            with aborts_unreported(), self.interrupter, self._where:
                self._function()
            self.exit_status = 0
        except ProgramAborted:
            self.exit_status = 0
        except SystemExit as leaving:
            self.exit_status = exit_status_of(leaving, lambda text: write(text, "stderr"))
        except BaseException as error:
            self.exit_status = 1
            self.error = error
            self.traceback = own_traceback(error)
            write(self.traceback, "stderr")


def own_traceback(error: BaseException) -> str:
    """Return a traceback as python prints it, without the frames that :func:`hide_instruments` takes out.

    After Ctrl-C the traceback ends with the program's own line: where in gradscope the interrupt came says nothing
    about the program.
    """
    with _instruments_hidden(error):
        told = traceback.TracebackException.from_exception(error)
    if isinstance(error, KeyboardInterrupt):
        while told.stack and told.stack[-1].filename.startswith((str(_GRADSCOPE), "<gradscope ")):
            del told.stack[-1]
    return "".join(told.format())


def print_uncaught(error: BaseException) -> str:
    """Print an uncaught exception as python does, by the program's own ``sys.excepthook`` if it has one.

    Returns
    -------
    str
        The traceback.
    """
    text = own_traceback(error)
    if sys.excepthook is sys.__excepthook__:
        _to_stderr(text)
        return text
    try:
        with _instruments_hidden(error):  # Python's own hook, which others call, prints what the error has
            sys.excepthook(type(error), error, error.__traceback__)
    except ProgramAborted:
        raise
    except SystemExit:
        pass
    except BaseException as failure:
        if failure.__context__ is error:  # Python has set it because the hook is called from here
            failure.__context__ = None
        _to_stderr(f"Error in sys.excepthook:\n{own_traceback(failure)}\nOriginal exception was:\n{text}")
    return text


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # stderr is closed, None, or replaced by something that is no file
        pass


def exit_status_of(leaving: SystemExit, say: Callable[[str], None] = _to_stderr) -> int:
    """Return python's exit status after a SystemExit; an argument that is no number is printed, as python does.

    Parameters
    ----------
    say : callable
        Takes the text; writes to stderr by default.
    """
    code = leaving.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    say(f"{code}\n")
    return 1


def own_part(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the debugger's frames at its start."""
    while trace is not None and _ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def hide_instruments(error: BaseException) -> None:
    """Take the instruments' frames out of the tracebacks of an error, and of its causes and contexts.

    PyTorch calls a function that is watched through its dispatchers, whose frames are taken out with ours.
    """
    for part in _with_causes(error):
        part.__traceback__ = _without_ours(part.__traceback__)


@contextmanager
def _instruments_hidden(error: BaseException) -> Iterator[None]:
    """Have an error and what led to it without the instruments' frames in the block."""
    whole = [(part, part.__traceback__) for part in _with_causes(error)]
    try:
        hide_instruments(error)
        yield
    finally:
        for part, trace in whole:
            part.__traceback__ = trace


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and contexts, and those of its group, each once."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        pending += [part.__cause__, part.__context__, *getattr(part, "exceptions", ())]


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    asking: CodeType | None = None
    below_ours = False
    while trace is not None:
        code = trace.tb_frame.f_code
        ours = _ours(code.co_filename)
        below_ours = ours or (below_ours and code.co_filename.endswith(_DISPATCHER))
        if ours and kept and kept[-1].tb_frame.f_code.co_filename.endswith(_MODE_DISPATCHER):
            kept.pop()
            asking = kept[-1].tb_frame.f_code if kept else None
        if not below_ours:
            # A function of PyTorch that asks whether a mode is on is called by the mode once more: that frame is left.
            if code is asking:
                kept.pop()
            asking = None
            kept.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for step in reversed(kept):
        # A signal may have come at an instruction that has no line, which the constructor has a number for.
        line = _NO_LINE if step.tb_lineno is None else step.tb_lineno
        found = TracebackType(found, step.tb_frame, step.tb_lasti, line)
    return found


def _ours(filename: str) -> bool:
    return filename.startswith(_INSTRUMENTS)
