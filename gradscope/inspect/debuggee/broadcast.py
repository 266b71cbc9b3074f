"""The listeners of a session, and the lines that its program has written."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from typing import Protocol

from ..records.records import DebuggerEvent, SessionState

__all__ = ["Broadcast", "Listener", "OutputWriter"]

Listener = Callable[[DebuggerEvent], None]

_KEPT_LINES = 100_000
_KEPT_CHARACTERS = 50_000_000
_LONGEST_LINE = 65_536
_NO_TEXT = re.compile("[\ud800-\udfff]")


class OutputWriter(Protocol):
    """Where a program's output goes."""

    def __call__(self, text: str, stream: str = "stdout") -> None:
        """Take text written to ``'stdout'`` or ``'stderr'``."""


class Broadcast:
    r"""Listeners and output of one session.

    Attributes
    ----------
    output : list of str
        Whole lines of both streams, without their ends; the oldest go when there are more than 100,000 or 50 million
        characters. Of a line that was written over (``\\r``) the last state is kept; one that goes on for ever is cut.

    Examples
    --------
    >>> from gradscope.inspect import SessionState
    >>> broadcast, heard = Broadcast(lambda: SessionState.RUNNING), []
    >>> stop = broadcast.listen(lambda event: heard.append((event.text, event.stream)))
    >>> broadcast.write("loss 0.3\nloss")
    >>> broadcast.write("oh\n", "stderr")
    >>> broadcast.flush()
    >>> heard
    [('loss 0.3', 'stdout'), ('oh', 'stderr'), ('loss', 'stdout')]
    """

    def __init__(self, state: Callable[[], SessionState]) -> None:
        self.output: list[str] = []
        self._state = state
        self._listeners: list[Listener] = []
        self._writers: list[OutputWriter] = []
        self._partial = {"stdout": "", "stderr": ""}
        self._characters = 0
        self._lock = threading.Lock()

    @property
    def unfinished(self) -> str:
        """The line on stdout that has been begun and not ended."""
        return _as_shown(self._partial["stdout"])

    def listen(self, callback: Listener) -> Callable[[], None]:
        """Add a listener; return what removes it."""
        self._listeners.append(callback)

        def remove() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return remove

    def tell(self, event: DebuggerEvent) -> None:
        """Call every listener; one that raises is removed, so that it cannot break the program it listens to."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:
                self._listeners.remove(listener)
                warnings.warn(
                    f"a listener of the debugger raised {type(error).__name__}: {error}; it hears no more",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def echo_to(self, write: OutputWriter) -> Callable[[], None]:
        """Add a writer, which gets what is written as it comes; return what removes it."""
        self._writers.append(write)

        def remove() -> None:
            if write in self._writers:
                self._writers.remove(write)

        return remove

    def write(self, text: str, stream: str = "stdout") -> None:
        """Take output of the program; whole lines are told at once."""
        for write in tuple(self._writers):
            write(text, stream)
        with self._lock:
            *lines, rest = (self._partial[stream] + text).split("\n")
            if len(rest) > _LONGEST_LINE:
                rest = rest.rpartition("\r")[2]
            if len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest], ""
            self._partial[stream] = rest
        for line in map(_as_shown, lines):
            self.output.append(line)
            self._characters += len(line)
            self.tell(DebuggerEvent("output", self._state(), text=line, stream=stream))
        while len(self.output) > _KEPT_LINES or (self._characters > _KEPT_CHARACTERS and len(self.output) > 1):
            gone = len(self.output) // 10 or 1
            self._characters -= sum(map(len, self.output[:gone]))
            del self.output[:gone]

    def flush(self) -> None:
        """Tell what has been written without the end of a line."""
        writers, self._writers = self._writers, []
        for stream, text in self._partial.items():
            if text:
                self.write("\n", stream)
        self._writers = writers


def _as_shown(line: str) -> str:
    """Return what a line looks like on a terminal: the last that was written over it; bytes that are no text as �."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    return line if line.isascii() else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", line)
