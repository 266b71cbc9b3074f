"""Runs a user's script in this process as ``python script.py`` would, under the sanitizer."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from ..inspect.debuggee.exits import before_os_exit
from ..inspect.debuggee.interrupts import KILLED_BY_SIGINT, interrupting_the_script_only
from ..inspect.debuggee.processes import StartedProcesses
from ..inspect.debuggee.program_thread import ThreadFamily
from ..inspect.debuggee.script_targets import Target, find_target, first_on_path
from .sanitizer import Sanitizer

__all__ = ["ScriptResult", "check_script", "run_script"]


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How a script ended.

    Attributes
    ----------
    error : BaseException or None
        What it raised and did not catch; not SystemExit.
    exit_code : int
        What it passed to ``sys.exit()``; 0 when it came to its end, 1 after an error, 130 after a KeyboardInterrupt.
    directory : str
        The working directory it was started in; empty when not known.
    unseen : str
        Which processes it has started, that nobody looked into; empty for none.

    See Also
    --------
    run_script : returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import run_script
    >>> path = os.path.join(tempfile.mkdtemp(), "leave.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write("raise SystemExit(3)")
    >>> run_script(path).exit_code
    3
    """

    path: str
    arguments: tuple[str, ...]
    error: BaseException | None
    exit_code: int
    directory: str = ""
    unseen: str = ""


def check_script(path: str, arguments: Sequence[str] = (), *, module: bool = False) -> tuple[Sanitizer, ScriptResult]:
    """Run a script under a :class:`Sanitizer`.

    Parameters
    ----------
    arguments : sequence of str
        The script's own arguments.
    module : bool
        `path` is the name of a module, as for ``python -m``.

    Raises
    ------
    OSError, ModuleNotFoundError
        If there is no such script or module, or it cannot be read.

    Returns
    -------
    Sanitizer
        It has the findings.
    ScriptResult
        How the script ended.

    See Also
    --------
    run_script : without a sanitizer.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import check_script
    >>> path = os.path.join(tempfile.mkdtemp(), "train.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write(
    ...         "import gradscope as gs; y = gs.ones(3, requires_grad=True).exp(); y.add_(1); y.sum().backward()"
    ...     )
    >>> sanitizer, result = check_script(path)
    >>> [finding.code for finding in sanitizer.findings], type(result.error).__name__
    (['GS101'], 'SavedTensorModifiedError')
    """
    with Sanitizer() as sanitizer:
        result = run_script(path, arguments, module=module)
    return sanitizer, result


def run_script(
    path: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    on_exit: Callable[[ScriptResult], int] | None = None,
) -> ScriptResult:
    """Run a script as ``__main__`` on this thread; wait for the threads it started.

    Parameters
    ----------
    path : str
        A file, or a directory or zip file with a ``__main__.py``.
    module : bool
        `path` is the name of a module, as for ``python -m``.
    on_exit : callable, optional
        Called when the script ends the process by ``os._exit``, after which nothing is returned here; it returns the
        status for that.

    Raises
    ------
    OSError, ModuleNotFoundError
        If there is no such script or module, or it cannot be read.

    Returns
    -------
    ScriptResult
        How it ended.

    See Also
    --------
    check_script : under a sanitizer.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import run_script
    >>> path = os.path.join(tempfile.mkdtemp(), "hello.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write("import sys; print(sys.argv[1:])")
    >>> result = run_script(path, ["--steps", "2"])
    ['--steps', '2']
    >>> result.exit_code, result.error
    (0, None)
    """
    target = find_target(path, module=module)
    directory = os.getcwd()
    threads, processes = ThreadFamily(), StartedProcesses()
    error: BaseException | None = None
    exit_code = 0

    def leave(status: int) -> int:
        result = ScriptResult(path, tuple(arguments), None, status, directory, processes.unseen)
        return status if on_exit is None else on_exit(result)

    with (
        _as_main(target, arguments) as main,
        before_os_exit(leave),
        threads.gathering(),
        processes.gathering(),
    ):
        try:
            with interrupting_the_script_only():
                code, facts, sys.argv[0] = target.load()
                main.__dict__.update(facts)
                exec(code, main.__dict__)
        except SystemExit as leaving:
            exit_code = _exit_code(leaving)
        except BaseException as raised:
            here = raised.__traceback__
            # The traceback begins after this frame, which python would not have.
            error, exit_code = raised.with_traceback(here and here.tb_next), 1
        try:
            threads.join()
        except KeyboardInterrupt as raised:
            error = error or raised.with_traceback(None)
    if isinstance(error, KeyboardInterrupt):
        exit_code = KILLED_BY_SIGINT
    return ScriptResult(path, tuple(arguments), error, exit_code, directory, processes.unseen)


def _exit_code(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


@contextlib.contextmanager
def _as_main(target: Target, arguments: Sequence[str]) -> Iterator[ModuleType]:
    """Make a fresh ``__main__`` with its ``sys.argv`` and ``sys.path[0]``; put the old ones back."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    before = sys.argv, sys.modules["__main__"]
    sys.argv = [target.argv0, *arguments]
    sys.modules["__main__"] = module
    try:
        with first_on_path(target.path0):
            yield module
    finally:
        sys.argv, sys.modules["__main__"] = before
