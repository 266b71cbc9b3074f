"""The one way of text from files and programs to a terminal: what a terminal would obey is shown instead."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

__all__ = ["json_text", "one_line", "printable", "report", "say", "table_text", "visible"]

_JOINERS = "\u200c\u200d"  # they join letters in Persian and Hindi, and emoji
_SUSPECT = re.compile(r"[^ -~\n\t]")


def printable(text: str) -> str:
    r"""Return text with all that a terminal or a page would obey, or not show, as escapes such as ``\x1b``.

    These are the control characters but for line feed and tab, lone surrogates, and format characters: those that turn
    the direction of what follows, or are invisible. It is what XML allows, too.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb\u202ec"), printable("caf\u00e9"))
    a\x1b[2Jb\u202ec café
    """
    return text if text.isprintable() else _SUSPECT.sub(_shown, text)


def one_line(text: str) -> str:
    r"""Return text as :func:`printable` does, with line feeds as escapes too: a name, or a cell of a table.

    Examples
    --------
    >>> one_line("fc1\nfc2")
    'fc1\\nfc2'
    """
    return text if text.isprintable() else printable(text).replace("\n", "\\n")


def visible(text: str) -> str:
    r"""Return text without what :func:`printable` shows as escapes: it takes no more room on a screen than before.

    Examples
    --------
    >>> visible("a\x1b[2Jb")
    'a[2Jb'
    """
    if text.isprintable():
        return text
    return _SUSPECT.sub(lambda found: found[0] if _shown(found) == found[0] else "", text)


def _shown(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def say(text: object = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print the tool's own words, in which there may be others'.

    Parameters
    ----------
    file : text file, optional
        Standard output by default.
    """
    # In one piece: ranks that print unbuffered, as under torchrun, would come between a line and its end.
    print(f"{printable(str(text))}{end}", end="", file=file or sys.stdout, flush=True)


def report(text: str) -> None:
    """Tell the person at the terminal while a program runs, on stderr; one without a terminal is not disturbed."""
    try:
        say(text, file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        return


def json_text(value: Any, **options: Any) -> str:
    r"""Return JSON in printable ASCII.

    Parameters
    ----------
    **options : object
        As for :func:`json.dumps`.

    Examples
    --------
    >>> print(json_text(["\x1b", "\x7f", "\u202e"]))
    ["\u001b", "\u007f", "\u202e"]
    """
    return json.dumps(value, allow_nan=False, **options).replace("\x7f", "\\u007f")


def table_text(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of cells, of which the first has the headings, in columns.

    Examples
    --------
    >>> print(table_text([("node", "norm"), ("Addmm", "1.5")]))
    node   norm
    Addmm  1.5
    """
    rows = [tuple(map(one_line, row)) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
