"""What a terminal would show of a program's output: lines that stay, and those at the end that may still change.

Of most output no terminal has to be imitated: lines, colours, and a line that is written over. Where the cursor moves,
as for several progress bars at once, pyte keeps the lines at the end, until they scroll away.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

__all__ = ["TerminalEmulator"]

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_MOVES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What makes a line more than text, tabs and colours; ``\\r`` has a way of its own."""

_CUT = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?\Z")
"""A control sequence that goes on in what comes next."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")

_TAB = 8
_LONGEST = 65_536
"""Characters of a line that has not ended up to which it is kept."""


class TerminalEmulator:
    r"""The end of a program's output, as a terminal shows it.

    Parameters
    ----------
    columns, rows : int
        Of the terminal that the program has: so far up it can move, and there its lines are cut.

    Examples
    --------
    >>> terminal = TerminalEmulator(40, 10)
    >>> terminal.feed("step 1\n 10%|#   |\r 50%|##  |")
    []
    >>> [line.plain for line in terminal.live]
    ['step 1', ' 50%|##  |']
    >>> terminal.feed("\r100%|####|\n\x1b[2Astep 2\n")
    []
    >>> [line.plain for line in terminal.live]
    ['step 2', '100%|####|']
    >>> [line.plain for line in terminal.settle()], terminal.live
    (['step 2', '100%|####|'], [])
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = max(1, columns), max(1, rows)
        self._tail: deque[str] = deque()
        self._begun = ""
        self._screen: Any = None
        self._stream: Any = None

    def resize(self, columns: int, rows: int) -> None:
        """Take the size that the program's terminal has now.

        It never gets smaller here: a program may still count on the room that it had when it asked.
        """
        self._columns, self._rows = max(self._columns, columns), max(self._rows, rows)
        if self._screen is not None:
            self._screen.resize(self._rows, self._columns)

    def feed(self, text: str) -> list[Text]:
        """Take output; return the lines that stay as they are from now on.

        Parameters
        ----------
        text : str
            As it comes, also in the middle of a line or of a control sequence.
        """
        *lines, begun = (self._begun + text).split("\n")
        settled: list[Text] = []
        if self._screen is not None and len(lines) > self._rows and not any(map(_moves, lines)):
            settled = self._end()  # everything that could still change scrolls away
        for line in lines:
            settled += self._take_line(line)
        if len(begun) > _LONGEST:
            begun = begun.rpartition("\r")[2][-_LONGEST:]
        self._begun = begun
        if self._screen is None and _moves(begun) and not _CUT.search(begun):
            self._emulate()
        if self._screen is None:
            self._begun = begun if _moves(begun) else _written_over(begun)
        else:
            settled += self._write(begun)
        return settled

    def _take_line(self, line: str) -> list[Text]:
        if self._screen is None and _moves(line):
            self._emulate()
        if self._screen is not None:
            return self._write(f"{line}\n")
        self._tail.append(line)
        return [_styled(self._tail.popleft())] if len(self._tail) > self._rows else []

    def _emulate(self) -> None:
        """Give what can still change to a terminal of which every cell is kept."""
        from pyte import HistoryScreen, Stream  # most programs move no cursor

        self._screen = HistoryScreen(self._columns, self._rows, history=1 << 20)
        self._stream = Stream(self._screen)
        for line in self._tail:
            self._stream.feed(f"{line}\r\n")
        self._tail.clear()

    def _write(self, text: str) -> list[Text]:
        """Write on the terminal of which every cell is kept; return what has scrolled away."""
        self._begun = ""
        try:
            self._stream.feed(text.replace("\n", "\r\n"))
        except Exception:  # pyte fails on some sequences that no terminal knows
            return [*self._end(), _clean(Text(_ESCAPES.sub("", text).rstrip("\n"), end=""))]
        return self._scrolled_away()

    def _end(self) -> list[Text]:
        """Return all that is on that terminal, and keep it no more."""
        lines = [*self._scrolled_away(), *self._on_screen()]
        self._screen = self._stream = None
        return lines

    def _scrolled_away(self) -> list[Text]:
        top = self._screen.history.top
        found = [_cells(line, self._columns) for line in top]
        top.clear()
        return found

    @property
    def live(self) -> Sequence[Text]:
        """The lines that may still change; the last has perhaps only been begun."""
        if self._screen is None:
            return [_styled(line) for line in (*self._tail, *([self._begun] if self._begun else []))]
        return self._on_screen()

    def _on_screen(self) -> list[Text]:
        screen = self._screen
        lines = [_cells(screen.buffer[y], self._columns) for y in range(screen.lines)]
        last = max((y for y, line in enumerate(lines) if line.plain), default=-1)
        return lines[: max(last + 1, screen.cursor.y)]

    @property
    def begun(self) -> str:
        """The line that has been begun and not ended: a question, most often."""
        if self._screen is None:
            return _styled(self._begun).plain
        cursor = self._screen.cursor
        below = len(self._on_screen()) > cursor.y + 1
        return "" if cursor.x == 0 or below else _cells(self._screen.buffer[cursor.y], self._columns).plain

    def settle(self) -> list[Text]:
        """Return the lines that have ended, and keep them no more: something else is written behind them."""
        if self._screen is None:
            settled = [_styled(line) for line in self._tail]
            self._tail.clear()
            return settled
        begun = self.begun
        lines = self._end()
        self._begun = begun
        return lines[:-1] if begun else lines


