"""Keeps what a program writes to two pipes in order, though whoever reads them sees only that there is something."""

from __future__ import annotations

import io
import os
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["order_output"]

_PATIENCE = 0.2
"""Seconds to wait for a reader; one that is stopped is waited for no more until it has read."""

_TURN = 0.0001


def order_output(*, line_buffered: bool) -> None:
    """Let the program write to stdout when stderr has been read, and the other way round.

    So the order holds for all that it writes in Python; what its libraries and its child processes write to the
    descriptors themselves is not waited for.

    Parameters
    ----------
    line_buffered : bool
        Whether lines are written as they are printed, as to a terminal: somebody reads along.
    """
    for name, other in (("stdout", 2), ("stderr", 1)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            ordered = _ordered(stream, other, line_buffered=line_buffered or stream.line_buffering)
            setattr(sys, name, ordered)
            setattr(sys, f"__{name}__", ordered)


def _ordered(stream: io.TextIOWrapper, other: int, *, line_buffered: bool) -> io.TextIOWrapper:
    """Return a stream like one that Python has made at its start."""
    stream.flush()
    raw = _OrderedPipe(stream.fileno(), other)
    raw.name = stream.name
    found = io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),  # as under python -u, or without
        stream.encoding,
        stream.errors,
        newline="\n",
        line_buffering=line_buffered,
        write_through=stream.write_through,
    )
    found.mode = stream.mode  # type: ignore[misc] # typeshed takes it for a property
    return found


class _OrderedPipe(io.FileIO):
    """The end of a pipe that is written to once another has been read."""

    def __init__(self, descriptor: int, other: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._other = other
        self._waits = True

    def write(self, data: ReadableBuffer, /) -> int:
        if not _is_unread(self._other):
            self._waits = True
        elif self._waits:
            self._wait()
        return super().write(data)

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE
        while _is_unread(self._other):
            if time.monotonic() > end:
                self._waits = False
                return
            time.sleep(_TURN)


def _is_unread(descriptor: int) -> bool:
    """Whether there is something in a pipe; nothing else that the program may have put there is waited for."""
    with suppress(OSError, ImportError):  # it is closed, or the system has no such call
        import fcntl  # Windows has neither
        import termios  # nor this

        count = int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
        return count > 0 and stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    return False
