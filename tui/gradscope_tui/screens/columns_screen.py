"""What the rows of the graph show, and in which order they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gradscope_tui.widgets.graph_columns import COLUMNS, Column, GraphView
from gradscope_tui.widgets.norm_columns import NormScale

__all__ = ["ColumnsScreen"]


class ColumnsScreen(ModalScreen[None]):
    """Lets a person choose columns and order; what is chosen is seen at once behind it.

    Parameters
    ----------
    view : GraphView
        How the graph is shown.
    shown : callable
        Returns the columns that are shown at the moment.
    choose : callable
        Called with each new view.
    scale : NormScale
        Tells which norms are set off.
    """

    BINDINGS = [
        Binding("escape,q,o,enter", "close", "Close", show=False, priority=True),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
        Binding("space", "switch", "Show or hide", show=False, priority=True),
        Binding("s", "sort", "Sort", show=False),
        Binding("a", "automatic", "By the room", show=False),
    ]

    def __init__(
        self,
        view: GraphView,
        shown: Callable[[], Sequence[str]],
        choose: Callable[[GraphView], None],
        scale: NormScale,
    ) -> None:
        super().__init__()
        self._view, self._shown, self._choose, self._scale = view, shown, choose, scale

    def compose(self) -> ComposeResult:
        """Lay out the columns."""
        with Vertical(id="columns") as box:
            box.border_title = "Columns and order of the graph"
            box.border_subtitle = Text("Space shows or hides · s sorts · a by the room · Esc closes")
            yield OptionList(*(Option(self._line(column), column.id) for column in COLUMNS))
            yield Static(self._about())

    def _line(self, column: Column) -> Text:
        on = column.id in self._shown()
        sign = {column.id: "▼", f"-{column.id}": "▲"}.get(self._view.order, " ")
        text = Text(f"{'✓' if on else '·'} {sign} {column.id:<6}", "bold" if on else "")
        return text.append(f" {column.help}", "")

    def _about(self) -> Text:
        """Say in words what holds."""
        column = self._view.order.removeprefix("-")
        first = "smallest" if self._view.order.startswith("-") else "largest"
        order = f"sorted by {column}, the {first} first" if column else "in the engine's order"
        chosen = "the columns that have room" if self._view.columns is None else "chosen columns"
        return Text(f"{chosen}; {order}\na norm is {self._scale.limits}")

    def _take(self, view: GraphView) -> None:
        self._view = view
        self._choose(view)
        options = self.query_one(OptionList)
        for column in COLUMNS:
            options.replace_option_prompt(column.id, self._line(column))
        self.query_one(Static).update(self._about())

    def _column(self) -> Column:
        return COLUMNS[self.query_one(OptionList).highlighted or 0]

    def action_switch(self) -> None:
        """Show the column under the cursor, or hide it."""
        self._take(self._view.switched(self._column().id, self._shown()))

    def action_sort(self) -> None:
        """Sort by the column under the cursor; by the bar means by the norm, and a shape sorts nothing."""
        column = self._column()
        if column.id == "bar" or column.sorts:
            self._take(self._view.sorted("norm" if column.id == "bar" else column.id))
        else:
            self.query_one(Static).update(Text(f"a {column.id} sorts nothing: s works on the others"))

    def action_automatic(self) -> None:
        """Let the columns follow from the room again."""
        self._take(GraphView(None, self._view.order))

    def action_move(self, direction: str) -> None:
        """Move in the list."""
        getattr(self.query_one(OptionList), f"action_cursor_{direction}")()

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)
