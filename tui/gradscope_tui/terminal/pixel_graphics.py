"""Pictures on terminals that draw them: which do is asked of the terminal, and what stands on it is kept up.

A terminal is asked by sequences that every other one passes over. Kitty's own question, which some would print, is
asked only of terminals that have given a name of those which understand it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gradscope_tui.terminal.raster import Raster, kitty_deletion, kitty_sequence, sixel_sequence

__all__ = ["GRAPHICS", "CellRun", "Picture", "PixelGraphics", "split_answers"]

GRAPHICS = ("auto", "kitty", "sixel", "off")
"""What can be set: what the terminal says, one of the protocols whatever it says, or none."""

CellRun = tuple[int, int, int]
"""Cells that have been written: row, first column, and the one behind the last."""

_NUMBER = 17017
"""What Kitty calls the picture; a program that ran in the terminal before may have left others."""

_ASK_NAME, _ASK_CELL, _ASK_FEATURES = "\x1b[>q", "\x1b[16t", "\x1b[c"
_ASK_KITTY = f"\x1b_Gi={_NUMBER},s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"

_NAME = re.compile(r"\x1bP>\|([^\x1b]*)\x1b\\")
_CELL = re.compile(r"\x1b\[6;(\d+);(\d+)t")
_FEATURES = re.compile(r"\x1b\[\?([\d;]*)c")
_KITTY = re.compile(r"\x1b_G([^\x1b]*)\x1b\\")
_ANSWER = re.compile("|".join(pattern.pattern for pattern in (_NAME, _CELL, _FEATURES, _KITTY)))
_BEGUN = re.compile(r"\x1b(?:P(?:>(?:\|[^\x1b]*\x1b?)?)?|_(?:G[^\x1b]*\x1b?)?|\[(?:\?[\d;]*|6?|6;\d*(?:;\d*)?)?)\Z")
_SIXEL_FEATURE = "4"
_KITTY_NAMES = re.compile("kitty|ghostty|wezterm|konsole|iterm2|rio|warp", re.IGNORECASE)


class Picture(NamedTuple):
    """A picture, and the cells that it lies on."""

    row: int
    column: int
    rows: int
    columns: int
    raster: Raster

    @property
    def place(self) -> tuple[int, ...]:
        """Where it lies, in cells, and how large it is, in dots."""
        return self.row, self.column, self.rows, self.columns, self.raster.width, self.raster.height

    def lies_on(self, runs: Sequence[CellRun]) -> bool:
        """Whether any of some cells are its own."""
        below, behind = self.row + self.rows, self.column + self.columns
        return any(self.row <= row < below and start < behind and stop > self.column for row, start, stop in runs)


class PixelGraphics:
    r"""What a terminal can draw, and the one picture that is to stand on it.

    Parameters
    ----------
    write : callable
        Writes to the terminal.
    wanted : str
        One of `GRAPHICS`.
    environment : mapping of str to str
        Of the process: its TERM may be the name of a terminal.

    Attributes
    ----------
    protocol : str
        ``'kitty'``, ``'sixel'``, or nothing while it is not known that the terminal draws any.
    cell : (int, int)
        How many dots wide and high a cell is; (0, 0) while that is not known.

    Examples
    --------
    >>> asked = []
    >>> graphics = PixelGraphics(asked.append)
    >>> graphics.ask()
    >>> asked
    ['\x1b[>q\x1b[16t\x1b[c']
    >>> graphics.take("\x1b[6;20;10t")
    >>> graphics.take("\x1b[?62;4;22c")
    >>> graphics.protocol, graphics.cell, graphics.ready
    ('sixel', (10, 20), True)
    """

    def __init__(
        self, write: Callable[[str], object], wanted: str = "auto", environment: Mapping[str, str] | None = None
    ) -> None:
        self.protocol = wanted if wanted in ("kitty", "sixel") else ""
        self.cell = (0, 0)
        self._write = write
        self._wanted = wanted
        self._named = bool(_KITTY_NAMES.search((environment or {}).get("TERM", "")))
        self._asked = False
        self._picture: Picture | None = None
        self._shown: Picture | None = None

    @property
    def ready(self) -> bool:
        """Whether pictures can be drawn."""
        return bool(self.protocol) and self.cell > (0, 0)

    # What the terminal is asked --------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask the terminal what it can draw, once."""
        if self._asked or self._wanted == "off":
            return
        self._asked = True
        name = "" if self._wanted != "auto" else _ASK_KITTY if self._named else _ASK_NAME
        self._write(name + _ASK_CELL + (_ASK_FEATURES if name else ""))

    def take(self, answer: str) -> None:
        """Take an answer of the terminal."""
        if cell := _CELL.fullmatch(answer):
            self.cell = int(cell[2]), int(cell[1])
        elif self._wanted != "auto":
            return
        elif kitty := _KITTY.fullmatch(answer):
            self.protocol = self.protocol or ("kitty" if kitty[1].endswith(";OK") else "")
        elif features := _FEATURES.fullmatch(answer):
            self.protocol = self.protocol or ("sixel" if _SIXEL_FEATURE in features[1].split(";") else "")
        elif (name := _NAME.fullmatch(answer)) and _KITTY_NAMES.match(name[1]) and not self._named:
            self._named = True
            self._write(_ASK_KITTY)

    # What stands on the terminal -------------------------------------------------------------------------------------

    def show(self, picture: Picture | None) -> None:
        """Let a picture stand on the terminal from the next time that it is written to, or none."""
        self._picture = picture

    @property
    def picture(self) -> Picture | None:
        """What is to stand there."""
        return self._picture

    def rows_to_clear(self) -> range:
        """Return the rows that must be written whole for a picture to go away; Sixel's dots lie in the cells."""
        gone, now = self._shown, self._picture
        if gone is None or self.protocol != "sixel" or (now is not None and now.place == gone.place):
            return range(0)
        return range(gone.row, gone.row + gone.rows)

    def update(self, written: Sequence[CellRun], *, covered: bool) -> str:
        """Return what brings the picture onto the terminal, or away from it.

        Parameters
        ----------
        written : sequence of (int, int, int)
            The cells that have just been written.
        covered : bool
            Whether there is text where the picture is to lie.
        """
        gone = self._shown
        now = None if covered and self.protocol == "kitty" else self._picture
        if now is None or not self.ready:
            self._shown = None
            return kitty_deletion(_NUMBER) if gone is not None and self.protocol == "kitty" else ""
        if covered or (now == gone and not now.lies_on(written)):
            return ""
        self._shown = now
        if self.protocol == "kitty":
            return _at(now.row, now.column) + kitty_sequence(now.raster, _NUMBER)
        if gone is None or now.place != gone.place or now.lies_on(written):
            return _at(now.row, now.column) + sixel_sequence(now.raster)
        return self._changed_part(gone, now)

    def _changed_part(self, gone: Picture, now: Picture) -> str:
        """Return what draws the cells in which a picture differs from the one that stands there."""
        changed = now.raster.difference(gone.raster)
        if changed is None:
            return ""
        wide, high = self.cell
        column, row = changed[0] // wide, changed[1] // high
        right, bottom = -(-changed[2] // wide) * wide, -(-changed[3] // high) * high
        part = now.raster.crop(column * wide, row * high, right, bottom)
        return _at(now.row + row, now.column + column) + sixel_sequence(part)


def _at(row: int, column: int) -> str:
    """Return what moves the cursor to a cell."""
    return f"\x1b[{row + 1};{column + 1}H"


def split_answers(text: str) -> tuple[list[str], str, str]:
    r"""Take a terminal's answers out of what has been typed.

    Returns
    -------
    list of str
        The answers.
    str
        What has been typed.
    str
        What may become an answer when more has come.

    Examples
    --------
    >>> split_answers("n\x1b[?62;4cs\x1b[6;2")
    (['\x1b[?62;4c'], 'ns', '\x1b[6;2')
    """
    answers = [found[0] for found in _ANSWER.finditer(text)]
    rest = _ANSWER.sub("", text)
    begun = _BEGUN.search(rest)
    return (answers, rest[: begun.start()], begun[0]) if begun else (answers, rest, "")
