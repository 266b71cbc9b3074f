"""What the script has printed, and what the command line has answered."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message

from gradscope_tui.terminal.terminal_emulator import TerminalEmulator
from gradscope_tui.widgets.line_pane import LinePane, Place, wanted_text

if TYPE_CHECKING:
    from gradscope_tui.sessions.session_protocol import Session

__all__ = ["LogPane", "printable"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""ANSI control sequences, as programs write them that colour their output."""

LOST = "… earlier lines are not kept"
"""What stands before the first line of output that is kept, where there were others."""

SCRIPT = ("", "warn")
"""Inks of what the script itself has printed: to stdout, and to stderr."""


class LogPane(LinePane):
    """The log; it follows its end until somebody scrolls up, and lines can be looked for as in ``less``."""

    NUMBER: ClassVar[int] = 5
    TITLE: ClassVar[str] = "Log"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {"filter": "Find", "copy": "Copy", "save_log": "Save"}
    KEY_HELP: ClassVar[str] = "Go to what the script has printed"
    ABOUT: ClassVar[str] = (
        "What the program has printed, as its terminal shows it, with colours and progress bars that move; what "
        "logpoints print, and the answers to commands."
    )
    EMPTY: ClassVar[str] = "the script has printed nothing yet"
    TAB: ClassVar[int] = 8
    KEPT: ClassVar[int] = 100_000

    class Resized(Message):
        """The pane has another size, in cells."""

        def __init__(self, columns: int, rows: int) -> None:
            super().__init__()
            self.columns = columns
            self.rows = rows

    class AnswerWanted(Message):
        """A line is to be typed for the program, which may be waiting for one."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._terminal = TerminalEmulator(1, 1)
        self._lines: list[tuple[str | Text, str]] = []
        self._rows: list[tuple[str | Text, str]] = []
        self._live: list[tuple[str | Text, str]] = []
        self._asks = False
        self._room = Size()
        self._heights: list[int] = []
        self._wrapped_for = 0
        self._follow = False
        self._found: list[int] = []
        self._at = -1
        self._at_rows = range(0)

    def feed(self, text: str) -> None:
        """Show output of the program, as it comes: lines that may still change stay at the end of the log."""
        self._append([(line, "") for line in self._terminal.feed(text)])
        self._show_live()

    def set_question(self, asks: bool) -> None:
        """Say behind the line that the program has begun that it may wait for an answer."""
        if asks != self._asks:
            self._asks = asks
            self._show_live()
            self.post_message(self.KeysChanged())

    @property
    def keys(self) -> Mapping[str, str]:
        """What matters most in the pane now: to answer, where the program may wait for that."""
        return {"open": "Answer", **self.KEYS} if self._asks and not self.searching else super().keys

    def open(self, session: Session) -> None:
        """Type a line for the program, which reads none where it stands still."""
        if session.state == "running":
            self.post_message(self.AnswerWanted())

    def on_resize(self, event: events.Resize) -> None:
        """Give the terminal of the program the size of the pane."""
        self.set_room(self.scrollable_content_region.size)

    def set_room(self, room: Size) -> None:
        """Give the terminal of the program so much room: that of the pane, or that which it will have."""
        if room and room != self._room:
            self._room = room
            self._terminal.resize(*room)
            self.post_message(self.Resized(*room))

    def _show_live(self) -> None:
        """Cut what may still change into rows."""
        lines = list(self._terminal.live)
        if self._asks and lines:
            lines[-1] = Text.assemble(lines[-1], ("  (> types an answer)", "dim"))
        self._live = [row for line in lines for row in self._wrap(line, "")]
        self.content_changed()

    def write(self, lines: Iterable[tuple[str, str]], *, from_start: bool = False) -> None:
        """Add lines behind what the program has printed.

        Parameters
        ----------
        lines : iterable of (str, str)
            Each line, and the color to write it in: none for what the script prints, so that it can be told apart.
        from_start : bool
            Show their first line, should there be more of them than can be seen; what is written later is followed
            again.
        """
        self._append([(line, "") for line in self._terminal.settle()])
        first = len(self._rows)
        self._append([(printable(line, self.TAB), color) for line, color in lines])
        self._show_live()
        if from_start and len(self._rows) - first > self.scrollable_content_region.height > 0:
            self.scroll_to(y=first, animate=False, force=True, immediate=True)
            self._follow = True

    def _append(self, lines: Iterable[tuple[str | Text, str]]) -> None:
        for line, color in lines:
            shown = line if isinstance(line, str) or line.spans else line.plain
            if self._wanted is not None and self._wanted.search(str(shown)):
                self._found.append(len(self._lines))
            self._lines.append((shown, color))
            self._add(shown, color)
        if len(self._lines) > self.KEPT:
            gone = len(self._lines) - self.KEPT * 9 // 10 + 1
            note = self._wrap(LOST, "dim")
            self._rows[: sum(self._heights[:gone])] = note
            self._lines[:gone], self._heights[:gone] = [(LOST, "dim")], [len(note)]
            self._at = max(-1, self._at - gone + 1)
            self._look()
        self._name_search()

    def _add(self, line: str | Text, color: str) -> None:
        rows = self._wrap(line, color)
        self._rows += rows
        self._heights.append(len(rows))

    @property
    def text(self) -> str:
        """All that has been written."""
        return "\n".join([*(str(line) for line, _ in self._lines), *(line.plain for line in self._terminal.live)])

    @property
    def found_line(self) -> str:
        """The match that is shown; empty where nothing is looked for."""
        return str(self._lines[self._at][0]) if self._at >= 0 else ""

    def copied(self) -> str:
        """Return the match that is shown, or all that has been written."""
        return self.found_line or self.text

    def find_lines(self, text: str) -> bool:
        """Look for lines, and go to the first from here on, or else to the last before.

        Parameters
        ----------
        text : str
            Part of a line; capitals matter where there are any. Nothing ends the search.

        Returns
        -------
        bool
            Whether there is such a line.
        """
        self._wanted = wanted_text(text)
        self._at = -1
        self._look()
        if self._found:
            here = self._line_at(self.scroll_offset.y)
            self._show(self._found[min(bisect_left(self._found, here), len(self._found) - 1)])
        else:
            self._wanted = None
        self._name_search()
        self.post_message(self.KeysChanged())
        self.content_changed()
        return bool(self._found)

    def seek(self, step: int) -> bool:
        """Go to the next match, or with ``step=-1`` to the one before; return whether there is one."""
        place = bisect_left(self._found, self._at) + step
        if not 0 <= place < len(self._found):
            return False
        self._show(self._found[place])
        self._name_search()
        self.content_changed()
        return True

    def action_seek(self, step: int) -> None:
        """Go to the next match, or to the one before."""
        if not self.seek(step):
            self.post_message(
                self.VerbRefused(f"this is the {'last' if step > 0 else 'first'} of {len(self._found)} matches")
            )

    def _look(self) -> None:
        wanted = self._wanted
        self._found = (
            [] if wanted is None else [nr for nr, (line, _) in enumerate(self._lines) if wanted.search(str(line))]
        )

    def _show(self, line: int) -> None:
        """Scroll, if need be, so that a line is seen, with some lines before it."""
        self._at = line
        first, height = sum(self._heights[:line]), self.scrollable_content_region.height
        top = self.scroll_offset.y
        if not top <= first <= top + height - self._heights[line]:
            self.scroll_to(y=max(0, first - height // 3), animate=False, force=True, immediate=True)

    def _line_at(self, row: int) -> int:
        """Return the line of which a row is part."""
        for line, height in enumerate(self._heights):
            row -= height
            if row < 0:
                return line
        return len(self._heights)

    def _name_search(self) -> None:
        """Say in the border what is looked for, and which match is shown."""
        about = ""
        if self._wanted is not None:
            place = bisect_left(self._found, self._at) + 1
            about = f"match {place} of {len(self._found)} · n N go on, Esc ends"
        self.set_heading(about=about)

    def is_marked(self, row: int) -> bool:
        """Mark the match that is shown."""
        return row in self._at_rows

    def _wrap(self, line: str | Text, color: str) -> list[tuple[str | Text, str]]:
        """Cut a line into rows that can be seen whole: what the debugger says between words, and indented."""
        width, plain = self._wrapped_for, str(line)
        if width < 1 or (len(plain) if plain.isascii() else cell_len(plain)) <= width:
            return [(line, color)]
        if color in SCRIPT:
            ends = accumulate(len(row) for row in chop_cells(plain, width))
            return [(row, color) for row in _as_text(line).divide(list(ends)[:-1])]
        indent = min(len(plain) - len(plain.lstrip()) + 2, width // 2)
        rows = Text(plain.lstrip()).wrap(self.app.console, width - indent, tab_size=self.TAB)
        first = " " * (indent - 2)
        return [(f"{' ' * indent if nr else first}{row.plain.rstrip()}", color) for nr, row in enumerate(rows)]

    def content_changed(self) -> None:
        """Measure again, and cut again if the width is another one; whoever looked at the end still does."""
        at_end = self._follow or self.scroll_offset.y >= self.max_scroll_y
        self._follow = False
        width = self.scrollable_content_region.width
        if width != self._wrapped_for:
            self._wrapped_for = width
            self._rows, self._heights = [], []
            for line, color in self._lines:
                self._add(line, color)
            self._show_live()
        first = sum(self._heights[: self._at]) if self._at >= 0 else 0
        self._at_rows = range(first, first + self._heights[self._at] if self._at >= 0 else 0)
        super().content_changed()
        if at_end:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def line_count(self) -> int:
        """Return the number of rows so far."""
        return len(self._rows) + len(self._live)

    def line(self, row: int, width: int) -> Text:
        """Return one row."""
        behind = row - len(self._rows)
        text, color = self._rows[row] if behind < 0 else self._live[behind]
        return text if isinstance(text, Text) else Text(text, self.color(color))


def _as_text(line: str | Text) -> Text:
    return line if isinstance(line, Text) else Text(line, end="")


def printable(line: str, tab: int = 8) -> str:
    r"""Return a line of output as a terminal would leave it, without what a terminal would not show.

    Parameters
    ----------
    tab : int
        Cells from one tab stop to the next.

    Returns
    -------
    str
        Without colours and cursor movements; of a progress bar, which returns to the start of its line, the last state.

    Examples
    --------
    >>> printable("\x1b[31mloss\x1b[0m\t0.25"), printable(" 50%|##  |\r100%|####|\r"), printable("bell\a")
    ('loss    0.25', '100%|####|', 'bell�')
    """
    if line.isprintable():
        return line
    text = _ESCAPES.sub("", line).rstrip("\r").rpartition("\r")[2].expandtabs(tab)
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
