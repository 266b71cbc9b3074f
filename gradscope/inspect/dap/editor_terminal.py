"""A program in a terminal that the editor opens for it: what it prints is there, and what is typed there it reads."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..wire import messages as m
from ..wire.channel import Channel, ChannelError
from ..wire.client import RemoteDebugger, introduced

__all__ = ["CONSOLES", "TerminalProcess"]

CONSOLES = {"integratedTerminal": "integrated", "externalTerminal": "external"}
"""The kinds of terminals, by what a launch calls them."""

_STARTING = 60.0
_LEAVE = 2.0

OpenTerminal = Callable[[dict[str, Any]], None]


class TerminalProcess:
    """A process that an editor has started in a terminal, and the debugger of it.

    Parameters
    ----------
    open_terminal : callable
        Sends the editor the arguments of ``runInTerminal``, and raises ValueError where it refuses.
    arguments : sequence of str
        ``[-m] SCRIPT args``.
    kind : str
        ``'integrated'`` or ``'external'``.
    environment : mapping
        What its environment has beside the terminal's; None removes a variable.

    Attributes
    ----------
    debugger : RemoteDebugger
        The session, not started.

    Raises
    ------
    ChannelError
        If the process does not connect.
    """

    def __init__(
        self,
        open_terminal: OpenTerminal,
        arguments: Sequence[str],
        kind: str,
        environment: Mapping[str, str | None],
    ) -> None:
        self._open_terminal = open_terminal
        self._arguments = arguments
        self._kind = kind
        self.environment = environment
        self.debugger = RemoteDebugger(*self._start())
        self.debugger.owned = True
        self.debugger.start_again = self._start_again

    def _start(self) -> tuple[Channel[Any], int, m.Welcome]:
        """Start the process; return the connection with it, its number and what it has said."""
        with tempfile.TemporaryDirectory(prefix="gradscope-") as folder:  # which is the user's own
            path = os.path.join(folder, "front.sock")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(1)
                self._open_terminal(self._request(path))
                listener.settimeout(_STARTING)
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    raise ChannelError(
                        "the program in the terminal has not connected; what the terminal shows says why"
                    ) from None
        connection.settimeout(None)
        channel: Channel[Any] = Channel(connection, m.FromProgram)
        hello, welcome = introduced(channel)
        return channel, hello.pid, welcome

    def _request(self, path: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "gradscope.debuggee", "--connect", path, "--on-disconnect", "end"]
        return {
            "kind": self._kind,
            "title": f"gradscope: {os.path.basename(self._arguments[-1])}",
            "cwd": os.getcwd(),
            "args": [*command, *self._arguments],
            "env": dict(self.environment),
        }

    def _start_again(self) -> None:
        self.end()
        self.debugger.attach(*self._start())

    def end(self) -> None:
        """End the program; let the process of one that has ended come to its end."""
        debugger = self.debugger
        if not debugger.ended:
            debugger.abort()
            debugger.wait_for_end(_LEAVE)
        if not debugger.ended and debugger.here:  # it is in the middle of something that does not end
            with contextlib.suppress(OSError):
                os.kill(debugger.pid, signal.SIGTERM)
        debugger.detach()
