"""Runs the lines of a cell for a magic that stands above them, and keeps the error that they raise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["run_lines"]


def run_lines(shell: Any, line: str, lines: str) -> BaseException | None:
    """Run the lines below a magic as a cell of its own, and return what they have raised.

    The lines keep their numbers, and are those of the same cell.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        Where the cell runs.
    line : str
        What stands above them.
    lines : str
        They may begin with a magic of their own.

    Returns
    -------
    BaseException or None
        The error has not been shown.
    """
    above = "" if lines.startswith("%%") else f"# {line}\n"
    with _showing_no_traceback(shell), _same_number(shell):
        result = shell.run_cell(above + lines)
    error: BaseException | None = result.error_before_exec or result.error_in_exec
    return error


@contextlib.contextmanager
def _same_number(shell: Any) -> Iterator[None]:
    """Let what runs inside a cell have its number: IPython counts on before a cell has ended."""
    before = shell.execution_count
    shell.execution_count = len(shell.user_ns["In"]) - 1
    try:
        yield
    finally:
        shell.execution_count = before


@contextlib.contextmanager
def _showing_no_traceback(shell: Any) -> Iterator[None]:
    """Leave an error to the cell, which shows what the magic raises."""

    def nothing(*args: Any, **kwargs: Any) -> None:
        pass

    shown = {name: getattr(shell, name) for name in ("showtraceback", "showsyntaxerror", "showindentationerror")}
    for name in shown:
        setattr(shell, name, nothing)
    try:
        yield
    finally:
        for name in shown:
            delattr(shell, name)
