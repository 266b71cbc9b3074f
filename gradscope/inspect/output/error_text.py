"""The text of an exception, which may fail to give one."""

from __future__ import annotations

from traceback import TracebackException

__all__ = ["error_text"]


def error_text(error: BaseException) -> str:
    """Return what an exception says, as a traceback has it; empty where it says nothing.

    Examples
    --------
    >>> class MuteError(Exception):
    ...     def __str__(self):
    ...         return self.reason
    >>> error_text(ValueError("no such name")), error_text(MuteError())
    ('no such name', '<exception str() failed>')
    """
    return str(TracebackException(type(error), error, None, compact=True)).strip()
