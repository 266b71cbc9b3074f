"""The user's source around the line that made the node under the cursor."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from textual import events
from textual.message import Message

from gradscope_tui.colors import without_background
from gradscope_tui.widgets.labels import basename
from gradscope_tui.widgets.line_pane import LinePane, Place

if TYPE_CHECKING:
    from gradscope.inspect.records.records import Location
    from gradscope_tui.sessions.session_protocol import Breakpoint
    from gradscope_tui.sessions.session_snapshot import Focus, Snapshot

__all__ = ["SourcePane", "breaks_on"]

CONTEXT = 20
"""Lines that are shown on each side of the line that made the node."""

_CHUNK = 16
"""Lines that are highlighted at once: neighbouring nodes are made by neighbouring lines."""


_GUTTER = 7
"""Cells before a line: where the program stands, the number, whether there is a breakpoint."""


def breaks_on(point: Breakpoint, location: Location) -> bool:
    """Whether a breakpoint on lines is one on this line."""
    made_there: Any = SimpleNamespace(location=location)  # a breakpoint on lines asks nothing else of a node
    return point.matches(made_there)


def _which(focus: Focus) -> tuple[int, int | None]:
    """Return what tells the node under the cursor from another."""
    return focus.task, None if focus.node is None else focus.node.index


def _window(filename: str, first: int, last: int, theme: str) -> tuple[Text, ...]:
    """Return the highlighted lines `first` to `last` (from 1, inclusive) of a file; none where it cannot be read."""
    chunks = range((first - 1) // _CHUNK, (last - 1) // _CHUNK + 1)
    lines = [line for chunk in chunks for line in _highlighted(filename, chunk, theme)]
    start = first - 1 - chunks[0] * _CHUNK
    return tuple(lines[start : start + last - first + 1])


@lru_cache(maxsize=256)
def _highlighted(filename: str, chunk: int, theme: str) -> tuple[Text, ...]:
    """Return the highlighted lines of a part of a file; none behind its end."""
    lines = linecache.getlines(filename)[chunk * _CHUNK : (chunk + 1) * _CHUNK]
    code = "".join(lines)
    if not code:
        return ()
    text = Syntax(code, "python", theme=theme).highlight(code)
    text.style = ""
    text.spans = [s._replace(style=without_background(s.style)) for s in text.spans if isinstance(s.style, Style)]
    return tuple(text.split("\n", allow_blank=True))[: len(lines)]


class SourcePane(LinePane):
    """A window of the file in which the node under the cursor was made."""

    NUMBER: ClassVar[int] = 3
    TITLE: ClassVar[str] = "Source"
    PLACE: ClassVar[Place] = Place.BELOW
    KEYS: ClassVar[Mapping[str, str]] = {"editor": "Open in the editor", "filter": "Find"}
    KEY_HELP: ClassVar[str] = "Go to the source of the node under the cursor"
    ABOUT: ClassVar[str] = (
        "That line in its file; of a leaf, which no line has made, the line that uses it. A click on the number of a "
        "line sets a breakpoint on what it makes, or removes it. `E` opens it in `$EDITOR`."
    )
    EMPTY: ClassVar[str] = "the line that made a node is shown here"

    class GutterClicked(Message):
        """The number of a line has been clicked."""

        def __init__(self, location: Location) -> None:
            super().__init__()
            self.location = location

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._focus: Focus | None = None
        self._location: Location | None = None
        self._first = 1
        self._lines: tuple[Text, ...] = ()
        self._points: tuple[Breakpoint, ...] = ()
        self._pointed = False

    def update(self, snapshot: Snapshot) -> None:
        """Show the line that made the node under the cursor, or why there is none."""
        points = tuple(point for point in snapshot.breakpoints if point.spec.startswith("line:") and point.enabled)
        if [point.spec for point in points] != [point.spec for point in self._points]:
            self._points = points
            self.refresh()
        if snapshot.focus is self._focus:
            return
        another = self._focus is None or _which(snapshot.focus) != _which(self._focus)
        self._focus, node = snapshot.focus, snapshot.focus.node
        if another and not self._is_seen():
            self.centre()
        if snapshot.focus.line is not None:
            self.show(snapshot.focus.line, pointed=True)
        elif snapshot.focus.used_at is not None:
            self.show(snapshot.focus.used_at, about="that uses it")
        elif node is None:
            self.show(None)
        else:
            leaf = node.name == "AccumulateGrad"
            why = "the gradient of a leaf is accumulated here" if leaf else "its line is not known"
            self.show(node.location, f"{node.name}: {why}")

    def copied(self) -> str:
        """Return where the node under the cursor was made."""
        return str(self._location or "")

    def show(self, location: Location | None, why_empty: str = "", about: str = "", *, pointed: bool = False) -> None:
        """Show the lines around a location.

        Parameters
        ----------
        location : Location or None
            Where the node under the cursor was made.
        why_empty : str
            What to say instead when there is no location.
        about : str
            What the line is, where it has not made the node.
        pointed : bool
            Whether a finding, a function that waits or an error points at it, whatever the node is.
        """
        if (location, why_empty, pointed) == (self._location, self.empty, self._pointed):
            return
        self._pointed = pointed
        moved = location != self._location
        self._location, self.empty = location, why_empty
        place = "" if location is None else f"{basename(location.filename)}:{location.lineno} {about}"
        self.set_heading(about=place.rstrip())
        self.redraw()
        if moved:
            self.centre()

    def redraw(self) -> None:
        """Highlight the lines again: other ones, or in other colours."""
        self._highlight()
        self.content_changed()

    def _highlight(self) -> None:
        """Highlight the window, or what the record itself knows of the line where the file cannot be read."""
        location = self._location
        self._lines = ()
        if location is None:
            return
        self._first = max(1, location.lineno - CONTEXT)
        theme = "ansi_light" if not self.app.current_theme.dark else "monokai"
        self._lines = _window(location.filename, self._first, location.lineno + CONTEXT, theme)
        if len(self._lines) <= location.lineno - self._first:
            self._first = location.lineno
            self._lines = (Text(location.source or "(the file cannot be read)"),)

    def _is_seen(self) -> bool:
        """Whether the line is on the screen: somebody may have scrolled away from it."""
        if self._location is None:
            return True
        return 0 <= self._location.lineno - self._first - self.scroll_offset.y < self.scrollable_content_region.height

    def centre(self) -> None:
        """Scroll so that the line that made the node is in the middle."""
        if self._location is not None:
            middle = self._location.lineno - self._first - self.scrollable_content_region.height // 2
            self.scroll_to(0, max(0, middle), animate=False, force=True)

    def on_resize(self, event: events.Resize) -> None:
        """Find the middle again: there is another one."""
        self.centre()

    def line_count(self) -> int:
        """Return the number of lines of the window."""
        return len(self._lines)

    def line_width(self) -> int:
        """Return the width of the widest line, with its number."""
        return max((line.cell_len + _GUTTER for line in self._lines), default=0)

    def line(self, row: int, width: int) -> Text:
        """Return one line with its number."""
        number = self._first + row
        here = self._location is not None and number == self._location.lineno
        stops = self._points and any(breaks_on(point, self._at(number)) for point in self._points)
        text = Text.assemble(
            (("›" if self._pointed else "▶") if here else " ", self.color("now")),
            (f"{number:>4}", self.color("now" if here else "dim")),
            ("● " if stops else "  ", self.color("bad")),
        )
        return text.append_text(self._lines[row])

    def _at(self, number: int) -> Location:
        """Return a line of the file that is shown."""
        assert self._location is not None
        return replace(self._location, lineno=number)

    def on_click(self, event: events.Click) -> None:
        """Tell that the number of a line has been clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.x < _GUTTER and self.row_at(offset.y) < len(self._lines):
            self.post_message(self.GutterClicked(self._at(self._first + self.row_at(offset.y))))

    def is_marked(self, row: int) -> bool:
        """Mark the line that made the node."""
        return self._location is not None and self._first + row == self._location.lineno
