"""The terminal is given back even where this process dies without a word: killed, or crashed in a library."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["terminal_restored"]

# The process is nobody's child, so that no program waiting for its children meets it, and has its own session.
_WATCHER = """
import os, sys, termios

terminal, pipe, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
kept = termios.tcgetattr(terminal)
if not os.fork() and not os.read(pipe, 1):
    termios.tcsetattr(terminal, termios.TCSANOW, kept)
    termios.tcflush(terminal, termios.TCIFLUSH)
    os.write(terminal, words.encode())
"""


@contextmanager
def terminal_restored(terminal: int, words: str = "") -> Iterator[None]:
    """Have a process of few lines wait for the end of this one, and give the terminal back where this one cannot.

    Parameters
    ----------
    terminal : int
        Its file descriptor; as it is now, it will be.
    words : str
        Written then.
    """
    reader, writer = os.pipe()
    terminal = os.dup(terminal)  # the watcher's first three descriptors lead nowhere
    command = [sys.executable, "-I", "-S", "-c", _WATCHER, str(terminal), str(reader), words]
    quiet = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.run(
            command, pass_fds=(terminal, reader), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True,
            check=False,
        )  # fmt: skip
    os.close(terminal)
    os.close(reader)
    watched = True

    def leave_to_parent() -> None:
        if watched:
            os.close(writer)

    os.register_at_fork(after_in_child=leave_to_parent)
    try:
        yield
    finally:
        watched = False
        with suppress(OSError):  # the watcher has gone
            os.write(writer, b"x")
        os.close(writer)
