"""A process that a signal such as SIGSTOP holds: it answers nothing until it is let go on."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

__all__ = ["is_stopped", "let_go_on"]

_STOPPED = "T"
"""The state of such a process in Linux's table of processes; one that a tracer holds is in another."""


def is_stopped(pid: int) -> bool:
    """Return whether a signal holds a process; False where the system has no such table, or no such process.

    Examples
    --------
    >>> import os
    >>> is_stopped(os.getpid())
    False
    """
    try:
        row = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return row.rpartition(")")[2].split()[0] == _STOPPED  # the name before it may hold anything


def let_go_on(pid: int) -> None:
    """Send a process that a signal holds SIGCONT."""
    if is_stopped(pid):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)
