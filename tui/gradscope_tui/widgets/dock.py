"""The breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text

from gradscope_tui.widgets.pane import CursorPane

if TYPE_CHECKING:
    from gradscope_tui.session import Breakpoint

__all__ = ["BreakpointPane"]


class BreakpointPane(CursorPane, inherit_bindings=False):
    """The breakpoints, one a line."""

    NUMBER: ClassVar[int] = 4
    TITLE: ClassVar[str] = "Breakpoints"
    EMPTY: ClassVar[str] = "none: b sets one on the operator under the cursor, B asks for one"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._breakpoints: Sequence[Breakpoint] = ()

    def show(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Show these breakpoints."""
        self._breakpoints = tuple(breakpoints)
        self.set_heading(count=len(self._breakpoints))
        self.content_changed()
        self.cursor = min(self.cursor, max(0, len(self._breakpoints) - 1))

    @property
    def selected(self) -> Breakpoint | None:
        """The breakpoint under the cursor."""
        return self._breakpoints[self.cursor] if self.cursor < len(self._breakpoints) else None

    def line_count(self) -> int:
        """Return the number of breakpoints."""
        return len(self._breakpoints)

    def line(self, row: int, width: int) -> Text:
        """Return the line of one breakpoint."""
        stop = self._breakpoints[row]
        text = Text("›" if row == self.cursor else " ")
        text.append("● ", self.ink("bad"))
        text.append(f"{stop.id} ", self.ink("dim"))
        text.append(stop.spec, self.ink("strong"))
        if stop.condition:
            text.append(f"  if {stop.condition}")
        text.append(f"  hits {stop.hits}", self.ink("dim"))
        if stop.temporary:
            text.append("  once", self.ink("dim"))
        return text
