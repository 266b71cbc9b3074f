"""Where a command's own words go while a script may do what it likes to its output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

__all__ = ["own", "report_stream", "stdout_on_stderr"]


@contextlib.contextmanager
def own(stream: TextIO) -> Iterator[TextIO]:
    """Yield a stream to the same place, which stays when the script replaces or closes sys.stdout or its descriptor.

    Parameters
    ----------
    stream : text file

    Yields
    ------
    text file
        The stream itself where it is a terminal, or not the process's.
    """
    if stream not in (sys.__stdout__, sys.__stderr__) or stream.isatty():
        yield stream
        return
    with _copied(stream) as kept:
        yield kept


@contextlib.contextmanager
def _copied(stream: TextIO) -> Iterator[TextIO]:
    """Yield a stream with a file descriptor of its own."""
    stream.flush()
    with open(os.dup(stream.fileno()), "w", encoding=stream.encoding, errors=stream.errors) as kept:
        yield kept


@contextlib.contextmanager
def stdout_on_stderr() -> Iterator[TextIO]:
    """Send all that is written to standard output to standard error; yield the real standard output.

    Yields
    ------
    text file
    """
    real: TextIO = sys.stdout
    if not (real is sys.__stdout__ and real.fileno() == 1):
        with contextlib.redirect_stdout(sys.stderr):
            yield real
        return
    with _copied(real) as kept, contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        # Subprocesses and C libraries write to the file descriptor.
        stack.callback(os.dup2, kept.fileno(), 1)
        stack.callback(real.flush)
        os.dup2(2, 1)
        yield kept


def report_stream(form: str) -> contextlib.AbstractContextManager[TextIO]:
    """Return where the report on a script goes: standard output, which as JSON it has to itself.

    Parameters
    ----------
    form : str
        ``'text'`` or ``'json'``.

    Returns
    -------
    context manager
        Yields the stream.
    """
    return stdout_on_stderr() if form == "json" else own(sys.stdout)
