"""Running a script on this thread as python would: the only thing added to it is what the caller has set up."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from types import ModuleType

from .interrupts import KILLED_BY_SIGINT, interrupting_the_script_only
from .processes import StartedProcesses
from .program import exit_status_of, print_uncaught
from .program_thread import ThreadFamily
from .script_targets import Target, first_on_path

__all__ = ["run_on_main_thread"]


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
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    kept = sys.modules["__main__"], sys.argv
    sys.modules["__main__"] = module
    sys.argv = [target.argv0, *arguments]
    try:
        threads = ThreadFamily()
        with first_on_path(target.path0), threads.gathering(), processes.gathering():
            status = _execute(target, module)
            try:
                threads.join()
            except KeyboardInterrupt:
                print_uncaught(KeyboardInterrupt())
                status = KILLED_BY_SIGINT
    finally:
        sys.modules["__main__"], sys.argv = kept
    return status


def _execute(target: Target, module: ModuleType) -> int:
    try:
        with interrupting_the_script_only():
            code, facts, sys.argv[0] = target.load()
            module.__dict__.update(facts)
            exec(code, module.__dict__)
    except SystemExit as leaving:
        return exit_status_of(leaving)
    except BaseException as error:
        print_uncaught(error)
        return KILLED_BY_SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0
