"""What a session tells the outside: its listeners, and the lines its program has written."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .records import DebuggerEvent, SessionState

__all__ = ["Broadcast", "Listener"]

Listener = Callable[[DebuggerEvent], None]

_KEPT_LINES = 100_000


class Broadcast:
    r"""Listeners and output of one session.

    Attributes
    ----------
    output : list of str
        Whole lines of both streams, without their ends; the oldest go when there are more than 100,000.

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
        self._partial = {"stdout": "", "stderr": ""}

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

    def write(self, text: str, stream: str = "stdout") -> None:
        """Take output of the program; whole lines are told at once."""
        *lines, self._partial[stream] = (self._partial[stream] + text).split("\n")
        for line in lines:
            self.output.append(line)
            self.tell(DebuggerEvent("output", self._state(), text=line, stream=stream))
        if len(self.output) > _KEPT_LINES:
            del self.output[: _KEPT_LINES // 10]

    def flush(self) -> None:
        """Tell what has been written without the end of a line."""
        for stream, text in self._partial.items():
            if text:
                self.write("\n", stream)
