"""Notices of what is wrong with a suppression, a settings file or a baseline: no findings, no reason to fail."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Notice", "meant"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about what the user has told the tool.

    Attributes
    ----------
    text : str
        One sentence.
    filename : str
        The file it is about.
    line : int
        In that file; 0 for all of it.
    """

    text: str
    filename: str
    line: int = 0


def meant(word: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known words, or all known ones where none is near.

    Examples
    --------
    >>> meant("selct", ["select", "ignore"]), meant("x", ["select", "ignore"])
    ("did you mean 'select'?", 'there are select, ignore')
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
