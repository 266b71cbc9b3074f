"""The panes on the screen: which of them have room, which one the keys go to, and the movements in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual.app import App
from textual.geometry import Size

from gradscope_tui.panes import PANES
from gradscope_tui.panes.findings_pane import FindingsPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.widgets.key_bar import KeyBar
from gradscope_tui.widgets.line_pane import LinePane, PaneGrid, Place
from gradscope_tui.widgets.prompt_line import Prompt

__all__ = ["PaneLayout"]

NARROW, WIDE, VAST, LOW = 60, 120, 180, 16
"""Columns for two panes side by side, for two panes in the dock, for a third column, rows for more than one pane."""

STEP, LEAST = 5, 15
"""Hundredths of the screen by which a pane grows, and that every pane keeps."""

_PLACES = {pane.NUMBER: pane.PLACE for pane in PANES}
_NUMBERS = list(_PLACES)


class PaneLayout:
    """Lays out the panes, each in the place that it declares.

    Above stand the graph and the inspector, below, in the dock, the others. A wide terminal shows the source there
    beside one that takes its turn, a narrow one shows one of them all, a tiny one only the active pane. Where there is
    room for a third column, the graph has the whole height, and two of the others are seen at once.

    Attributes
    ----------
    active : int
        Number of the pane that the keys go to.
    maximised : bool
        Whether it has been given the whole screen.
    columns, rows : int
        How much of the width the graph has, and of the height what stands above, in hundredths; 0 where nobody has
        chosen it.
    """

    def __init__(self, app: App[Any]) -> None:
        self.active = _NUMBERS[0]
        self.maximised = False
        self.columns = self.rows = 0
        self._app = app
        self._dock = next(number for number, place in _PLACES.items() if place is Place.BELOW)
        self._side = LogPane.NUMBER
        self._sides = [LogPane.NUMBER, FindingsPane.NUMBER]
        self._room: Size | None = None

    def compose(self) -> Iterator[PaneGrid]:
        """Make the panes: those above come first in the grid."""
        above, below = [], []
        for pane in PANES:
            name = f"pane{pane.NUMBER}"
            if pane.PLACE is Place.ABOVE:
                above.append(pane(id=name))
            else:
                below.append(pane(id=name, classes="-dock"))
        yield PaneGrid(*above, *below, id="panes")

    def _pane(self, number: int) -> LinePane:
        return self._app.query_one(f"#pane{number}", LinePane)

    @property
    def pane(self) -> LinePane:
        """The pane that the keys go to."""
        return self._pane(self.active)

    @property
    def _alone(self) -> bool:
        """Whether the active pane has the screen to itself."""
        width, height = self._room or self._app.size
        return self.maximised or width < NARROW or height < LOW

    def _has_place(self, number: int) -> bool:
        """Say whether a pane has a place of its own, or is the one of the dock that is in front."""
        place, width = _PLACES[number], (self._room or self._app.size).width
        if place is Place.ABOVE:
            return True
        if width >= WIDE:
            return place is Place.BELOW or number in (self._sides if width >= VAST else [self._side])
        return number == self._dock

    def is_seen(self, number: int) -> bool:
        """Say whether a pane is on the screen."""
        return number == self.active if self._alone else self._has_place(number)

    def measure_log(self) -> None:
        """Tell the log how much room it has, or will have where another pane hides it."""
        log = self._pane(LogPane.NUMBER)
        assert isinstance(log, LogPane)
        seen = [pane for pane in map(self._pane, _NUMBERS) if pane.display and _PLACES[pane.NUMBER] is not Place.ABOVE]
        log.set_room((log if log.display or not seen else seen[-1]).scrollable_content_region.size)

    def arrange(self) -> None:
        """Show the panes that have room, and give the keys to the active one."""
        grid = self._app.query_one(PaneGrid)
        grid.set_class(self._alone, "-alone")
        left, right = map(self._pane, self._sides)
        if grid.children.index(left) > grid.children.index(right):
            grid.move_child(right, after=left)
        for pane in map(self._pane, _NUMBERS):
            pane.set_class(self.active == pane.NUMBER, "-active")
            pane.set_class(not self._has_place(pane.NUMBER), "-stacked")
        self.label_tabs()
        self.label_keys()
        if not self._app.query_one(Prompt).display:
            self.pane.screen.set_focus(self.pane, scroll_visible=False)

    def label_keys(self) -> None:
        """Name, in the key bar, the keys of the pane that has the focus; among them the one that leads out of `m`."""
        out = {"maximise": "All panes"} if self.maximised else {}
        self._app.query_one(KeyBar).show_pane({**self.pane.keys, **out})

    def label_tabs(self) -> None:
        """Name, in the border of the dock, the panes that it hides."""
        dock = list(self._app.query("#panes > .-dock").results(LinePane))
        hidden = [pane for pane in dock if pane.has_class("-stacked")]
        hidden.sort(key=lambda pane: _NUMBERS.index(pane.NUMBER))  # the third column changes their order in the grid
        seen = [pane for pane in dock if not pane.has_class("-stacked")]
        for pane in seen:
            pane.set_footing(hidden if pane is seen[-1] else [])

    def divide(self, columns: int, rows: int) -> None:
        """Give the graph so much of the width, and what stands above so much of the height, in hundredths."""
        self.columns, self.rows = (part and min(max(part, LEAST), 100 - LEAST) for part in (columns, rows))
        styles, rest = self._app.query_one(PaneGrid).styles, 100 - self.columns
        if self.columns:
            vast = (self._room or self._app.size).width >= VAST
            styles.grid_columns = (
                f"{self.columns}fr {rest / 2}fr {rest / 2}fr" if vast else f"{self.columns}fr {rest}fr"
            )
        if self.rows:
            styles.grid_rows = f"{self.rows}fr {100 - self.rows}fr"

    def drag(self, column: int | None, row: int | None) -> None:
        """Move the border between panes to a column or a row of the screen."""
        grid = self._app.query_one(PaneGrid).region
        columns = self.columns if column is None else round(100 * (column - grid.x + 1) / max(1, grid.width))
        rows = self.rows if row is None else round(100 * (row - grid.y + 1) / max(1, grid.height))
        self.divide(columns, rows)

    def action_grow(self) -> None:
        """Give the active pane more room, or let it zoom in."""
        self._grow(STEP)

    def action_shrink(self) -> None:
        """Give the active pane less room, or let it zoom out."""
        self._grow(-STEP)

    def _grow(self, step: int) -> None:
        """Let the active pane zoom, or move the borders between it and the others."""
        if self.pane.zoom(1 if step > 0 else -1):
            return
        grid, pane, first = self._app.query_one(PaneGrid).region, self.pane.region, self._pane(_NUMBERS[0]).region
        above = self._pane(_NUMBERS[1]).region
        columns, rows = 100 * first.width // max(1, grid.width), 100 * above.height // max(1, grid.height)
        if not self._alone and pane.width < grid.width:
            columns += step if pane.x == grid.x else -step
        if not self._alone:
            if pane.height < grid.height:
                rows += step if pane.y == grid.y else -step
            self.divide(columns, rows)

    def resize(self, room: Size) -> None:
        """Take another size of the terminal: other panes may have room now."""
        self._room = room
        self.divide(self.columns, self.rows)
        self.arrange()

    def uncover(self, number: int) -> None:
        """Show a pane where other panes hide it, without giving it the keys."""
        if self._bring_forward(number):
            self.arrange()

    def _bring_forward(self, number: int) -> bool:
        """Let a pane be the one of its place that is seen; return whether another one was."""
        before = self._dock, self._side, *self._sides
        if _PLACES[number] is not Place.ABOVE:
            self._dock = number
        if _PLACES[number] is Place.IN_TURN:
            self._show_in_turn(number)
        return before != (self._dock, self._side, *self._sides)

    def _show_in_turn(self, number: int) -> None:
        """Let a pane be seen in place of the one that takes its turn; of two, in place of the one before."""
        if number not in self._sides:
            self._sides[1 - self._sides.index(self._side)] = number
        self._side = number

    def show_beside(self, number: int) -> None:
        """Show a pane that takes turns where it has a place beside the source; where it has none, leave that alone."""
        if (self._room or self._app.size).width >= WIDE and self._side != number:
            self._show_in_turn(number)
            self.arrange()

    def action_pane(self, number: int) -> None:
        """Show a pane, and give it the keys."""
        self.active = number
        self._bring_forward(number)
        self.arrange()

    def _go_round(self, step: int) -> None:
        if not self._app.query_one(Prompt).display:
            self.action_pane(_NUMBERS[(_NUMBERS.index(self.active) + step) % len(_NUMBERS)])

    def action_focus_next(self) -> None:
        """Go to the next pane."""
        self._go_round(1)

    def action_focus_previous(self) -> None:
        """Go to the pane before."""
        self._go_round(-1)

    def action_maximise(self) -> None:
        """Give the active pane the whole screen, or take it back."""
        self.maximised = not self.maximised
        self.arrange()

    def action_down(self) -> None:
        """Move down."""
        self.pane.move(1)

    def action_up(self) -> None:
        """Move up."""
        self.pane.move(-1)

    def action_half_down(self) -> None:
        """Move down by half a page."""
        self.pane.half_page(1)

    def action_half_up(self) -> None:
        """Move up by half a page."""
        self.pane.half_page(-1)

    def action_top(self) -> None:
        """Go to the first line."""
        self.pane.go_to_end(last=False)

    def action_bottom(self) -> None:
        """Go to the last line."""
        self.pane.go_to_end(last=True)

    def action_left(self) -> None:
        """Scroll to the left."""
        self.pane.shift(-8)

    def action_right(self) -> None:
        """Scroll to the right."""
        self.pane.shift(8)
