"""Runs a user's script in this process as ``python script.py`` would, under the sanitizer."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from .sanitizer import Sanitizer

__all__ = ["ScriptResult", "check_script", "print_error", "run_script"]


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How a script ended.

    Attributes
    ----------
    path : str
    arguments : tuple of str
    error : BaseException or None
        What it raised and did not catch; not SystemExit.
    exit_code : int
        What it passed to ``sys.exit()``; 0 when it came to its end, 1 after an error.
    """

    path: str
    arguments: tuple[str, ...]
    error: BaseException | None
    exit_code: int


def check_script(path: str, arguments: Sequence[str] = ()) -> tuple[Sanitizer, ScriptResult]:
    """Run a script under a :class:`Sanitizer`.

    Parameters
    ----------
    path : str
    arguments : sequence of str
        The script's own arguments.

    Returns
    -------
    Sanitizer, ScriptResult

    Raises
    ------
    OSError
        If the script cannot be read.
    """
    with Sanitizer() as sanitizer:
        result = run_script(path, arguments)
    return sanitizer, result


def run_script(path: str, arguments: Sequence[str] = ()) -> ScriptResult:
    """Run a script as ``__main__`` on this thread; wait for the threads it started.

    Parameters
    ----------
    path : str
    arguments : sequence of str

    Returns
    -------
    ScriptResult

    Raises
    ------
    OSError
        If the script cannot be read.
    """
    filename = os.path.abspath(path)
    with io.open_code(filename) as file:
        source = file.read()
    error: BaseException | None = None
    exit_code = 0
    with _as_main(filename, [path, *arguments]) as module:
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
        except SystemExit as leaving:
            exit_code = _exit_code(leaving)
        except BaseException as raised:
            error, exit_code = raised, 1
        _join_threads()
    return ScriptResult(path, tuple(arguments), error, exit_code)


def print_error(error: BaseException) -> None:
    """Print a script's uncaught exception as Python does, without the frames that ran the script.

    Parameters
    ----------
    error : BaseException
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    _hook(type(error), error, trace)


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    try:
        sys.excepthook(kind, error, trace)
    except Exception:
        # A hook of the script's own that fails must not hide the error it was given.
        traceback.print_exception(kind, error, trace)


def _exit_code(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _join_threads() -> None:
    """Wait for the script's threads, as the interpreter does before it ends."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


@contextlib.contextmanager
def _as_main(filename: str, argv: list[str]) -> Iterator[ModuleType]:
    """Make a fresh ``__main__`` with its ``sys.argv`` and ``sys.path[0]``; put the old ones back."""
    module = ModuleType("__main__")
    facts: dict[str, Any] = {"__file__": filename, "__builtins__": builtins, "__cached__": None, "__spec__": None}
    module.__dict__.update(facts)
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = argv
    if not sys.flags.safe_path:
        sys.path[:1] = [os.path.dirname(os.path.realpath(filename))]
    sys.modules["__main__"] = module
    try:
        yield module
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
