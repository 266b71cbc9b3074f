"""What a session raises when it is asked for what it cannot do."""

from __future__ import annotations

__all__ = ["ProgramEndedError", "SessionError"]


class SessionError(RuntimeError):
    """A verb that makes no sense in the state the session is in."""


class ProgramEndedError(SessionError):
    """A verb that would let a program go on that has ended."""
