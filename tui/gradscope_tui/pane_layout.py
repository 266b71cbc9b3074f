"""The panes: which of them have room, which one the keys go to, and the movements in it."""

from __future__ import annotations

from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget

from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.modules_pane import ModulesPane
from gradscope_tui.panes.source_pane import SourcePane
from gradscope_tui.panes.watches_pane import WatchesPane
from gradscope_tui.sessions.session_watcher import SessionApp
from gradscope_tui.widgets.key_bar import KeyBar
from gradscope_tui.widgets.line_pane import LinePane, PaneGrid
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.widgets.status_bar import StatusBar

__all__ = ["PanesApp"]

PANES = range(1, 8)
"""The numbers of the panes."""

NARROW, WIDE, LOW = 60, 120, 16
"""Columns for two panes side by side, columns for a source pane of its own, rows for more than one pane."""


class PanesApp(SessionApp):
    """An app that lays out the panes of a session.

    Above stand the graph and the inspector; below, in the dock, source, breakpoints, log, watches and modules. A wide
    terminal shows the source beside one of the others, a narrow one shows one of them all, a tiny one only the active
    pane.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (NARROW, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LOW, "-tall")]

    active = 1
    maximised = False
    _dock, _side = 3, 5
    _room: Size | None = None

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        yield StatusBar(id="status")
        with PaneGrid(id="panes"):
            yield GraphPane(id="pane1")
            yield InspectorPane(id="pane2")
            yield SourcePane(id="pane3", classes="-dock")
            yield BreakpointsPane(id="pane4", classes="-dock")
            yield LogPane(id="pane5", classes="-dock")
            yield WatchesPane(id="pane6", classes="-dock")
            yield ModulesPane(id="pane7", classes="-dock")
        yield KeyBar(id="keys")
        yield Prompt(id="prompt")

    @property
    def pane(self) -> LinePane:
        """The pane that the keys go to."""
        return self.query_one(f"#pane{self.active}", LinePane)

    @property
    def _alone(self) -> bool:
        """Whether the active pane has the screen to itself."""
        width, height = self._room or self.size
        return self.maximised or width < NARROW or height < LOW

    def _has_place(self, number: int) -> bool:
        """Say whether a pane has a place of its own, or is the one of the dock that is in front."""
        wide = (self._room or self.size).width >= WIDE
        return number in ({1, 2, 3, self._side} if wide else {1, 2, self._dock})

    def is_seen(self, number: int) -> bool:
        """Say whether a pane is on the screen."""
        return number == self.active if self._alone else self._has_place(number)

    def arrange(self) -> None:
        """Show the panes that have room, and give the keys to the active one."""
        self.query_one("#panes").set_class(self._alone, "-alone")
        for number in PANES:
            pane = self.query_one(f"#pane{number}", LinePane)
            pane.set_class(number == self.active, "-active")
            pane.set_class(not self._has_place(number), "-stacked")
        self.label_tabs()
        if not self.query_one(Prompt).display:
            self.pane.focus(scroll_visible=False)

    @on(LinePane.Renamed)
    def label_tabs(self) -> None:
        """Name, in the border of the dock, the panes that it hides."""
        dock = list(self.query("#panes > .-dock").results(LinePane))
        hidden = [pane for pane in dock if pane.has_class("-stacked")]
        seen = [pane for pane in dock if not pane.has_class("-stacked")]
        for pane in seen:
            pane.set_footing(hidden if pane is seen[-1] else [])

    def on_resize(self, event: events.Resize) -> None:
        """Other panes may have room now."""
        self._room = event.size
        self.arrange()

    @property
    def focused(self) -> Widget | None:
        """What has the keys; nothing while the program ends, when what is still told finds no screen."""
        return super().focused if self.screen_stack else None

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow the focus, should the mouse have moved it; it may have gone on meanwhile."""
        pane = event.widget
        if isinstance(pane, LinePane) and pane is self.focused and self.active != pane.NUMBER:
            self.action_pane(pane.NUMBER)

    def action_pane(self, number: int) -> None:
        """Show a pane, and give it the keys."""
        self.active = number
        self.uncover(number)
        self.arrange()

    def uncover(self, number: int) -> None:
        """Show a pane where other panes hide it, without giving it the keys."""
        before = self._dock, self._side
        if number > 2:
            self._dock = number
        if number > 3:
            self._side = number
        if before != (self._dock, self._side):
            self.arrange()

    def action_focus_next(self, selector: Any = "*") -> None:
        """Go to the next pane."""
        if not self.query_one(Prompt).display:
            self.action_pane(self.active % len(PANES) + 1)

    def action_focus_previous(self, selector: Any = "*") -> None:
        """Go to the pane before."""
        if not self.query_one(Prompt).display:
            self.action_pane((self.active - 2) % len(PANES) + 1)

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
