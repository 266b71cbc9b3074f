"""Signal handlers for a program that runs on another thread than the process's main one.

Python sets and runs handlers on the main thread alone. The program's calls of :mod:`signal` are therefore made on the
main thread, which a signal of our own wakes wherever it waits. A handler runs there too, with the program's frame; what
it raises is raised in the program's thread. While the program is paused, signals of timers are held until it goes on;
other signals interrupt the pause. Ctrl-C belongs to the debugger. So does a signal that ends a program without a
handler for it, because the debugger has to restore the terminal first.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from .pause_gate import Gate, NotParkedError
from .program_thread import Interrupter, replaced

__all__ = ["SignalHandlers"]

_CALL_SIGNAL = getattr(signal, "SIGURG", None)
"""The signal that wakes the main thread: one that is ignored by default, and that hardly any program uses."""

# The timer that sends each of these signals, where the system has them.
_TIMERS = {
    getattr(signal, name): getattr(signal, timer)
    for name, timer in (("SIGALRM", "ITIMER_REAL"), ("SIGVTALRM", "ITIMER_VIRTUAL"), ("SIGPROF", "ITIMER_PROF"))
    if hasattr(signal, name)
}

_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals by which others end a program."""

_TIMEOUT = 10.0  # seconds

_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep

# The functions as they are before a program's calls are redirected.
_signal, _getsignal, _raise_signal = signal.signal, signal.getsignal, signal.raise_signal
_kill, _sleep = os.kill, time.sleep


