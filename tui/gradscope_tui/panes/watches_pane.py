"""The watch expressions: their values at this stop and at the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text

from gradscope.inspect.output.sparkline import linear_sparkline
from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import WatchRecord
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["WatchesPane"]

_OVER_TIME = 20
"""Cells of the values over time."""


class WatchesPane(CursorPane):
    """The watches, one a line; one that has changed is marked."""

    NUMBER: ClassVar[int] = 6
    TITLE: ClassVar[str] = "Watches"
    SHORT: ClassVar[str] = "Watch"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {"watch": "New watch", "delete": "Delete"}
    KEY_HELP: ClassVar[str] = "Go to the watches"
    ABOUT: ClassVar[str] = (
        "Expressions with their value at this stop; `≠` marks one that has changed, with the value before. Numbers "
        "have their values at the latest stops as a line of blocks."
    )
    EMPTY: ClassVar[str] = "none: w asks for an expression, such as norm or grad.max()"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._watches: Sequence[WatchRecord] = ()

    def update(self, snapshot: Snapshot) -> None:
        """Show the watches."""
        watches = snapshot.watches
        if watches == self._watches:
            return
        self._watches = watches
        self.set_heading(count=len(watches))
        self.content_changed()
        self.cursor = min(self.cursor, max(0, len(watches) - 1))

    @property
    def selected(self) -> WatchRecord | None:
        """The watch under the cursor."""
        return self._watches[self.cursor] if self.cursor < len(self._watches) else None

    def copied(self) -> str:
        """Return the expression under the cursor with its value."""
        return f"{self.selected.expression} = {self.selected.text}" if self.selected is not None else ""

    def delete(self, session: Session) -> bool:
        """Remove the watch under the cursor."""
        if self.selected is None:
            return False
        session.remove_watch(self.selected.id)
        return True

    def line_count(self) -> int:
        """Return the number of watches."""
        return len(self._watches)

    def line(self, row: int, width: int) -> Text:
        """Return the line of one watch."""
        watch = self._watches[row]
        text = Text("›" if row == self.cursor else " ")
        text.append("≠ " if watch.changed else "  ", self.color("now"))
        text.append(f"{watch.id} ", self.color("dim"))
        text.append(watch.expression, self.color("strong"))
        text.append(" = ", self.color("dim"))
        text.append(_flat(watch.text), self.color("bad" if watch.error else "now" if watch.changed else ""))
        if watch.changed and watch.previous is not None:
            text.append(f"  (was {_flat(watch.previous)})", self.color("dim"))
        if len(watch.recent) > 1:
            text.append(f"  {linear_sparkline(watch.recent, _OVER_TIME)}", self.color("good"))
        return text


def _flat(value: str) -> str:
    """Write a value in one line, a float with the digits that are worth reading; `y` copies all of them."""
    try:
        return value if len(value) < 12 else f"{float(value):.7g}"
    except ValueError:
        return " ".join(value.split())
