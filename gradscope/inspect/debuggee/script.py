"""Runs a script on a thread as python does: ``__main__``, ``sys.argv``, ``sys.path[0]``, output, exit status."""

from __future__ import annotations

import builtins
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType

from ..source.source_paths import started_here
from .broadcast import OutputWriter
from .exits import ExitCalls
from .interrupts import KILLED_BY_SIGINT
from .pause_gate import ProgramAborted
from .program import Program, exit_status_of, own_traceback, print_uncaught
from .program_thread import ThreadFamily
from .script_targets import Target, check_script, find_target, first_on_path
from .signals import SignalHandlers
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
    stdin : bool
        Whether the process's stdin is the script's; if not, ``input()`` raises EOFError.
    terminal : bool
        Whether the script's streams say that they are a terminal, where the process's are one.

    Attributes
    ----------
    title : str
        The path, or the module's name.
    exit_status : int or None
        What python would return: 0, the argument of ``sys.exit``, 1 when it raised, 130 after a KeyboardInterrupt.
    signals : SignalHandlers
        The owner of the main thread opens ``signals.serving()`` there, so that the script may use signal handlers.
    threads : ThreadFamily
        Those that it has started.
    """

    def __init__(
        self, target: str | Target, argv: Sequence[str] = (), *, stdin: bool = False, terminal: bool = False
    ) -> None:
        started_here()
        self._target = find_target(target) if isinstance(target, str) else target
        super().__init__(self._target.title)
        self.argv = list(argv)
        self.signals = SignalHandlers(self.gate, self.interrupter)
        self.threads = ThreadFamily()
        self._exits = ExitCalls()
        self._stdin = stdin
        self._terminal = terminal
        self._pid = os.getpid()
        # A line that the script has begun is shown when it stops.
        self.gate.on_parking = flush

    def forked(self) -> None:
        """Go on without the debugger: this is a child process, in which there is none."""
        super().forked()
        self.signals.forked()

    def run(self, write: OutputWriter) -> None:
        """Run the script to its end."""
        self._pid = os.getpid()
        # Python 3.12 and later warn so at a fork; the threads that they count are the debugger's.
        warnings.filterwarnings("ignore", r"This process .* is multi-threaded, use of fork", DeprecationWarning)
        try:
            with ExitStack() as stack:
                for part in (
                    self.threads.gathering(),
                    self.processes.gathering(),
                    self._exits.gathering(),
                    captured(write, stdin=self._stdin, terminal=self._terminal),
                    self.signals.stand_in(),
                ):
                    stack.enter_context(part)
                module = stack.enter_context(self._as_main())
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
                self.threads.join()
        except ProgramAborted:
            # The exit handlers of an aborted script run, uninterrupted; the front waits for them for a short time only.
            status = 0
        self._exits.run()
        flush()
        return status

    def _execute(self, module: ModuleType) -> int:
        try:
            code, facts, sys.argv[0] = self._target.load()
            module.__dict__.update(facts)
            exec(code, module.__dict__)
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

    @contextmanager
    def _as_main(self) -> Iterator[ModuleType]:
        """Put the script in the place of ``__main__`` for the length of the block."""
        module = ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        main, argv = sys.modules.get("__main__"), sys.argv
        sys.modules["__main__"] = module
        sys.argv = [self._target.argv0, *self.argv]
        try:
            with first_on_path(self._target.path0):
                yield module
        finally:
            sys.argv = argv
            if main is not None:
                sys.modules["__main__"] = main
