"""What other threads, and the tasks of the command line, tell the app."""

from __future__ import annotations

from textual.message import Message

__all__ = ["CommandAnswered", "SessionChanged"]


class SessionChanged(Message):
    """The session has stopped, gone on, ended, printed something or changed its breakpoints.

    Many changes may be told by one message: whoever gets it reads the session itself.
    """


class CommandAnswered(Message):
    """A command has an answer.

    Parameters
    ----------
    text : str
        The answer.
    failed : bool
        Whether it is an error.
    """

    def __init__(self, text: str, *, failed: bool = False) -> None:
        super().__init__()
        self.text = text
        self.failed = failed
