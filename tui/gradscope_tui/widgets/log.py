"""What the script has printed, and what the command line has answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text

from gradscope_tui.widgets.pane import LinePane

__all__ = ["LogPane"]


class LogPane(LinePane, inherit_bindings=False):
    """The log; it follows its end until somebody scrolls up."""

    NUMBER: ClassVar[int] = 5
    TITLE: ClassVar[str] = "Log"
    EMPTY: ClassVar[str] = "the script has printed nothing yet"
    TAB: ClassVar[int] = 8
    KEPT: ClassVar[int] = 100_000

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[tuple[str, str]] = []
        self._widest = 0

    def write(self, lines: Iterable[tuple[str, str]]) -> None:
        """Add lines at the end.

        Parameters
        ----------
        lines : iterable of (str, str)
            Each line, and the ink to write it in: none for what the script prints, so that it can be told apart.
        """
        for line, ink in lines:
            shown = "".join(c if c.isprintable() else "�" for c in line.rstrip("\r").expandtabs(self.TAB))
            self._lines.append((shown, ink))
            self._widest = max(self._widest, cell_len(shown))
        if len(self._lines) > self.KEPT:
            del self._lines[: len(self._lines) - self.KEPT * 9 // 10]
        self.set_heading(count=len(self._lines))
        self.content_changed()

    def content_changed(self) -> None:
        """Measure again; the end stays in view when the pane is given another height."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        super().content_changed()
        if at_end:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def line_count(self) -> int:
        """Return the number of lines so far."""
        return len(self._lines)

    def line_width(self) -> int:
        """Return the width of the widest line so far."""
        return self._widest

    def line(self, row: int, width: int) -> Text:
        """Return one line."""
        text, ink = self._lines[row]
        return Text(text, self.ink(ink))
