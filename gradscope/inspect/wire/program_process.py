"""A script in a process of its own, which a front has started: its terminal or pipes, and how it ends."""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from ..output.terminal_text import say
from ..records.records import SessionState
from . import messages as m
from .channel import Channel, ChannelError
from .client import RemoteDebugger, introduced
from .stopped_process import is_stopped, let_go_on

__all__ = ["ProgramProcess", "exit_text"]

_STARTING = 60.0
"""Seconds that a process may take until it connects."""

_ENDING = {getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP", "SIGQUIT")}
_EXIT = 60.0
_LEAVE = 2.0
_DRAIN = 0.3
_LATE = 0.002
"""Seconds that what was written to a pseudo-terminal may take to its other end."""


class _Reader(NamedTuple):
    descriptor: int
    stream: str
    decode: Callable[[bytes], str]


class ProgramProcess:
    """A process that runs a script, and the debugger of it.

    Parameters
    ----------
    arguments : sequence of str
        ``[-m] SCRIPT args``.
    terminal : bool
        Whether its standard streams are a pseudo-terminal of its own. If not, its stdin is `stdin` and its output goes
        through pipes, but through a pseudo-terminal where this process's stdout is a terminal.
    stdin : int or None
        The descriptor of its stdin without a terminal; None for an empty one.
    environment : mapping
        What its environment has beside this process's.
    line_buffered : bool
        Whether what it prints into a pipe comes line by line, as to a terminal, or as python writes to a pipe.

    Attributes
    ----------
    environment : mapping
        The same, for when it is started again.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        terminal: bool,
        stdin: int | None = None,
        environment: Mapping[str, str] | None = None,
        line_buffered: bool = False,
    ) -> None:
        self._arguments = arguments
        self._terminal = terminal
        self._stdin = stdin
        self._pipes_of = "lines" if line_buffered else "blocks"
        self.environment = environment or {}
        self._master = -1
        self._unseen = ""
        self._passing_on = threading.Lock()
        self._starting = threading.RLock()  # held while it is started again
        self._left = False
        self._before: tuple[int, str] | None = None  # how the program before it ended, while it is started again
        self._channel = self._start()

    @functools.cached_property
    def debugger(self) -> RemoteDebugger:
        """The session, not started; waits until the process has connected.

        Raises
        ------
        ChannelError
            If it does not, with what it has written.
        """
        try:
            hello, welcome = introduced(self._channel, patience=_STARTING)
        except BaseException as error:
            said = self._killed()
            if said and isinstance(error, ChannelError):
                raise ChannelError(said) from None
            raise
        debugger = RemoteDebugger(self._channel, hello.pid, welcome)
        debugger.owned = debugger.here = True
        debugger.how_it_ended = self._how_it_ended
        debugger.before_stop = self.drain
        debugger.start_again = self._start_again
        debugger.typing = self.type if self.has_terminal else None
        debugger.resizing = self.set_size if self.has_terminal else None
        self._start_reading(debugger)
        return debugger

    def _start(self) -> Channel[Any]:
        """Start the process; return the front's end of the connection with it."""
        self._unseen = ""
        here, there = socket.socketpair()
        streams, ours = self._streams(self._terminal, self._stdin)
        has_tty = self._master >= 0
        command = [sys.executable, "-m", "gradscope.debuggee", "--connected", str(there.fileno())]
        streams_are = ["--terminal"] if has_tty else ["--pipes", self._pipes_of]
        command += ["--on-disconnect", "end", *streams_are, *self._arguments]
        try:
            self._process = subprocess.Popen(
                command,
                **streams,
                env={**os.environ, **self.environment},
                pass_fds=[there.fileno()],
                start_new_session=has_tty,
                process_group=_group(has_tty),
            )
        finally:
            there.close()
            for descriptor in ours:
                os.close(descriptor)
        self._readers = self._make_readers()
        return Channel(here, m.FromProgram)

    def _start_again(self) -> None:
        with self._starting:
            if not self.debugger.ended:
                self.debugger.abort()
                self.debugger.wait(_LEAVE)
            self._before = self.debugger.conclusion()
            self.end()
            self._close_readers()
            channel = self._start()
            if self._left:
                self._process.kill()
            hello, welcome = introduced(channel, patience=_STARTING)
            self.debugger.attach(channel, hello.pid, welcome)
            self._start_reading(self.debugger)
            self._before = None

    # --- its streams ---

    def _streams(self, terminal: bool, stdin: int | None) -> tuple[dict[str, Any], list[int]]:
        """Return the streams of the process, and the descriptors that are to be closed here when it has them."""
        given: Any = subprocess.DEVNULL if stdin is None else stdin
        if not (terminal or sys.stdout.isatty()) or not hasattr(os, "openpty"):
            return self._pipes(given)
        try:
            self._master, slave = os.openpty()
        except OSError as error:
            text = f"gradscope: no pseudo-terminal ({error.strerror}): the program has pipes, and nothing to read from"
            say(text, file=sys.stderr)
            return self._pipes(given)
        self.resize()
        return {"stdin": slave if terminal else given, "stdout": slave, "stderr": slave}, [slave]

    def _pipes(self, stdin: Any) -> tuple[dict[str, Any], list[int]]:
        self._master = -1
        return {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}, []

    def _make_readers(self) -> list[_Reader]:
        def reader(descriptor: int, stream: str) -> _Reader:
            return _Reader(descriptor, stream, codecs.getincrementaldecoder("utf-8")("surrogateescape").decode)

        if self._master >= 0:
            return [reader(self._master, "stdout")]
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        pipes = (self._process.stdout, "stdout"), (self._process.stderr, "stderr")
        readers = [reader(os.dup(pipe.fileno()), name) for pipe, name in pipes]
        for pipe, _ in pipes:
            pipe.close()
        return readers

    def _start_reading(self, debugger: RemoteDebugger) -> None:
        self._open = {reader.descriptor: reader for reader in self._readers}
        self._thread = threading.Thread(
            target=self._read, args=(self._open, debugger), name="gradscope-output", daemon=True
        )
        self._thread.start()

    def _close_readers(self) -> None:
        self._thread.join(_LEAVE)
        for reader in self._readers:
            with contextlib.suppress(OSError):
                os.close(reader.descriptor)

    def _read(self, readers: dict[int, _Reader], debugger: RemoteDebugger) -> None:
        """Pass on what the program writes, on one thread: two would mix up what is written one after the other."""
        with contextlib.suppress(OSError, ValueError):  # they have been closed here
            while readers:
                ready, _, _ = select.select(list(readers), [], [])
                with self._passing_on:
                    for descriptor in ready:
                        if not self._pass_on(readers[descriptor], debugger):
                            del readers[descriptor]

    def _pass_on(self, reader: _Reader, debugger: RemoteDebugger) -> bool:
        """Pass on what there is to read from a stream; False at its end."""
        try:
            data = os.read(reader.descriptor, 65536)
        except OSError:  # the other end of a pseudo-terminal has been closed
            return False
        text = reader.decode(data)
        if text:
            debugger.take_output(text.replace("\r\n", "\n") if self._master >= 0 else text, reader.stream)
        return bool(data)

    def _killed(self) -> str:
        """Kill the process; return what it wrote before it ended without a handshake."""
        self._process.kill()
        self._process.wait()
        said = b""
        with contextlib.suppress(OSError):
            for reader in self._readers:
                while data := os.read(reader.descriptor, 65536):
                    said += data
        return said.decode("utf-8", "replace").strip()

    def drain(self) -> None:
        """Wait until what the program has written so far has been passed on."""
        late = _LATE if self._master >= 0 else 0.0
        for _ in range(int(_DRAIN / _LATE)):
            with contextlib.suppress(OSError, ValueError):
                if select.select(list(self._open), [], [], late)[0]:
                    time.sleep(_LATE)
                    continue
            with self._passing_on:
                break

    @property
    def has_terminal(self) -> bool:
        """Whether its stdin is a pseudo-terminal, on which :meth:`type` types."""
        return self._terminal and self._master >= 0

    def type(self, data: bytes) -> None:
        """Give the program's terminal what a person types.

        Raises
        ------
        OSError
            If it has none.
        """
        if not self.has_terminal:
            raise OSError("the program has no terminal to type on")
        os.write(self._master, data)

    def resize(self) -> None:
        """Give the program's terminal the size of this process's."""
        with contextlib.suppress(OSError):
            self.set_size(*os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1))

    def set_size(self, columns: int, rows: int) -> None:
        """Give the program's terminal a size; the program gets SIGWINCH."""
        with contextlib.suppress(OSError, ImportError):
            import fcntl  # Windows has neither of these
            import termios

            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # --- its end ---

    def end(self) -> int:
        """Let the process of a program that has ended come to its end, and end any other one.

        Returns
        -------
        int
            Its exit status; the number of a signal, negative.
        """
        ended = self.debugger.ended
        self.debugger.detach()
        # A program that has ended by itself has time for exit handlers and threads; one that was ended has not.
        patience = {None: _EXIT if ended and not self._unseen else 0, signal.SIGTERM: _LEAVE, signal.SIGKILL: _LEAVE}
        if is_stopped(self._process.pid):  # no other signal ends it
            patience = {signal.SIGKILL: _LEAVE}
        for number, seconds in patience.items():
            if number is not None:
                self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                break
        status = self._process.wait()
        self._thread.join(_DRAIN)
        return status

    def send_signal(self, number: int) -> None:
        """Send the process a signal, unless it has ended; one that ends it wakes it first, as in a shell."""
        self._process.send_signal(number)
        if number in _ENDING:
            let_go_on(self._process.pid)

    def conclude(self) -> tuple[int, str]:
        """End it; return the exit status for whoever ran the debugger, and the line that explains it.

        One that is just being started again, on another thread, is killed: what is told is the end of the one before.
        """
        self._left = True
        if not self._starting.acquire(blocking=False):
            self._process.kill()
            self._starting.acquire()
        try:
            return self._concluded()
        finally:
            self._starting.release()

    def _concluded(self) -> tuple[int, str]:
        if self._before is not None:
            self.end()
            return self._before
        if is_stopped(self._process.pid):
            return 128 - self.end(), f"{self.debugger.title} had been stopped by a signal, and has been killed"
        ended = self.debugger.ended
        status, text = self.debugger.conclusion()
        real = self.end()
        if self._unseen:
            return real if real >= 0 else 128 - real, f"{self.debugger.title} {self._unseen} and {exit_text(real)}"
        if ended and real < 0 and status != 128 - real:  # it crashed in an exit handler, or as its objects were freed
            return 128 - real, f"{text}, but {self.debugger.title} {exit_text(real)} at its exit"
        return status, text

    def wait_unseen(self) -> None:
        """Wait for the end of a process that has let the front go and runs on, as one does that runs another program.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C; the process runs on.
        """
        while self._unseen and self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVE)

    @property
    def status(self) -> int | None:
        """The exit status, once the process has ended; the negative number of a signal that ended it."""
        return self._process.poll()

    def _how_it_ended(self) -> tuple[SessionState, str]:
        """Return what to say when the connection has ended, though neither side has closed it."""
        try:
            status = self._process.wait(_LEAVE)
        except subprocess.TimeoutExpired:
            self._unseen = _lost(self._process.pid)
            self.debugger.runs_unseen = True
            return SessionState.FAILED, f"{self._unseen} and runs on, unseen"
        self.drain()
        self.debugger.exit_status = status if status >= 0 else 128 - status
        return SessionState.FAILED if status else SessionState.FINISHED, exit_text(status)


def _lost(pid: int) -> str:
    """Return what a process has done that runs on without its connection: it may be another program now."""
    arguments: list[str] = []
    with contextlib.suppress(OSError):  # another system, or it has ended meanwhile
        arguments = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    if not arguments or "gradscope.debuggee" in arguments:
        return "has closed its connection"
    return f"has become another program, {shorten(shlex.join(arguments), 80)},"


def exit_text(status: int) -> str:
    """Return how a process has ended.

    Parameters
    ----------
    status : int
        Its exit status; the number of a signal, negative.

    Examples
    --------
    >>> exit_text(3), exit_text(-11)
    ('has ended (exit status 3)', 'was killed by SIGSEGV')
    """
    if status >= 0:
        return f"has ended (exit status {status})"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _group(has_tty: bool) -> int | None:
    """Return the process group to start in: 0, a new one, which Ctrl-C at the front's terminal does not reach.

    A program with a pseudo-terminal has a session of its own, and with that a group.
    """
    return None if has_tty or os.name != "posix" else 0
