"""The error that a session raises when a verb makes no sense in its state."""

from __future__ import annotations

__all__ = ["ProgramEndedError", "SessionError"]


class SessionError(RuntimeError):
    """A verb that makes no sense in the state the session is in.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).sum())
    >>> session.cont()
    >>> state = session.wait()
    >>> try:
    ...     session.step()
    ... except gi.SessionError:
    ...     print("it has", session.state.value)
    it has finished
    """


class ProgramEndedError(SessionError):
    """A verb that would let a program go on that has ended."""
