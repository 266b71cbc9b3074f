"""Errors that come over the wire: of the same class where it is known here, else of a class with the same name."""

from __future__ import annotations

import builtins
import functools

from ..debuggee.pause_gate import NotParkedError
from ..debugging.session.session_errors import ProgramEndedError, SessionError
from ..debugging.stops.breakpoint_specs import BreakpointError

__all__ = ["RemoteError", "remote_error"]


class RemoteError(RuntimeError):
    """An exception of the program whose class is not known here; a subclass has its name."""


_KNOWN: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (SessionError, ProgramEndedError, BreakpointError)
}


def remote_error(name: str, text: str) -> Exception:
    """Return an exception for what was raised on the other side.

    Examples
    --------
    >>> remote_error("NameError", "name 'y' is not defined")
    NameError("name 'y' is not defined")
    >>> type(remote_error("LinAlgError", "singular")).__name__
    'LinAlgError'
    """
    if name == NotParkedError.__name__:
        return NotParkedError()
    kind = _KNOWN.get(name) or getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return _named(name)(text)
    try:
        return kind(text)
    except TypeError:  # such as UnicodeDecodeError, which takes more than its text
        return _named(name)(text)


@functools.cache
def _named(name: str) -> type[RemoteError]:
    return type(name if name.isidentifier() else "Error", (RemoteError,), {})
