"""Ctrl-C for a script that runs on the main thread while instruments look on: it interrupts the script, not them.

An instrument that is interrupted in the middle of its bookkeeping may say wrong things about the program later. An
exception that is raised in a callback of a weak reference is dropped by Python, and instruments have many such
callbacks: the script would not be interrupted at all.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ...program_files import is_library_file
from ...runtime import events
from .program_thread import replaced

__all__ = ["KILLED_BY_SIGINT", "interrupting_the_script_only"]

KILLED_BY_SIGINT = 128 + signal.SIGINT
"""The exit status that a shell reports after Ctrl-C."""

_GRADSCOPE = Path(__file__).parents[2]
_SPARED = (
    str(_GRADSCOPE / "inspect"),
    str(_GRADSCOPE / "check"),
    events.__file__,
    *(kind.__init__.__code__.co_filename for kind in (weakref.WeakKeyDictionary, weakref.WeakSet)),
)
"""The files of the instruments, and of the weak collections that they keep."""

_AGAIN = 0.002
"""Seconds until an interrupt that met an instrument is sent again."""

_AGAIN_AT_MOST = 0.1
"""Seconds between two of them, later on."""

_GRACE = 1.0
"""Seconds after which an interrupt is raised even in an instrument."""


@contextmanager
def interrupting_the_script_only() -> Iterator[None]:
    """Raise KeyboardInterrupt in the script's own code, or in what it calls, for the length of the block.

    An interrupt that met an instrument and was not sent again before the block's end is raised there.

    To the script, the handler looks like Python's own. The block changes nothing on other threads, which Ctrl-C does
    not reach, and where the program has a handler of its own.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    ident = threading.get_ident()
    since: float | None = None
    heard = 0

    def again(heard_before: int) -> None:
        """Send the signal until it is heard: one that comes just before a sleep does not end that sleep."""
        pause = _AGAIN
        time.sleep(pause)
        while heard == heard_before and signal.getsignal(signal.SIGINT) is default_int_handler:
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(ident, signal.SIGINT)  # a signal also ends a sleep that has begun meanwhile
            else:
                _thread.interrupt_main()
            pause = min(2 * pause, _AGAIN_AT_MOST)
            time.sleep(pause)

    def default_int_handler(number: int, frame: FrameType | None) -> None:
        nonlocal since, heard
        heard += 1
        now = time.monotonic()
        since = now if since is None else since
        if now - since < _GRACE and _spared(frame):
            _thread.start_new_thread(again, (heard,))  # a bare thread needs no lock that the interrupted code may hold
            return
        since = None
        raise KeyboardInterrupt

    with replaced(signal, "default_int_handler", default_int_handler):
        default = signal.signal(signal.SIGINT, default_int_handler)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGINT) is default_int_handler:
                heard += 1  # it is not sent again any more
                signal.signal(signal.SIGINT, default)
                if since is not None:
                    raise KeyboardInterrupt


def _spared(frame: FrameType | None) -> bool:
    """Return whether code was called by an instrument, rather than by the script."""
    main = sys.modules["__main__"].__dict__
    while frame is not None and frame.f_globals is not main:
        name = frame.f_code.co_filename
        if name.startswith(_SPARED):
            return True
        if not is_library_file(name) and "site-packages" not in name:
            return False
        frame = frame.f_back
    return False
