"""The gate at which a program waits while its debugger thinks.

The program's thread parks in :meth:`Gate.park` and answers messages from a queue: go on, end, or evaluate a function
*on this thread*, so that no other thread ever touches a live tensor. A message is for the stop at which it is taken:
two `go` in a row cannot let the program pass two stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

__all__ = ["Gate", "NotParkedError", "ProgramAborted"]


_SLICE = 0.2  # seconds


class ProgramAborted(BaseException):
    """Raised in the program's thread to end it; a BaseException, so that ``except Exception`` lets it pass."""


class NotParkedError(RuntimeError):
    """The program is not waiting at a node, so nothing can be evaluated there."""

    def __init__(self) -> None:
        super().__init__("the program is not paused\nStop it first: step, run to a breakpoint, or pause.")


class _Go(NamedTuple):
    command: Any


class _Abort(NamedTuple):
    pass


class _Evaluate(NamedTuple):
    function: Callable[[], Any]
    future: Future[Any]


class Gate:
    """The place where the thread of a program waits.

    Attributes
    ----------
    on_parking : callable or None
        Called on the program's thread before it waits.
    gone : bool
        True in a child process that the program has forked: nobody is there to open the gate, so none may park.

    Examples
    --------
    >>> import threading
    >>> gate, answers = Gate(), []
    >>> program = threading.Thread(target=lambda: answers.append(gate.park()))
    >>> program.start()
    >>> gate.submit(lambda: threading.current_thread() is program).result()
    True
    >>> gate.go("on")
    >>> program.join()
    >>> answers
    ['on']
    """

    def __init__(self) -> None:
        self.on_parking: Callable[[], None] | None = None
        self.gone = False
        self._messages: SimpleQueue[_Go | _Abort | _Evaluate] = SimpleQueue()
        # A signal may come while a thread holds this lock, and the signal's handler takes it again: hence reentrant.
        self._lock = threading.RLock()
        self._open_for: int | None = None

    @property
    def parked(self) -> bool:
        """Whether a thread waits here."""
        return self._open_for is not None

    def park(self, announce: Callable[[], None] | None = None) -> Any:
        """Wait here until :meth:`go`; answer evaluations meanwhile.

        Parameters
        ----------
        announce : callable, optional
            Called on this thread as soon as messages can be taken.

        Returns
        -------
        object
            What was given to :meth:`go`.

        Raises
        ------
        ProgramAborted
            After :meth:`abort`.
        """
        if self.on_parking is not None:
            self.on_parking()
        with self._lock:
            self._open_for = threading.get_ident()
        try:
            if announce is not None:
                announce()
            while True:
                try:
                    message = self._messages.get(timeout=_SLICE)
                except Empty:  # a handler of a signal that came just before the wait runs between two waits
                    continue
                if isinstance(message, _Evaluate):
                    self._evaluate(message)
                elif isinstance(message, _Abort):
                    raise ProgramAborted
                else:
                    return message.command
        finally:
            self._close()

    def go(self, command: Any = None) -> None:
        """Let the parked thread go on; its :meth:`park` returns `command`.

        Raises
        ------
        NotParkedError
            If no thread waits here.
        """
        self._send(_Go(command))

    def abort(self) -> None:
        """Make the parked thread raise :class:`ProgramAborted`.

        Raises
        ------
        NotParkedError
            If no thread waits here.
        """
        self._send(_Abort())

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Have the parked thread call `function`.

        Returns
        -------
        Future
            Its result or exception. Called from the parked thread itself, it is done at once.

        Raises
        ------
        NotParkedError
            If no thread waits here.
        """
        message = _Evaluate(function, Future())
        if self._open_for == threading.get_ident():
            self._evaluate(message)
        else:
            self._send(message)
        return message.future

    def _send(self, message: _Go | _Abort | _Evaluate) -> None:
        with self._lock:
            if self._open_for is None:
                raise NotParkedError
            self._messages.put(message)

    @staticmethod
    def _evaluate(message: _Evaluate) -> None:
        if not message.future.set_running_or_notify_cancel():
            return
        try:
            message.future.set_result(message.function())
        except BaseException as error:
            message.future.set_exception(error)

    def _close(self) -> None:
        with self._lock:
            self._open_for = None
            while not self._messages.empty():
                message = self._messages.get_nowait()
                if isinstance(message, _Evaluate):
                    message.future.set_exception(NotParkedError())
