"""``python -m gradscope.debuggee SCRIPT [args]``: a script as a program that fronts can debug, from its first line.

It runs on the main thread with the process's own streams and signals, as ``python SCRIPT`` would run it. Nothing of a
screen is loaded here: fronts are other processes (``gradscope attach``).
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from .inspect.debuggee.interrupts import KILLED_BY_SIGINT
from .inspect.debuggee.main_thread import MainThreadProgram, deepen_stack
from .inspect.debuggee.ordered_output import order_output
from .inspect.debuggee.script_targets import find_target
from .inspect.debuggee.streams import flush
from .inspect.output.terminal_text import say
from .inspect.wire.addresses import Address
from .inspect.wire.listening import say_listening, serve
from .inspect.wire.served_debugger import ScriptDebugger
from .inspect.wire.server import DebugServer

__all__ = ["main"]

_DESCRIPTION = """\
Run a script as `python SCRIPT args` would, as a program that `gradscope attach` can debug.
It waits for a front before its first line, and stops at its first backward; with --run it starts at once.

exit status: the script's own; 2 if the command line is wrong or nobody can listen at the address"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.
    """
    args = _parser().parse_args(argv)
    try:
        program = MainThreadProgram(find_target(args.script, module=args.module), args.args)
        program.gate.on_parking = flush
        debugger = ScriptDebugger(program)
        debuggee = _Debuggee(debugger, args.on_disconnect)
        front = _front(args)
        server = debuggee.listening(args.listen, free=args.run) if front is None else debuggee.connected(front)
    except (OSError, ImportError, ValueError) as error:
        say(f"gradscope.debuggee: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 2
    _prepare(terminal=args.terminal)
    if args.pipes:
        order_output(line_buffered=args.pipes == "lines")
    if args.run:
        debugger.run_free()
    else:
        debugger.run_script()
    if not debugger.forked:
        debuggee.wait_for_leave()
        server.close()
    return _left_with(debugger.exit_status or 0)


class _Debuggee:
    """What becomes of the program as fronts come and go."""

    def __init__(self, debugger: ScriptDebugger, on_disconnect: str) -> None:
        self._debugger = debugger
        self._on_disconnect = on_disconnect
        self._free = threading.Event()

    def listening(self, address: str, *, free: bool) -> DebugServer:
        """Return a server that takes fronts at an address; a program that does not run `free` waits for the first."""
        server = serve(self._debugger, address)
        server.on_leaving = self._left
        say_listening(server.address, "attaches" if free else "attaches, and starts it")
        server.start()
        return server

    def connected(self, connection: socket.socket) -> DebugServer:
        """Return a server for the front that has started this process, which has the other end of a socket."""
        connection.set_inheritable(False)
        server = DebugServer(self._debugger, None, Address(path=""), on_coming=self._debugger.attached)
        server.on_leaving = self._left
        server.adopt(connection, patience=None)  # it may load its screen first, from a cold disk
        return server

    def wait_for_leave(self) -> None:
        """Wait until the front that looks at the ended program has left."""
        if self._debugger.watched:
            self._free.wait()

    def _left(self, said: bool) -> None:
        debugger = self._debugger
        if said or self._on_disconnect == "continue":
            debugger.detach()
        elif self._on_disconnect == "end":
            debugger.watched = False
            debugger.abort()
        if debugger.ended:  # one that leaves earlier does not free the process for the next
            self._free.set()


def _front(args: argparse.Namespace) -> socket.socket | None:
    """Return the connection with the front that has started this process; None where it is to listen for fronts."""
    if args.connected is not None:
        return socket.socket(fileno=args.connected)
    if args.connect is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(args.connect)
    return connection


def _prepare(*, terminal: bool) -> None:
    faulthandler.enable(all_threads=False)
    deepen_stack()
    if terminal:
        with suppress(ImportError, OSError):
            import fcntl  # Windows has neither
            import termios  # nor this

            fcntl.ioctl(0 if os.isatty(0) else 1, termios.TIOCSCTTY, 0)


def _left_with(status: int) -> int:
    if status == KILLED_BY_SIGINT and os.name == "posix":  # as python ends after Ctrl-C
        flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gradscope.debuggee",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--listen", metavar="ADDRESS", default="", help="a Unix socket's path, or tcp://HOST:PORT")
    parser.add_argument("--connected", metavar="FD", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--connect", metavar="PATH", help=argparse.SUPPRESS)
    parser.add_argument("--terminal", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pipes", choices=("blocks", "lines"), help=argparse.SUPPRESS)
    parser.add_argument("--run", action="store_true", help="start at once, without waiting for a front")
    parser.add_argument(
        "--on-disconnect",
        choices=("continue", "wait", "end"),
        default="continue",
        help="when a front dies: go on (default), wait for another front where the program stands, or end the program",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module or package")
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="args", help="the script's own arguments")
    return parser


if __name__ == "__main__":
    sys.exit(main())
