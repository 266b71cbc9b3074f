"""``gi.set_trace()``: stops for the session around it, else for the terminal, else for a front that attaches."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from typing import TextIO

from ..adapters import Adapter
from ..debugging.session.inline_prompt import prompt_here
from ..debugging.session.requested_stops import stop_here
from ..debugging.session.session_observer import ACTIVE, session_here

__all__ = ["set_trace"]


def set_trace(*, adapter: Adapter | None = None, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
    r"""Stop here: in the forward pass, a hook, or a backward of one's own.

    Under ``gradscope debug`` or another session it stops that session. Otherwise line mode opens on the terminal, with
    the variables of this function; in a backward, with its nodes. ``step`` goes to the next node of a backward,
    ``continue`` on with the program, ``quit`` raises :class:`ProgramAborted` here.

    In a job that nobody can type at, since it has no stdin or ``/dev/null`` for one, the program listens as after
    :func:`listen`, says on stderr how to attach, and waits here for ``gradscope attach``.

    Parameters
    ----------
    stdin, stdout : file, optional
        Of the prompt; the process's own by default.

    Warns
    -----
    RuntimeWarning
        If nobody can type here, and nobody could attach either: the program goes on.

    See Also
    --------
    post_mortem, listen

    Examples
    --------
    >>> import io
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: gi.set_trace(stdin=io.StringIO("print grad * 2\ncontinue\n")))
    >>> (x * 3).sum().backward()  # doctest: +ELLIPSIS
    stopped in node 2 of 3: AccumulateGrad... - set_trace() at <doctest ...>:1
    (gradscope) print grad * 2
    tensor([6., 6.])
    (gradscope) continue
    """
    if not ACTIVE and stdin is None and stdout is None and _nobody_types() and not _listens(adapter):
        return
    if ACTIVE:
        stop_here(session_here() or ACTIVE[-1])
    else:
        prompt_here(adapter, stdin, stdout)


def _nobody_types() -> bool:
    """Return whether stdin is missing, or a device that is no terminal, such as ``/dev/null``."""
    stdin = sys.stdin
    if stdin is None:
        return True
    replaced = stdin is not sys.__stdin__
    if replaced:  # a notebook has its own, which asks in its own way
        return False
    try:
        descriptor = stdin.fileno()
        return stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
    except (OSError, ValueError):  # stdin is closed
        return True


def _listens(adapter: Adapter | None) -> bool:
    """Let fronts attach to this program; return whether they can."""
    from .listening import begin  # a program that has a terminal needs no server

    try:
        begin(adapter=adapter)
    except OSError as error:
        text = f"set_trace() was passed by: nobody can type here, and nobody can attach: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        return False
    return True
