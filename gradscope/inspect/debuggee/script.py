"""Runs a script on a thread as python does: ``__main__``, ``sys.argv``, ``sys.path[0]``, output, exit status."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from types import ModuleType

from ..source.source_paths import started_here
from .broadcast import OutputWriter
from .exits import ExitCalls
from .interrupts import KILLED_BY_SIGINT
from .pause_gate import ProgramAborted
from .program import Program, exit_status_of, own_traceback, print_uncaught
from .program_thread import ThreadFamily
from .script_targets import Target, as_main, check_script, execute, find_target
from .signals import noting_handlers
from .streams import captured, flush

__all__ = ["ScriptProgram", "check_script"]


class ScriptProgram(Program):
    """A script as a program.

    Parameters
    ----------
    target : str or Target
        A path, the dotted name of a module, or what :func:`.script_targets.find_target` found.
    argv : sequence of str
        Its arguments.

    Attributes
    ----------
    title : str
        The path, or the module's name.
    exit_status : int or None
        What python would return: 0, the argument of ``sys.exit``, 1 when it raised, 130 after a KeyboardInterrupt.
    """

    def __init__(self, target: str | Target, argv: Sequence[str] = ()) -> None:
        started_here()
        self._target = find_target(target) if isinstance(target, str) else target
        super().__init__(self._target.title)
        self._argv = argv
        self._threads = ThreadFamily()
        self._exits = ExitCalls()
        self._pid = os.getpid()
        # A line that the script has begun is shown when it stops.
        self.gate.on_parking = flush

    def run(self, write: OutputWriter) -> None:
        """Run the script to its end."""
        self._pid = os.getpid()
        # Python 3.12 and later warn so at a fork; the threads that they count are the debugger's.
        warnings.filterwarnings("ignore", r"This process .* is multi-threaded, use of fork", DeprecationWarning)
        try:
            with ExitStack() as stack:
                for part in (
                    self._threads.gathering(),
                    self.processes.gathering(),
                    self._exits.gathering(),
                    captured(write),
                    noting_handlers(self.interrupter),
                ):
                    stack.enter_context(part)
                module = stack.enter_context(as_main(self._target, self._argv))
                self.exit_status = self._life(module)
                if os.getpid() != self._pid:
                    # This is a child that the script has forked: it ends here, and what follows is the parent's.
                    os._exit(self.exit_status)
        except ProgramAborted:
            self.exit_status = 0
        except BaseException as error:  # it was raised as the process's state was restored
            self.exit_status = 1
            self.error = error
            self.traceback = own_traceback(error)
            write(self.traceback, "stderr")

    def _life(self, module: ModuleType) -> int:
        """Execute the script, wait for its threads, call its exit handlers, in python's order."""
        try:
            with self.interrupter:
                status = self._execute(module)
                self._threads.join()
        except ProgramAborted:
            # The exit handlers of an aborted script run, uninterrupted; the front waits for them for a short time only.
            status = 0
        self._exits.run()
        flush()
        return status

    def _execute(self, module: ModuleType) -> int:
        try:
            execute(self._target, module)
        except SystemExit as leaving:
            flush()
            return exit_status_of(leaving)
        except ProgramAborted:
            raise
        except BaseException as error:
            flush()
            self.error = error
            self.traceback = print_uncaught(error)
            return KILLED_BY_SIGINT if isinstance(error, KeyboardInterrupt) else 1
        return 0
