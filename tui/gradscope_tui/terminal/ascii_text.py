"""The screen in ASCII, for terminals whose locale has no more: every sign by one that looks like it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

__all__ = ["AsciiText", "speaks_ascii"]

_LOOKALIKES = {
    "-": "─━┄═╌", "|": "│┃║┆", "+": "╭╮╰╯┬┴┼├┤└┌┐┘╔╗╚╝┏┓┗┛✓", "#": "█▉▊▋▌▐▀▣■", "=": "▍▎▆▇▅", ":": "▏▃▄", ".": "·…∙▁▂▕",
    ">": "▶›▸▷→⏵", "<": "◁◀←", "v": "▾↓▼", "^": "↑", "*": "●▪", "@": "◉", "o": "○◌", "x": "×✗", "~": "≠", "!": "‼",
    "%": "‖", "/": "✂", "s": "»", "S": "⇧", "e": "✎", "?": "�",
}  # fmt: skip
_TABLE = str.maketrans({sign: plain for plain, signs in _LOOKALIKES.items() for sign in signs})


class AsciiText(LineFilter):
    """Writes every line that is drawn in ASCII, cell by cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line in ASCII; a sign that nothing looks like becomes a question mark."""
        return [Segment(_ascii(text), style, control) for text, style, control in segments]


def speaks_ascii(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the locale that the terminal's text is in has ASCII alone: ``LANG=C``, or another than UTF-8.

    Python itself sets ``LC_CTYPE=C.UTF-8`` where the locale is C (PEP 538), so that this says nothing beside it. Where
    no locale is named at all, terminals take UTF-8.

    Examples
    --------
    >>> speaks_ascii({"LANG": "C", "LC_CTYPE": "C.UTF-8"}), speaks_ascii({"LANG": "de_DE.UTF-8"}), speaks_ascii({})
    (True, False, False)
    """
    coerced = environment.get("LC_CTYPE") == "C.UTF-8" and environment.get("LANG", "") in ("C", "POSIX")
    names = ("LC_ALL", "LANG") if coerced else ("LC_ALL", "LC_CTYPE", "LANG")
    named = next(filter(None, map(environment.get, names)), "utf-8")
    return "utf8" not in named.lower().replace("-", "")


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    return text.translate(_TABLE).encode("ascii", "replace").decode("ascii")
