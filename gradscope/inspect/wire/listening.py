"""``gi.listen()``: a running program to which fronts attach and from which they detach."""

from __future__ import annotations

import atexit
import os
import sys

from ..output.terminal_text import say
from ..source.source_paths import program_name
from .addresses import Address, listening_socket, own_address, parse_address
from .served_debugger import RunningProgramDebugger, ServedDebugger
from .server import DebugServer

__all__ = ["Listening", "begin", "listen", "listen_as_told", "say_listening", "serve"]

TOKEN = "GRADSCOPE_TOKEN"


class Listening:
    """A program that listens for fronts.

    Attributes
    ----------
    address : str
        Where, for ``gradscope attach``.

    See Also
    --------
    listen : starts one.

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> listening = gi.listen("tcp://:0", token="a secret")
    >>> listening.address.startswith("tcp://127.0.0.1:")
    True
    >>> listening.close()
    """

    def __init__(self, debugger: RunningProgramDebugger, server: DebugServer) -> None:
        self.address = str(server.address)
        self._debugger = debugger
        self._server = server

    def close(self) -> None:
        """Stop listening; a front that is attached is told."""
        atexit.unregister(self._end)
        self._server.close()
        self._debugger.detach()
        self._debugger.close()
        _LISTENING.clear()

    def _end(self) -> None:
        self._debugger.program_ends()
        self._server.close()

    def __repr__(self) -> str:
        return f"<Listening at {self.address}>"


_LISTENING: list[Listening] = []


def listen(address: str = "", *, token: str = "", adapter: object = None) -> Listening:
    """Let ``gradscope attach`` debug this program from another terminal, from now on.

    Parameters
    ----------
    address : str
        The path of a Unix socket, or ``'tcp://HOST:PORT'`` (the host is 127.0.0.1 where it is left out, the port a free
        one where it is 0). By default a Unix socket in the user's runtime directory, which ``gradscope attach`` finds
        by the process's number.
    token : str
        What fronts must know, over TCP; by default that of the environment variable ``GRADSCOPE_TOKEN``.

    Returns
    -------
    Listening
        With the address; the same one if the program listens already.

    Raises
    ------
    AddressError
        If nobody can listen there; an OSError.
    ValueError
        If the address is one of TCP, and there is no token: whoever reaches it could run any code here.

    See Also
    --------
    set_trace : Stop here, and wait for a front.

    Notes
    -----
    The program is observed from here on: a backward pays for it about what it pays under a debugger that lets it run
    free. It stops only while a front is attached, and at :func:`set_trace`. Without a change to a program,
    ``GRADSCOPE_LISTEN=1`` in its environment does the same (or an address instead of ``1``): from its import of
    gradscope on, or its first use of PyTorch.

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> listening = gi.listen("tcp://:0", token="a secret")
    >>> listening.address.startswith("tcp://127.0.0.1:")
    True
    >>> listening.close()
    """
    fresh = not _LISTENING
    listening = begin(address, token=token, adapter=adapter)
    if fresh:
        say_listening(parse_address(listening.address), "attaches")
    return listening


def begin(address: str = "", *, token: str = "", adapter: object = None) -> Listening:
    """Do what :func:`listen` does without printing the address."""
    if _LISTENING:
        return _LISTENING[0]
    title = program_name()
    debugger = RunningProgramDebugger(title, adapter)  # type: ignore[arg-type]
    server = serve(debugger, address, token)
    debugger.listen()
    server.start()
    listening = Listening(debugger, server)
    _LISTENING.append(listening)
    atexit.register(listening._end)
    return listening


def listen_as_told(value: str) -> None:
    """Listen as the environment variable GRADSCOPE_LISTEN says: ``1`` or an address; not in its child processes.

    Nobody can listen there twice, so a process that this one starts does without.
    """
    os.environ.pop("GRADSCOPE_LISTEN", None)
    if value not in ("", "0"):
        try:
            listen("" if value == "1" else value)
        except (OSError, ValueError) as error:
            say(f"gradscope: GRADSCOPE_LISTEN={value}: {error}", file=sys.stderr)


def serve(debugger: ServedDebugger, address: str = "", token: str = "") -> DebugServer:
    """Return a server for a debugger, which lets the program run free when a front has gone; not started.

    Parameters
    ----------
    address, token : str
        As for :func:`listen`.

    Raises
    ------
    AddressError, ValueError
        As for :func:`listen`.
    """
    asked = parse_address(address) if address else own_address()
    secret = b"" if asked.local else (token or os.environ.get(TOKEN, "")).encode()
    if not asked.local and not secret:
        raise ValueError(
            f"a program that listens at {asked} needs a token: whoever attaches can run any code in it\n"
            f"Give token=, or set {TOKEN}: `python -c 'import secrets; print(secrets.token_hex())'` makes one."
        )
    listener, bound = listening_socket(asked)
    server = DebugServer(debugger, listener, bound, secret, on_coming=debugger.attached)
    server.on_leaving = lambda said: debugger.detach()
    return server


def say_listening(address: Address, effect: str) -> None:
    """Say on stderr where this process listens, and which command has what `effect`."""
    own = address.local and address == parse_address(str(os.getpid()))
    command = f"gradscope attach {os.getpid() if own else address}"
    say(f"gradscope: listening at {address}; `{command}` {effect}", file=sys.stderr)
