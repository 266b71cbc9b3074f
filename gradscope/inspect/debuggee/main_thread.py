"""Runs a script on the main thread of its process as ``python`` would."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from types import ModuleType

from .broadcast import OutputWriter
from .interrupts import KILLED_BY_SIGINT, interrupting_the_script_only
from .pause_gate import ProgramAborted
from .processes import StartedProcesses
from .program import Program, exit_status_of, own_traceback, print_uncaught
from .program_thread import ThreadFamily
from .script_targets import Target, first_on_path

__all__ = ["MainThreadProgram", "run_on_main_thread"]


def run_on_main_thread(target: Target, arguments: Sequence[str], processes: StartedProcesses) -> int:
    """Run a script as ``__main__`` with the process's own stdin, output and signals; wait for its threads.

    Parameters
    ----------
    processes : StartedProcesses
        Counts those that it starts.

    Returns
    -------
    int
        What python's exit status would be.
    """
    return _run(target, arguments, processes)[0]


class MainThreadProgram(Program):
    """A script as a program on the main thread of its process, with its own stdin, output and signals.

    Parameters
    ----------
    target : Target
        What :func:`.script_targets.find_target` has found.
    arguments : sequence of str
        The script's.
    """

    def __init__(self, target: Target, arguments: Sequence[str]) -> None:
        super().__init__(target.title)
        self._target = target
        self._arguments = arguments

    def run(self, write: OutputWriter) -> None:
        """Run the script to its end; what it writes goes where the process's output goes."""
        try:
            with self.interrupter:
                self.exit_status, self.error = _run(self._target, self._arguments, self.processes)
        except ProgramAborted:
            self.exit_status = 0
        if self.error is not None:
            self.traceback = own_traceback(self.error)


def _run(target: Target, arguments: Sequence[str], processes: StartedProcesses) -> tuple[int, BaseException | None]:
    """Run a script; return its exit status, and what it raised."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    kept = sys.modules["__main__"], sys.argv
    sys.modules["__main__"] = module
    sys.argv = [target.argv0, *arguments]
    try:
        threads = ThreadFamily()
        with first_on_path(target.path0), threads.gathering(), processes.gathering():
            status, error = _execute(target, module)
            try:
                threads.join()
            except KeyboardInterrupt as interrupt:
                print_uncaught(KeyboardInterrupt())
                status, error = KILLED_BY_SIGINT, interrupt
    finally:
        sys.modules["__main__"], sys.argv = kept
    return status, error


def _execute(target: Target, module: ModuleType) -> tuple[int, BaseException | None]:
    try:
        with interrupting_the_script_only():
            code, facts, sys.argv[0] = target.load()
            module.__dict__.update(facts)
            exec(code, module.__dict__)
    except SystemExit as leaving:
        return exit_status_of(leaving), None
    except ProgramAborted:
        raise
    except BaseException as error:
        print_uncaught(error)
        return (KILLED_BY_SIGINT if isinstance(error, KeyboardInterrupt) else 1), error
    return 0, None
