"""Signal handlers of a program on a thread: they are noted, for Python sets them on a process's main thread alone.

Signals that the program sends to itself reach its handlers; those that come from elsewhere are the process's. A script
that ``gradscope debug`` runs is on the main thread of a process of its own, and needs none of this.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .program_thread import Interrupter, replaced

__all__ = ["noting_handlers"]


@contextmanager
def noting_handlers(interrupter: Interrupter) -> Iterator[None]:
    """Let the calling thread use :mod:`signal` as a main thread does, for the length of the block.

    Parameters
    ----------
    interrupter : Interrupter
        Of the thread, whose ``time.sleep`` an abort is to end.
    """
    handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
    get, send_to_self, kill, sleep_on = signal.getsignal, signal.raise_signal, os.kill, time.sleep
    wakeup_fd = -1

    def get_noted(signalnum: int) -> Any:
        return handlers[signalnum] if signalnum in handlers else get(signalnum)

    def note(signalnum: int, handler: Any) -> Any:
        if not (callable(handler) or handler in (signal.SIG_DFL, signal.SIG_IGN)):
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        before = get_noted(signalnum)
        handlers[signalnum] = handler
        return before

    def note_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
        nonlocal wakeup_fd
        before, wakeup_fd = wakeup_fd, fd
        return before

    def raise_noted(signalnum: int) -> None:
        handler = handlers.get(signalnum)
        if callable(handler):
            handler(signalnum, sys._getframe(2))  # this function is called by a stand-in
        elif handler != signal.SIG_IGN:
            send_to_self(signalnum)

    def send(pid: int, signalnum: int) -> None:
        if pid == os.getpid() and callable(handlers.get(signalnum)):
            handlers[signalnum](signalnum, sys._getframe(2))
        else:
            kill(pid, signalnum)

    def sleep(seconds: float) -> None:
        if seconds > 0:
            interrupter.sleep(seconds)
        else:
            sleep_on(seconds)

    stand_ins: list[tuple[Any, str, Callable[..., Any]]] = [
        (signal, "signal", note),
        (signal, "getsignal", get_noted),
        (signal, "set_wakeup_fd", note_wakeup_fd),
        (signal, "raise_signal", raise_noted),
        (os, "kill", send),
        (time, "sleep", sleep),
    ]
    with ExitStack() as stack:
        for owner, name, function in stand_ins:
            stack.enter_context(replaced(owner, name, _here(interrupter, getattr(owner, name), function)))
        yield


def _here(interrupter: Interrupter, real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `ours` on the program's thread, and `real` on others and in child processes."""
    program = os.getpid()

    @functools.wraps(real)
    def either(*args: Any, **kwargs: Any) -> Any:
        mine = interrupter.here and os.getpid() == program
        return (ours if mine else real)(*args, **kwargs)

    return either
