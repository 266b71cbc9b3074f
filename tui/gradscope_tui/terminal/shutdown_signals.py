"""Signals that end the process: the script is ended as `q` ends it, and the terminal is given back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SIGNALLED", "ended_by_signals"]

SIGNALLED = 128
"""What shells, and we, add to the number of the signal that has ended a process."""

_DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    **{getattr(signal, name): signal.SIG_DFL for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)},
}
"""What stands for such a signal where nobody has said otherwise; Ctrl-C is a key, and no signal."""

_ours: set[int] = set()


@contextmanager
def ended_by_signals(leave: Callable[[int], None]) -> Iterator[None]:
    """Call a function where a signal would end the process, for the length of the block.

    A signal that somebody ignores or handles, such as SIGHUP under ``nohup``, stays as it is. Children that are forked
    meanwhile are ended by these signals as ever.

    Parameters
    ----------
    leave : callable
        Called on the main thread, between any two of its instructions, with the number of the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number, default in _DEFAULTS.items() if signal.getsignal(number) is default]

    def handler(number: int, frame: Any) -> None:
        leave(number)

    for number in taken:
        signal.signal(number, handler)
    _ours.update(taken)
    try:
        yield
    finally:
        _ours.difference_update(taken)
        for number in taken:
            if signal.getsignal(number) is handler:
                signal.signal(number, _DEFAULTS[number])


def _step_aside() -> None:
    """In a child that has been forked: let the signals end it."""
    while _ours:
        number = _ours.pop()
        signal.signal(number, _DEFAULTS[number])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_step_aside)
