"""A port for editors that cannot start an adapter themselves: each connection is a session of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from ..output.terminal_text import say

__all__ = ["EditorServer"]

_LOOPBACK = "127.0.0.1"
_CONNECTIONS = Path("/proc/net/tcp")


class EditorServer:
    """Listens on the loopback for editors.

    The protocol has no token, so that on Linux, which tells whose a connection is, those of other users are refused.

    Parameters
    ----------
    port : int
        0 for a free one.

    Attributes
    ----------
    port : int
        The one that it listens at.

    Raises
    ------
    OSError
        If nobody can listen there.
    """

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server((_LOOPBACK, port))
        self.port = self._listener.getsockname()[1]
        self._sessions: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Take editors until Ctrl-C; their sessions go on."""
        with contextlib.suppress(KeyboardInterrupt), self._listener:
            while True:
                connection, (host, port) = self._listener.accept()
                with connection:
                    if _owner(host, port) in (None, os.getuid()):
                        self._begin(connection)
                    else:
                        say("gradscope dap: the connection of another user was refused", file=sys.stderr)

    def _begin(self, connection: socket.socket) -> None:
        """Give an editor a session in a process of its own."""
        self._sessions = [session for session in self._sessions if session.poll() is None]
        command = [sys.executable, "-m", "gradscope", "dap"]
        self._sessions.append(
            subprocess.Popen(command, stdin=connection.fileno(), stdout=connection.fileno(), process_group=0)
        )


def _owner(host: str, port: int) -> int | None:
    """Return whose the other end of a connection on this machine is; None where the system does not tell."""
    end = f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
    with contextlib.suppress(OSError):
        rows = [line.split() for line in _CONNECTIONS.read_text(encoding="ascii").splitlines()[1:]]
        return next((int(row[7]) for row in rows if row[1] == end), -1)
    return None
