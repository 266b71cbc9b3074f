"""The prompt of a program in a process of its own; what is typed while the program runs goes to its terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from ..debugging.prompt.line_mode import LineMode
from .program_process import ProgramProcess

__all__ = ["ProcessPrompt", "SignalledError"]

_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_ENDING = (signal.SIGTERM, getattr(signal, "SIGHUP", None))
_PATIENCE = 2.0
_SLICE, _LATE = 0.2, 1.0
"""Seconds after which a signal that has not been handled is sent again, and that its handling is told earlier."""


def _see_handled(came: int, handled: Mapping[int, float], over: threading.Event) -> None:
    """Send the main thread a signal again: one that came just before it began to wait was missed.

    Parameters
    ----------
    came : int
        A descriptor from which the number of each signal is read.
    handled : mapping of int to float
        When a signal of a number has last been handled. One that was shortly before this one is taken for it: Ctrl-C
        that comes twice would end the program.
    over : Event
        Nobody waits for signals any more.
    """
    main = threading.main_thread().ident or 0
    while data := os.read(came, 1):
        number, now = data[0], time.monotonic()
        if not over.wait(_SLICE) and handled.get(number, 0.0) < now - _LATE and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, number)
    os.close(came)


class SignalledError(BaseException):
    """A signal has ended the program, and the prompt with it."""


class ProcessPrompt(LineMode):
    """A session at a prompt.

    Parameters
    ----------
    process : ProgramProcess
        The program, not started.

    Attributes
    ----------
    end_echo : callable
        Writes no more of what the program writes.
    """

    def __init__(self, process: ProgramProcess) -> None:
        super().__init__(process.debugger)  # type: ignore[arg-type] # RemoteDebugger has the same verbs
        self._process = process
        # The output is shown from before the start until after the end: signal and exit handlers may write too.
        self.end_echo = self.debugger.echo_to(self._echo)

    def conclude(self) -> tuple[int, str]:
        """Let the process come to its end; return the exit status, and the line that says how it ended."""
        try:
            return self._process.conclude()
        finally:
            self.end_echo()

    def _begin_echo(self) -> Callable[[], None]:
        return lambda: None  # the output is shown already

    def _wait(self, presses: int = 0) -> None:
        with self._typing():
            super()._wait(presses)

    def _breakpoint_hook(self, hook: object) -> object:
        return hook  # breakpoint() in the program keeps its own hook, on the program's own terminal

    @contextlib.contextmanager
    def signals_passed_on(self) -> Iterator[None]:
        """Send the program the signals that come to this process, but Ctrl-C; leave if one of them ends it.

        Raises
        ------
        SignalledError
            Wherever this thread is, in the block.
        """
        numbers = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
        taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

        handled: dict[int, float] = {}

        def pass_on(number: int, frame: FrameType | None) -> None:
            handled[number] = time.monotonic()
            self._process.send_signal(number)
            if number in _ENDING and self._process.debugger.wait_for_end(_PATIENCE):
                raise SignalledError

        def interrupt(number: int, frame: FrameType | None) -> None:
            handled[number] = time.monotonic()
            signal.default_int_handler(number, frame)

        for number in taken:
            signal.signal(number, pass_on)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
        over = threading.Event()
        came, told = os.pipe()
        os.set_blocking(told, False)
        before = signal.set_wakeup_fd(told)
        threading.Thread(target=_see_handled, args=(came, handled, over), daemon=True).start()
        try:
            yield
        finally:
            over.set()
            signal.set_wakeup_fd(before)
            os.close(told)
            for number in taken:
                signal.signal(number, signal.SIG_DFL)
            if signal.getsignal(signal.SIGINT) is interrupt:
                signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def _typing(self) -> Iterator[None]:
        """Send the program what is typed, key by key, while it runs; Ctrl-C stays the prompt's."""
        if not (self.terminal and self._process.has_terminal):
            yield
            return
        import termios  # where there are pseudo-terminals there is this module

        descriptor = self.stdin.fileno()
        kept = termios.tcgetattr(descriptor)
        keys = [*kept[:3], kept[3] & ~(termios.ICANON | termios.ECHO), *kept[4:]]
        self._process.resize()
        stop, told = os.pipe()
        forwarder = threading.Thread(target=self._forward, args=(descriptor, stop), daemon=True)
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, keys)
            forwarder.start()
            yield
        finally:
            os.close(told)
            if forwarder.ident is not None:  # Ctrl-C may have come before the thread was started
                forwarder.join(1)
            os.close(stop)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, kept)

    def _forward(self, descriptor: int, stop: int) -> None:
        with contextlib.suppress(OSError):  # the program has ended
            while True:
                ready, _, _ = select.select([descriptor, stop], [], [])
                if stop in ready:
                    return
                data = os.read(descriptor, 4096)
                if not data:
                    return
                self._process.type(data)
