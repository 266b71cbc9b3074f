"""Runs a user's script in this process as ``python script.py`` would, under the sanitizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ..inspect.debuggee.exits import before_os_exit
from ..inspect.debuggee.main_thread import run_on_main_thread
from ..inspect.debuggee.processes import StartedProcesses
from ..inspect.debuggee.program import own_part
from ..inspect.debuggee.script_targets import find_target
from .sanitizer import Sanitizer
from .script_result import ScriptResult
from .suppression.silences import Silences

__all__ = ["check_script", "run_script"]


def check_script(
    path: str, arguments: Sequence[str] = (), *, module: bool = False, silences: Silences | None = None
) -> tuple[Sanitizer, ScriptResult]:
    """Run a script under a :class:`Sanitizer`.

    Parameters
    ----------
    arguments : sequence of str
        The script's own arguments.
    module : bool
        `path` is the name of a module, as for ``python -m``.
    silences : Silences, optional
        As of :class:`Sanitizer`.

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
    with Sanitizer(silences) as sanitizer:
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
    processes = StartedProcesses()

    def result(error: BaseException | None, status: int) -> ScriptResult:
        return ScriptResult(path, tuple(arguments), error, status, directory, processes.unseen, target.filename)

    def leave(status: int) -> int:
        return status if on_exit is None else on_exit(result(None, status))

    with before_os_exit(leave):
        status, error = run_on_main_thread(target, arguments, processes, report=_begin_in_the_script)
    return result(error, status)


def _begin_in_the_script(error: BaseException) -> None:
    """Let a traceback begin with the script's own frame, as under python: it is printed when all is known."""
    error.__traceback__ = own_part(error.__traceback__)
