"""Where a command's own words go while a script may do what it likes to its output."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = [
    "give_up_output",
    "open_missing_streams",
    "own",
    "report_stream",
    "serves_browser",
    "shows_screens",
    "stdout_on_stderr",
    "terminal_kept",
]


def open_missing_streams() -> None:
    """Give the process the standard streams that its parent has closed: empty, and leading nowhere.

    Otherwise the first file that is opened takes their descriptor, and what is printed goes there.
    """
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None and getattr(sys, f"__{name}__") is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def shows_screens() -> bool:
    """Whether a person can be shown a screen: in a browser, or at a terminal that is not ``dumb`` (moves no cursor)."""
    return serves_browser() or (sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def serves_browser() -> bool:
    """Whether `gradscope serve` has started this process: its stdin and stdout are those of a page."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def give_up_output() -> None:
    """Let what is still to be written to standard output vanish, and the interpreter's last flush with it."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # closed by the script, or never a file
        sys.stdout = None


@contextlib.contextmanager
def own(stream: TextIO) -> Iterator[TextIO]:
    """Yield a stream to the same place, which stays when the script replaces or closes sys.stdout or its descriptor.

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
    """Send all that is written to standard output to standard error; yield the real standard output."""
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


@contextlib.contextmanager
def terminal_kept(*, watched: bool) -> Iterator[None]:
    """Give the terminal back as it was: at the end, and to the shell while Ctrl-Z has stopped this process.

    A prompt, or a script that is left in the middle of reading, may have it in a mode of its own. A program that is
    debugged has a terminal of its own, and runs on meanwhile.

    Parameters
    ----------
    watched : bool
        Whether it is given back too where this process is killed; the terminal UI sees to that itself.
    """
    # The other commands do not start processes.
    from ..inspect.output.terminal_restore import terminal_restored

    try:
        import termios  # Windows has none
    except ImportError:
        yield
        return
    try:
        kept = termios.tcgetattr(0)
    except (OSError, termios.error):  # it is no terminal
        yield
        return

    def give(mode: list[Any]) -> None:
        with contextlib.suppress(termios.error):  # it has been closed
            termios.tcsetattr(0, termios.TCSADRAIN, mode)

    def suspend(number: int, frame: object) -> None:
        mode = termios.tcgetattr(0)
        give(kept)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # it stops in this line, and goes on in the next
        signal.signal(signal.SIGTSTP, suspend)
        give(mode)

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTSTP, suspend)
    try:
        with terminal_restored(0) if watched else contextlib.nullcontext():
            yield
    finally:
        if ours:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        give(kept)
