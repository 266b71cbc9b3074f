"""Python's warning of a fork beside other threads, where those are gradscope's: a plain run has none."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["unwarned_forks"]

_WARNING = r"This process \(pid=\d+\) is multi-threaded, use of fork"
"""How it begins; since Python 3.12."""

_OURS = "gradscope"
"""The names of gradscope's own threads begin so."""

_programs = 0


@contextmanager
def unwarned_forks() -> Iterator[None]:
    """In the block, have no warning of a fork in a program that has one thread beside gradscope's."""
    global _programs
    _programs += 1
    try:
        yield
    finally:
        _programs -= 1


def _before_fork() -> None:
    if _programs and sys.version_info >= (3, 12) and _threads() - _own_threads() <= 1:
        warnings.filterwarnings("ignore", _WARNING, DeprecationWarning)


def _threads() -> int:
    """Return how many threads there are, those of libraries too where the system tells: so Python counts them."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _own_threads() -> int:
    return sum(thread.name.startswith(_OURS) for thread in threading.enumerate())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
