"""Writes styled cells with few escape sequences: of a style what differs from the one before it, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.control import Control
from rich.style import Style
from textual.strip import Strip

__all__ = ["write_runs"]

_ON = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "blink2": "6",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "frame": "51",
    "encircle": "52",
    "overline": "53",
}
_OFF = {
    "1": "22",
    "2": "22",
    "3": "23",
    "4": "24",
    "5": "25",
    "6": "25",
    "7": "27",
    "8": "28",
    "9": "29",
    "21": "24",
    "51": "54",
    "52": "54",
    "53": "55",
}
_NOT_ON_BLANKS = frozenset({"1", "2", "3"})
"""Attributes that a blank does not show."""


class Pen(NamedTuple):
    """How a terminal writes: the parameters of the sequence that sets it (ECMA-48, SGR).

    Parameters
    ----------
    attributes : frozenset of str
        Those that are switched on.
    ink, ground : str
        The color of letters, and that behind them.
    """

    attributes: frozenset[str]
    ink: str
    ground: str


_PLAIN = Pen(frozenset(), "39", "49")


def write_runs(runs: Iterable[tuple[int, int, Strip]], colors: ColorSystem) -> str:
    r"""Return what makes a terminal show some cells; it writes plainly before and afterwards.

    Parameters
    ----------
    runs : iterable of (int, int, Strip)
        Row and column from 0, and the cells.
    colors : ColorSystem
        Those that the terminal knows.

    Examples
    --------
    >>> from rich.segment import Segment
    >>> cells = Strip([Segment("norm ", Style(bold=True, color="red")), Segment("3.2", Style(color="red"))])
    >>> write_runs([(4, 0, cells)], ColorSystem.STANDARD)
    '\x1b[5;1H\x1b[1;31mnorm \x1b[22m3.2\x1b[0m'
    """
    pen, parts = _PLAIN, []
    for row, column, cells in runs:
        parts.append(Control.move_to(column, row).segment.text)
        for text, style, _ in cells:
            wanted = _pen_of(style, colors)
            if text.isspace() and (pen.attributes | wanted.attributes) <= _NOT_ON_BLANKS:
                wanted = pen._replace(ground=wanted.ground)
            parts += _change(pen, wanted), text
            pen = wanted
    parts.append(_change(pen, _PLAIN))
    return "".join(parts)


@lru_cache(maxsize=4096)
def _pen_of(style: Style | None, colors: ColorSystem) -> Pen:
    if style is None:
        return _PLAIN
    ink, ground = style.color, style.bgcolor
    return Pen(
        frozenset(code for name, code in _ON.items() if getattr(style, name)),
        _PLAIN.ink if ink is None else ";".join(ink.downgrade(colors).get_ansi_codes()),
        _PLAIN.ground if ground is None else ";".join(ground.downgrade(colors).get_ansi_codes(foreground=False)),
    )


@lru_cache(maxsize=4096)
def _change(before: Pen, after: Pen) -> str:
    """Return the sequence from one pen to another; nothing where they are the same."""
    if before != after == _PLAIN:
        return "\x1b[0m"
    off = {_OFF[code] for code in before.attributes - after.attributes}
    on = {code for code in after.attributes if code not in before.attributes or _OFF[code] in off}
    codes = sorted(off) + sorted(on)
    codes += [after.ink] * (after.ink != before.ink) + [after.ground] * (after.ground != before.ground)
    return f"\x1b[{';'.join(codes)}m" if codes else ""
