"""What a session runs: a function, or (in :mod:`.script`) a script."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from .gate import ProgramAborted

__all__ = ["CallProgram", "Program", "Write", "own_traceback"]

_HERE = str(Path(__file__).parent)


class Write(Protocol):
    """Where a program's output goes."""

    def __call__(self, text: str, stream: str = "stdout") -> None:
        """Take text written to ``'stdout'`` or ``'stderr'``."""


class Program(Protocol):
    """Something that runs on a thread of its own and may call backward()."""

    title: str
    exit_status: int | None
    error: BaseException | None
    traceback: str

    def run(self, write: Write) -> None:
        """Run to the end; raise nothing, but set ``exit_status`` and ``error``."""


class CallProgram:
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
        self.title: str = getattr(function, "__name__", type(function).__name__)
        self.exit_status: int | None = None
        self.error: BaseException | None = None
        self.traceback = ""
        self._function = function

    def run(self, write: Write) -> None:
        """Call the function."""
        try:
            self._function()
            self.exit_status = 0
        except ProgramAborted:
            self.exit_status = 0
        except BaseException as error:
            self.exit_status = 1
            self.error = error
            self.traceback = own_traceback(error)
            write(self.traceback, "stderr")


def own_traceback(error: BaseException) -> str:
    """Return a traceback as python prints it, without the debugger's own frames.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str
    """
    told = traceback.TracebackException.from_exception(error)
    seen: set[int] = set()
    pending: list[traceback.TracebackException | None] = [told]
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        kept = [f for f in part.stack if not _ours(f.filename)]
        part.stack = traceback.StackSummary.from_list(kept)
        pending += [part.__cause__, part.__context__, *(part.exceptions or ())]
    return "".join(told.format())


def _ours(filename: str) -> bool:
    return filename.startswith(_HERE)