def _moves(line: str) -> bool:
    """Return whether a line does more to the screen than to be written, in colours, and over itself."""
    if not _MOVES.search(line):
        return False
    shown = _COLORS.sub("", line)
    if _MOVES.search(shown):
        return True
    *before, last = shown.rstrip("\r").split("\r")
    return any(cell_len(part) > cell_len(last) for part in before)  # what stays of a longer one may have other colours


def _written_over(line: str) -> str:
    r"""Return a line as short as it can be for what is written over it next to come to the same.

    Examples
    --------
    >>> _written_over("three\rtwo\rX")
    'Xwoee\rX'
    >>> _written_over("\x1b[31m 10%\r 50%") == "\x1b[31m 50%"  # in the colour that was switched on
    True
    """
    if "\r" not in line:
        return line
    parts = line.split("\r")
    if "\x1b" in line:  # _moves() has seen to it that nothing stays of what is written over
        at = max((at for at, part in enumerate(parts) if _COLORS.sub("", part)), default=0)
        after = f"\r{_switched(parts[at + 1 :])}" if at < len(parts) - 1 else ""
        return f"{_switched(parts[:at])}{parts[at]}{after}"
    shown = ""
    for part in parts:
        shown = part + shown[len(part) :]
    return f"{shown}\r{parts[-1]}"


def _switched(parts: Sequence[str]) -> str:
    """Return the colours that parts of a line leave switched on."""
    return re.split(r"\x1b\[0?m", "".join(_COLORS.findall("".join(parts))))[-1]


def _styled(line: str) -> Text:
    """Return a line that moves no cursor but back to its beginning."""
    line = _written_over(line.rstrip("\r")).partition("\r")[0]
    text = Text.from_ansi(line, end="") if "\x1b" in line else Text(line, end="")
    text.expand_tabs(_TAB)
    return _clean(text)


def _clean(text: Text) -> Text:
    """Return a text with what a terminal would not show as �."""
    if text.plain.isprintable():
        return text
    return Text(
        "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.plain), spans=text.spans, end=""
    )


def _cells(row: Any, columns: int) -> Text:
    """Return one row of a terminal."""
    cells = [(x, row[x]) for x in sorted(row) if x < columns]
    text = Text(end="")
    for x, cell in cells:
        text.append(" " * (x - text.cell_len))
        text.append(cell.data, _style(cell.fg, cell.bg, cell.bold, cell.italics, cell.underscore, cell.reverse))
    text.rstrip()
    return _clean(text)


@lru_cache(maxsize=1024)
def _style(color: str, background: str, bold: bool, italic: bool, underline: bool, reverse: bool) -> Style:
    return Style(
        color=_color(color),
        bgcolor=_color(background),
        bold=bold or None,
        italic=italic or None,
        underline=underline or None,
        reverse=reverse or None,
    )


def _color(name: str) -> str | None:
    """Return Rich's name of a colour of pyte's."""
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    name = name.replace("brown", "yellow")
    return f"bright_{name.removeprefix('bright')}" if name.startswith("bright") else name
