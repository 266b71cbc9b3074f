"""Runs a script on the main thread of its process as ``python`` would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType

from ..source.source_paths import started_here
from .broadcast import OutputWriter
from .fork_warning import unwarned_forks
from .interrupts import KILLED_BY_SIGINT, interrupting_the_script_only
from .pause_gate import ProgramAborted
from .processes import StartedProcesses
from .program import Program, exit_status_of, own_traceback, print_uncaught
from .program_thread import ThreadFamily
from .script_targets import Target, as_main, execute
from .streams import flush

__all__ = ["MainThreadProgram", "deepen_stack", "run_on_main_thread"]

_STACK = 64 << 20
"""Bytes of the main thread's stack: PyTorch frees long graphs by recursion once their nodes have been looked at."""


def deepen_stack() -> None:
    """Let the main thread's stack grow as far as a long graph needs it, where the system allows that."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # Windows has none

        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        wanted = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))


def run_on_main_thread(
    target: Target,
    arguments: Sequence[str],
    processes: StartedProcesses,
    threads: ThreadFamily | None = None,
    report: Callable[[BaseException], object] = print_uncaught,
) -> tuple[int, BaseException | None]:
    """Run a script as ``__main__`` with the process's own stdin, output and signals; wait for its threads.

    Parameters
    ----------
    processes, threads : StartedProcesses, ThreadFamily
        Gather those that it starts.
    report : callable
        Takes what it raises and does not catch, but SystemExit; prints it as python does by default.

    Returns
    -------
    status : int
        What python's exit status would be.
    error : BaseException or None
        What was reported.
    """
    threads = threads or ThreadFamily()
    with as_main(target, arguments) as module, threads.gathering(), processes.gathering(), unwarned_forks():
        error: BaseException | None = None
        try:
            status, error = _execute(target, module, report)
            threads.join()
        except KeyboardInterrupt as interrupt:
            report(interrupt.with_traceback(None))
            status, error = KILLED_BY_SIGINT, error or interrupt
    return status, error


def _execute(
    target: Target, module: ModuleType, report: Callable[[BaseException], object]
) -> tuple[int, BaseException | None]:
    try:
        with interrupting_the_script_only():
            execute(target, module)
    except SystemExit as leaving:
        return exit_status_of(leaving), None
    except ProgramAborted:
        raise
    except BaseException as error:
        report(error)
        return (KILLED_BY_SIGINT if isinstance(error, KeyboardInterrupt) else 1), error
    return 0, None


class MainThreadProgram(Program):
    """A script as a program on the main thread of its process, with its own stdin, output and signals.

    Parameters
    ----------
    target : Target
        What :func:`.script_targets.find_target` has found.
    arguments : sequence of str
        The script's.

    Attributes
    ----------
    threads : ThreadFamily
        Those that it has started.
    """

    def __init__(self, target: Target, arguments: Sequence[str]) -> None:
        started_here()
        super().__init__(target.title)
        self._target = target
        self._arguments = arguments
        self.threads = ThreadFamily()

    def run(self, write: OutputWriter) -> None:
        """Run the script to its end; what it writes goes where the process's output goes."""
        try:
            with self.interrupter:
                ended = run_on_main_thread(self._target, self._arguments, self.processes, self.threads)
                self.exit_status, self.error = ended
        except ProgramAborted:
            self.exit_status = 0
        if self.error is not None:
            self.traceback = own_traceback(self.error)
        flush()  # before anybody is told that it has ended