class SignalHandlers:
    """The signals of one program.

    Parameters
    ----------
    gate : Gate
        Where the program waits when it is paused.
    interrupter : Interrupter
        Of the thread that the program takes for its main thread.
    """

    def __init__(self, gate: Gate, interrupter: Interrupter) -> None:
        self._gate = gate
        self._interrupter = interrupter
        self._handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
        self._real: dict[int, Any] = {}
        self._before: dict[int, Any] = {}
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._serving = False
        self._forked = False
        self._wakeup_fd = -1
        self._main = 0
        self._raised = threading.Event()
        self.held: list[int] = []

    # --- on the main thread ---

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Make the program's calls of :mod:`signal` for the length of the block, and restore all handlers at its end.

        This is for the main thread. On another, or where the system has no signals between threads, no call is made:
        the program's handlers are kept, but only signals that the program sends to itself reach them.
        """
        main = threading.current_thread() is threading.main_thread()
        if not main or _CALL_SIGNAL is None or not hasattr(signal, "pthread_kill"):
            yield
            return
        self._main = threading.get_ident()
        # A front may have handlers for these signals, which the program must not see.
        self._before = {number: _getsignal(number) for number in _ENDING}
        self._real[_CALL_SIGNAL] = signal.signal(_CALL_SIGNAL, self._on_call)
        self._serving = True
        try:
            yield
        finally:
            self._serving = False
            self._restore()

    def _restore(self) -> None:
        while self._real:
            number, handler = self._real.popitem()
            if number in _TIMERS:  # a timer that still runs would kill the process without its handler
                signal.setitimer(_TIMERS[number], 0)
            # None stands for a handler that C code had set, and that Python cannot set again.
            _signal(number, signal.SIG_DFL if handler is None else handler)

    def _on_call(self, number: int, frame: FrameType | None) -> None:
        try:
            call, future = self._calls.get_nowait()
        except Empty:
            self._deliver(number, frame)
            return
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    def _deliver(self, number: int, frame: FrameType | None) -> None:
        """Take a signal from the system."""
        handler = self._handlers.get(number)
        if not callable(handler):
            return
        if self._forked:
            handler(number, frame)
            return
        self._wake(number)
        if self._gate.parked:
            self.held.append(number)
            if number not in _TIMERS:
                self._interrupt_pause()
            return
        ident = self._interrupter.ident
        try:
            handler(number, _users(sys._current_frames().get(ident or 0)))
        except BaseException as error:
            self._interrupter.throw(error)
        self._interrupter.wake()

    def _interrupt_pause(self) -> None:
        try:
            self._gate.interrupt(self.run_held)
        except NotParkedError:
            # The program has gone on meanwhile, and has run the held handlers itself.
            pass

    # --- on the program's thread ---

    def run_held(self) -> None:
        """Run the handlers of the signals that came while the program was paused."""
        while self.held:
            number = self.held.pop(0)
            handler = self._handlers.get(number)
            if callable(handler):
                handler(number, _users(sys._getframe()))

    @contextmanager
    def stand_in(self) -> Iterator[None]:
        """Let the calling thread use :mod:`signal` as a main thread does, for the length of the block."""
        stand_ins: list[tuple[Any, str, Any]] = [
            (signal, "signal", self._set),
            (signal, "getsignal", self._get),
            (signal, "set_wakeup_fd", self._set_wakeup_fd),
            (signal, "raise_signal", self._raise),
            (os, "kill", self._send),
            (time, "sleep", self._sleep),
        ]
        if hasattr(signal, "pause"):
            stand_ins.append((signal, "pause", self._pause))
        self._handlers = {**self._before, signal.SIGINT: signal.default_int_handler}
        self._wakeup_fd = -1
        self.held.clear()
        self._gate.on_leaving = self.run_held
        with ExitStack() as stack:
            for owner, name, function in stand_ins:
                stack.enter_context(replaced(owner, name, self._mine(getattr(owner, name), function)))
            try:
                yield
            finally:
                self._gate.on_leaving = None
                if self._serving and not self._forked:
                    self._call_on_main(self._retire)

    def forked(self) -> None:
        """Step aside in a child process, whose main thread is the calling one."""
        self._forked = True
        if self._serving and _CALL_SIGNAL is not None:
            _signal(_CALL_SIGNAL, signal.SIG_DFL)

    def _mine(self, real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `ours` on the program's thread and `real` on every other."""

        @functools.wraps(real)
        def either(*args: Any, **kwargs: Any) -> Any:
            mine = self._interrupter.here and not self._forked
            return (ours if mine else real)(*args, **kwargs)

        return either

    def _retire(self) -> None:
        before = self._real.pop(_CALL_SIGNAL or 0, None)
        self._restore()
        if _CALL_SIGNAL is not None:
            self._real[_CALL_SIGNAL] = before

    def _call_on_main(self, call: Callable[[], Any]) -> Any:
        """Have the main thread do something; return or raise what comes of it."""
        future: Future[Any] = Future()
        self._calls.put((call, future))
        signal.pthread_kill(self._main, _CALL_SIGNAL)  # type: ignore[arg-type]
        return future.result(_TIMEOUT)

    def _set(self, signalnum: int, handler: Any) -> Any:
        if not (callable(handler) or handler in (signal.SIG_DFL, signal.SIG_IGN)):
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        before = self._get(signalnum)
        # Ctrl-C stays the debugger's, and so does our own signal: for these a handler is only noted.
        if self._serving and signalnum not in (signal.SIGINT, _CALL_SIGNAL):
            real = self._deliver if callable(handler) else handler

            def register() -> None:
                before = self._real.setdefault(signalnum, _getsignal(signalnum))
                defaults = handler == self._before.get(signalnum) == signal.SIG_DFL
                _signal(signalnum, before if defaults else real)

            self._call_on_main(register)
        self._handlers[signalnum] = handler
        return before

    def _get(self, signalnum: int) -> Any:
        if signalnum in self._handlers:
            return self._handlers[signalnum]
        if signalnum == _CALL_SIGNAL and self._serving:
            return self._real.get(signalnum)
        return _getsignal(signalnum)

    def _set_wakeup_fd(self, fd: int, *, warn_on_full_buffer: bool = True) -> int:
        # The descriptor is only noted: our own signals must not be written to it.
        before, self._wakeup_fd = self._wakeup_fd, fd
        return before

    def _wake(self, number: int) -> None:
        """Do what the interpreter does when a signal comes, before its handler."""
        self._raised.set()
        if self._wakeup_fd >= 0:
            try:
                os.write(self._wakeup_fd, bytes([number]))
            except OSError:  # the pipe is full, so its reader is awake, or closed, so its reader is gone
                pass

    def _raise(self, signalnum: int) -> None:
        handler = self._handlers.get(signalnum)
        if callable(handler):
            self._wake(signalnum)
            handler(signalnum, _users(sys._getframe()))
        else:
            _raise_signal(signalnum)

    def _send(self, pid: int, signalnum: int) -> None:
        if pid == os.getpid() and callable(self._handlers.get(signalnum)):
            self._raise(signalnum)
        else:
            _kill(pid, signalnum)

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._interrupter.sleep(seconds)
        else:
            _sleep(seconds)

    def _pause(self) -> None:
        self._raised.clear()
        while not self._raised.is_set():
            self._interrupter.doze(60)


def _users(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program's own: it may have called one of our functions."""
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame
