"""What other threads tell the app."""

from __future__ import annotations

from textual.message import Message

__all__ = ["SessionChanged"]


class SessionChanged(Message):
    """The session has stopped, gone on, ended, printed something or changed its breakpoints.

    Many changes may be told by one message: whoever gets it reads the session itself.
    """
