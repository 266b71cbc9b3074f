"""The breakpoints, and at which kinds of trouble the script stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.message import Message

from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope_tui.sessions.session_protocol import Breakpoint, Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["BreakpointsPane"]

_TROUBLE = {
    "nan": "where a NaN first appears",
    "inf": "where an infinity first appears",
    "violation": "where a saved tensor has been written since",
    "exception": "where a backward raises",
}


class BreakpointsPane(CursorPane):
    """The breakpoints, one a line; below them the switches for trouble."""

    NUMBER: ClassVar[int] = 4
    TITLE: ClassVar[str] = "Breakpoints"
    SHORT: ClassVar[str] = "Break"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEYS: ClassVar[Mapping[str, str]] = {
        "open": "Edit",
        "switch": "On or off",
        "delete": "Delete",
        "break_spec": "New breakpoint",
    }
    KEY_HELP: ClassVar[str] = "Go to the breakpoints"
    ABOUT: ClassVar[str] = (
        "Conditions, hits, how often each is still passed by, logpoints, temporary ones; below them the switches for "
        "NaN, infinity, version violations and exceptions. Enter edits the breakpoint under the cursor, Space switches "
        "the line on or off."
    )

    class EditWanted(Message):
        """A breakpoint is to be edited."""

        def __init__(self, point: Breakpoint) -> None:
            super().__init__()
            self.point = point

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._points: Sequence[Breakpoint] = ()
        self._hits: dict[str, int] = {}
        self._catching: Mapping[str, bool] = {}
        self._shown: tuple[list[Breakpoint], dict[str, bool]] = [], {}

    def update(self, snapshot: Snapshot) -> None:
        """Show the breakpoints, and at which kinds of trouble the session stops."""
        breakpoints, catching = snapshot.breakpoints, snapshot.catching
        shown = [copy(point) for point in breakpoints], dict(catching)  # the breakpoints count their hits
        if shown == self._shown:
            return
        self._shown = shown
        self._points = [point for point in breakpoints if point.spec not in _TROUBLE]
        self._hits = {point.spec: point.hits for point in breakpoints}
        self._catching = dict(catching)
        self.set_heading(count=len(self._points))
        self.content_changed()
        self.cursor = min(self.cursor, max(0, self.line_count() - 1))

    @property
    def selected(self) -> Breakpoint | None:
        """The breakpoint under the cursor."""
        return self._points[self.cursor] if self.cursor < len(self._points) else None

    @property
    def trouble(self) -> tuple[str, bool] | None:
        """The kind of trouble under the cursor, and whether the session stops there."""
        row = self.cursor - len(self._points)
        kinds = list(self._catching)
        return (kinds[row], self._catching[kinds[row]]) if 0 <= row < len(kinds) else None

    def copied(self) -> str:
        """Return the command that sets the breakpoint under the cursor."""
        return self.selected.command() if self.selected is not None else ""

    def switch(self, session: Session) -> None:
        """Switch the breakpoint or the kind of trouble under the cursor on or off."""
        if self.selected is not None:
            session.enable_breakpoint(self.selected.id, not self.selected.enabled)
        elif self.trouble is not None:
            kind, caught = self.trouble
            session.catch(kind, not caught)

    def open(self, session: Session) -> None:
        """Edit the breakpoint under the cursor; a kind of trouble has no more to it than its switch."""
        if self.selected is not None:
            self.post_message(self.EditWanted(self.selected))
        else:
            self.switch(session)

    def delete(self, session: Session) -> bool:
        """Remove the breakpoint under the cursor."""
        if self.selected is None:
            return False
        session.remove_breakpoint(self.selected.id)
        return True

    def line_count(self) -> int:
        """Return the number of breakpoints and switches."""
        return len(self._points) + len(self._catching)

    def line(self, row: int, width: int) -> Text:
        """Return the line of one breakpoint or switch."""
        text = Text("›" if row == self.cursor else " ")
        if row < len(self._points):
            return self._breakpoint(text, self._points[row])
        kind, on = list(self._catching.items())[row - len(self._points)]
        text.append("[●] " if on else "[ ] ", self.color("bad" if on else "dim"))
        text.append(f"{kind:<9}", self.color("strong" if on else "dim"))
        text.append(f" {_TROUBLE.get(kind, '')}", self.color("dim"))
        if self._hits.get(kind):
            text.append(f"  hits {self._hits[kind]}", self.color("dim"))
        return text

    def _breakpoint(self, text: Text, stop: Breakpoint) -> Text:
        text.append("● " if stop.enabled else "◌ ", self.color("bad" if stop.enabled else "dim"))
        text.append(f"{stop.id} ", self.color("dim"))
        text.append(stop.spec, self.color("strong" if stop.enabled else "dim"))
        if stop.condition:
            text.append(f"  if {stop.condition}")
        if stop.log is not None:
            text.append(f"  prints {stop.log}", self.color("good"))
        text.append(f"  hits {stop.hits}", self.color("dim"))
        notes = [(stop.ignore, f"passes {stop.ignore} more"), (stop.temporary, "once"), (not stop.enabled, "off")]
        for wanted, note in notes:
            if wanted:
                text.append(f"  {note}", self.color("warn"))
        return text
