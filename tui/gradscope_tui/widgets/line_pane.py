"""Panes made of lines: only the lines that are on the screen are ever rendered."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.containers import Container
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from gradscope_tui.colors import line_style, text_style

if TYPE_CHECKING:
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["CursorPane", "LinePane", "PaneGrid", "Place", "WholeCells", "wanted_text"]


_BETWEEN = " │ "
"""What stands between the names of other panes in the border."""

_NO_FOOTING: tuple[str, list[tuple[str, int]]] = ("", [])
"""What stands between names of other panes, and these, each with its number, where there are none."""

_SEARCH_KEYS = {"step": "Next match", "step_back": "Match before", "show_all": "End of the search"}
"""What the keys of these actions do while something is looked for."""


class Place(Enum):
    """Where a pane stands in the layout."""

    ABOVE = "above"
    """Beside the other such pane, seen wherever two panes have room."""

    BELOW = "below"
    """In the dock below; a wide terminal has a place for it beside those that take turns."""

    IN_TURN = "in turn"
    """In the dock below, of which one at a time is seen."""


class PaneGrid(Container):
    """The place of the panes, which has their colors: looked up once for all of them, whenever the style changes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "pane--head",
        "pane--dim",
        "pane--told",
        "pane--strong",
        "pane--now",
        "pane--past",
        "pane--good",
        "pane--warn",
        "pane--bad",
        "pane--lane-0",
        "pane--lane-1",
        "pane--lane-2",
        "pane--lane-3",
    }

    class Dragged(Message):
        """The border between panes has been dragged to a column or to a row of the screen."""

        def __init__(self, *, column: int | None = None, row: int | None = None) -> None:
            super().__init__()
            self.column = column
            self.row = row

    _dragged: str = ""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border between panes."""
        first, beside = (pane.region for pane in self.children[:2])
        below = first.height == beside.height or event.screen_x > first.right
        if not self.has_class("-alone") and event.screen_x in (first.right - 1, first.right):
            self._dragged = "column"
        elif not self.has_class("-alone") and below and event.screen_y in (beside.bottom - 1, beside.bottom):
            self._dragged = "row"
        if self._dragged:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell where the border is dragged."""
        if self._dragged == "column":
            self.post_message(self.Dragged(column=event.screen_x))
        elif self._dragged == "row":
            self.post_message(self.Dragged(row=event.screen_y))

    def on_mouse_up(self) -> None:
        """Let go of the border."""
        if self._dragged:
            self._dragged = ""
            self.release_mouse()


class WholeCells(ScrollBarRender):
    """A scrollbar of whole cells: parts of one look like what the pane draws itself."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]


class LinePane(ScrollView, can_focus=True, inherit_bindings=False):
    """A pane that shows lines of text; a subclass says how many there are and what each one is.

    A subclass with a `NUMBER` is a pane of the app and registers itself: layout, keys, help and documentation are made
    of what it declares in `NUMBER`, `KEY`, `TITLE`, `PLACE`, `KEYS`, `KEY_HELP` and `ABOUT`. What it shows comes by
    `update`.

    Keys belong to the app, which sends every pane the same movements (`move`, `half_page`, `go_to_end`, `shift`,
    `zoom`) and verbs (`copied`, `open`, `switch`, `delete`); keys of its own are Textual's `BINDINGS`.
    """

    BINDINGS = [  # the pane has these keys only during a search; else the app has other uses for them
        Binding("n", "seek(1)", "Next match", show=False),
        Binding("N", "seek(-1)", "Match before", show=False),
        Binding("escape", "forget", "End of the search", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"pane--cursor"}
    ALLOW_MAXIMIZE = False

    # A pane is as large as its place in the layout: how many lines it has changes its scroll bars, not the screen.
    virtual_size = Reactive(Size(0, 0), layout=False)

    registered: ClassVar[dict[int, type[LinePane]]] = {}
    """The panes of the app by their numbers."""

    NUMBER: ClassVar[int] = -1
    """Its place among the panes, from 1; -1 where it is none of the app's."""

    KEY: ClassVar[str] = ""
    """The key that shows it; of the first ten panes the digits, of which 0 stands behind 9, as on a keyboard."""

    TITLE: ClassVar[str] = ""
    """What the pane is called in its border and in the palette."""

    SHORT: ClassVar[str] = ""
    """What it is called where several names share a border and have little room; by default they are cut."""

    PLACE: ClassVar[Place] = Place.IN_TURN
    """Where it stands."""

    KEY_HELP: ClassVar[str] = ""
    """What its key does, for the help and the palette."""

    ABOUT: ClassVar[str] = ""
    """What it shows, for the documentation: Markdown in one line."""

    KEYS: ClassVar[Mapping[str, str]] = {}
    """Actions that matter most in this pane, and what each does here, for the key bar."""

    EMPTY: ClassVar[str] = ""
    """What to say where there are no lines."""

    empty: str = ""
    """What to say instead at the moment."""

    class Renamed(Message):
        """The heading of the pane is another one."""

    class KeysChanged(Message):
        """Other keys matter in the pane now."""

    class VerbRefused(Message):
        """Something cannot be done, and why."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    heading: str = ""
    """Number, name and count, as the border shows them."""

    short_heading: str = ""
    """The same with the short name."""

    _wanted: re.Pattern[str] | None = None
    _found_row: int = -1
    _title: str = ""
    _footing: tuple[str, list[tuple[str, int]]] = _NO_FOOTING
    _hidden: Sequence[LinePane] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Register a pane of the app."""
        super().__init_subclass__(**options)
        if "NUMBER" in vars(cls):
            other = LinePane.registered.setdefault(cls.NUMBER, cls)
            if other.__qualname__ != cls.__qualname__:
                raise ValueError(
                    f"{cls.__name__} has the number of {other.__name__}, {cls.NUMBER}\n"
                    "A pane's NUMBER is its place among the panes: take the one behind the last."
                )
            cls.KEY = vars(cls).get("KEY") or str(cls.NUMBER % 10)

    def update(self, snapshot: Snapshot) -> None:
        """Show what a session says; called at every change, also where nothing that the pane shows is another."""

    def stopped(self, snapshot: Snapshot) -> None:
        """Do what is to be done where the session has stopped anew: called after `update`."""

    def copied(self) -> str:
        """Return what is copied: what the cursor is on, as text."""
        return ""

    def switch(self, session: Session) -> None:
        """Switch what is under the cursor on or off, where it can be."""

    def open(self, session: Session) -> None:
        """Open what is under the cursor; mostly there is no more to it than to `switch` it."""
        self.switch(session)

    def delete(self, session: Session) -> bool:
        """Remove what is under the cursor from a session; return whether there was something to remove."""
        return False

    def redraw(self) -> None:
        """Write down again, in the colors of another theme, what is kept as it was written."""

    def line_count(self) -> int:
        """Return how many lines there are."""
        raise NotImplementedError

    def line(self, row: int, width: int) -> Text:
        """Return line `row`; `width` is the number of cells that can be seen."""
        raise NotImplementedError

    def line_width(self) -> int:
        """Return how wide the widest line is, for horizontal scrolling; 0 where lines are cut to what fits."""
        return 0

    def is_marked(self, row: int) -> bool:
        """Say whether line `row` is under the cursor."""
        return False

    def color(self, name: str) -> Style:
        """Return the style of one of the colors of `PaneGrid`; a plain one for an empty name."""
        return text_style(self.parent, f"pane--{name}") if name and isinstance(self.parent, PaneGrid) else Style.null()

    def row_at(self, y: int) -> int:
        """Return the row that is drawn at a line of the pane."""
        return y + self.scroll_offset.y

    def watch_virtual_size(self, size: Size) -> None:
        """Move the scroll bars; where lines decide the pane's own size, the screen is laid out anew."""
        if self.styles.is_auto_height:
            self.refresh(layout=True)
        else:
            self._scroll_update(size)

    def content_changed(self) -> None:
        """Measure again and repaint."""
        self.virtual_size = Size(self.line_width(), self.line_count())
        self.refresh()

    def on_mount(self) -> None:
        """Put the pane's number and name into its border."""
        self.vertical_scrollbar.renderer = WholeCells  # type: ignore[misc]
        if not self.heading:
            self.set_heading()

    # Search ----------------------------------------------------------------------------------------------------------

    @property
    def searching(self) -> bool:
        """Whether something is looked for."""
        return self._wanted is not None

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
        self._wanted, self._found_row = wanted_text(text), -1
        rows = self._matches()
        if rows:
            self.show_match(rows[min(bisect_left(rows, self.first_row), len(rows) - 1)])
        else:
            self._wanted = None
        self.post_message(self.KeysChanged())
        self.refresh()
        return bool(rows)

    def seek(self, step: int) -> bool:
        """Go to the next match, or with ``step=-1`` to the one before; return whether there is one."""
        rows = self._matches()
        place = bisect_left(rows, self._found_row) + step
        if not 0 <= place < len(rows):
            return False
        self.show_match(rows[place])
        return True

    @property
    def keys(self) -> Mapping[str, str]:
        """What matters most in the pane now: while something is looked for, to go from match to match."""
        return _SEARCH_KEYS if self.searching else self.KEYS

    def show_match(self, row: int) -> None:
        """Bring a match into view."""
        self._found_row = row
        height, top = self.scrollable_content_region.height, self.scroll_offset.y
        if not top <= row < top + height:
            self.scroll_to(y=max(0, row - height // 3), animate=False, force=True)
        self.refresh()

    @property
    def first_row(self) -> int:
        """The row from which a search begins."""
        return self.scroll_offset.y

    def _matches(self) -> list[int]:
        wanted = self._wanted
        return [r for r in range(self.line_count()) if wanted.search(self.line(r, 0).plain)] if wanted else []

    def action_seek(self, step: int) -> None:
        """Go to the next match, or to the one before."""
        if not self.seek(step):
            self.post_message(self.VerbRefused(f"this is the {'last' if step > 0 else 'first'} match"))

    def action_forget(self) -> None:
        """End the search."""
        self.find_lines("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to the app where nothing is looked for."""
        return self.searching if action in ("seek", "forget") else super().check_action(action, parameters)

    def set_heading(self, *, count: int = 0, about: str = "") -> None:
        """Write the pane's number and name into its border.

        Parameters
        ----------
        count : int
            How many things are in the pane, where that is worth knowing while another pane hides it.
        about : str
            What the pane is about at the moment.
        """
        number = f" {count}" if count else ""
        heading = f"{self.KEY} {self.TITLE}{number}"
        self.short_heading = f"{self.KEY} {self.SHORT or self.TITLE}{number}"
        title = f"{heading} {about}".rstrip()
        if heading != self.heading:
            self.heading = heading
            self.post_message(self.Renamed())
        if title != self._title:  # writing into the border repaints the whole pane
            self._title = title
            self.border_title = Text(title)

    def set_footing(self, hidden: Sequence[LinePane]) -> None:
        """Name other panes in the border below, where a click shows them."""
        self._hidden = hidden
        room, between = self.size.width - 4, _BETWEEN
        headings = [pane.heading for pane in hidden]
        if _length(headings, between) > room:
            headings = [pane.short_heading for pane in hidden]
        if _length(headings, between) > room:
            between = between.strip()
            headings = _fitting(headings, room, len(between))
        footing = [(heading, pane.NUMBER) for heading, pane in zip(headings, hidden)]
        named = (between, footing) if footing else _NO_FOOTING  # a pane that hides none may say something else there
        if named != self._footing:
            self._footing = named
            tabs = (Text(heading, Style(meta={"@click": f"app.pane({number})"})) for heading, number in footing)
            self.border_subtitle = Text(between).join(tabs)

    def on_resize(self, event: events.Resize) -> None:
        """Measure again: what fits has changed."""
        self.content_changed()
        self.set_footing(self._hidden)

    def render_line(self, y: int) -> Strip:
        """Render one line of the screen."""
        left = self.scroll_offset.x
        row, width = self.row_at(y), self.size.width
        base = self.visual_style.rich_style  # this style is remembered, unlike self.rich_style
        count = self.line_count()
        empty = [] if count else textwrap.wrap(self.empty or self.EMPTY, max(20, width - 3))
        if row >= max(count, len(empty)):
            return Strip.blank(width, base)
        if count:
            text = self.line(row, self.scrollable_content_region.width)
        else:
            text = Text(f" {empty[row]}", self.color("dim"))
        if self._wanted is not None:
            text = text.copy()
            text.highlight_regex(self._wanted, Style(reverse=True))
        strip = self._cut(Strip(text.render(self.app.console)), left, width)
        if isinstance(text.style, Style):  # Rich renders a text without spans without its style
            strip = strip.apply_style(text.style)
        strip = strip.apply_style(base)
        if count and self.is_marked(row):
            strip = Strip(Segment.apply_style(strip, post_style=line_style(self, "pane--cursor")), width)
        return strip

    def _cut(self, strip: Strip, left: int, width: int) -> Strip:
        """Return what is seen of a line, with an ellipsis where it goes on to the right."""
        room = self.scrollable_content_region.width
        if strip.cell_length > left + room > left:
            strip = Strip.join([strip.crop(left, left + room - 1), Strip([Segment("…")])])
            left = 0
        return strip.crop_extend(left, left + width, None)

    def move(self, rows: int) -> None:
        """Move by some lines: scroll, or move the cursor where there is one."""
        self.scroll_relative(y=rows, animate=False, force=True)  # new lines get their scrollbar a moment later

    def half_page(self, direction: int) -> None:
        """Move by half of what is seen, down for 1 and up for -1."""
        self.move(direction * max(1, self.scrollable_content_region.height // 2))

    def go_to_end(self, last: bool) -> None:
        """Go to the first or the `last` line."""
        self.move(self.line_count() * (1 if last else -1))

    def shift(self, cells: int) -> None:
        """Scroll sideways."""
        self.scroll_relative(x=cells, animate=False, force=True)

    def zoom(self, step: int) -> bool:
        """Show things larger, or with ``step=-1`` smaller; return whether the pane can: else it gets another size."""
        return False


def wanted_text(text: str) -> re.Pattern[str] | None:
    """Return what finds a text in a line; capitals matter where there are any."""
    return re.compile(re.escape(text), re.IGNORECASE if text == text.lower() else 0) if text else None


def _length(headings: Sequence[str], between: str) -> int:
    return len(between.join(headings))


def _fitting(headings: Sequence[str], room: int, between: int) -> list[str]:
    """Cut the longest of some headings until all of them have room beside each other; a count goes as a whole.

    Examples
    --------
    >>> _fitting(["4 Breakpoints", "5 Log", "7 Modules 21"], 22, 1), _fitting(["5 Log"], 0, 1)
    (['4 Break', '5 Log', '7 Module'], ['5'])
    """
    cut = list(headings)
    while cut and sum(map(len, cut)) + between * (len(cut) - 1) > room:
        longest = max(range(len(cut)), key=lambda place: len(cut[place]))
        if len(cut[longest]) <= 1:
            break
        words, _, number = cut[longest].rpartition(" ")
        cut[longest] = words if words and number.isdecimal() else cut[longest][:-1].rstrip()
    return cut


class CursorPane(LinePane):
    """A pane with a cursor line."""

    cursor: reactive[int] = reactive(0, repaint=False)

    def line_width(self) -> int:
        """Return how wide the widest line is."""
        return max((self.line(row, 0).cell_len for row in range(self.line_count())), default=0)

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on a line."""
        return max(0, min(cursor, self.line_count() - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        """Bring the cursor into view."""
        self.reveal(now)
        self.refresh_line(before)
        self.refresh_line(now)

    def reveal(self, row: int) -> None:
        """Scroll, if need be, so that `row` and a little around it is seen."""
        height = self.scrollable_content_region.height
        if height <= 0:
            return
        margin = min(2, (height - 1) // 2)
        top = self.scroll_offset.y
        if row < top - height or row >= top + 2 * height:
            self.scroll_to(y=row - height // 2, animate=False, force=True)
        else:
            region = Region(self.scroll_offset.x, max(0, row - margin), 1, 1 + 2 * margin)
            self.scroll_to_region(region, animate=False, force=True)

    def show_match(self, row: int) -> None:
        """Put the cursor on a match."""
        self._found_row = self.cursor = row
        self.refresh()

    @property
    def first_row(self) -> int:
        """The row of the cursor."""
        return self.cursor

    def is_marked(self, row: int) -> bool:
        """Mark the cursor line."""
        return row == self.cursor

    def move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor += rows

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse has clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and self.row_at(offset.y) < self.line_count():
            self.cursor = self.row_clicked(self.row_at(offset.y), offset.x)

    def row_clicked(self, row: int, x: int) -> int:
        """Return where the cursor goes at a click on a row, `x` cells from its left."""
        return row
