"""Two backwards side by side: the norms that come to each node, and where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable

from gradscope.inspect.diagnosis.flow.backward_comparison import NodePair, first_difference
from gradscope_tui.widgets.norm_columns import NormScale, norm_columns

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord

__all__ = ["ComparisonScreen"]

_BAR = 12
"""Cells of a bar."""

_FAR = 10.0
"""By what norms must differ for their ratio to be set off."""


class ComparisonScreen(ModalScreen[int]):
    """Shows the nodes of two backwards beside each other; ends with the node to go to, -1 for none.

    Parameters
    ----------
    pairs : sequence of NodePair
        The left ones are those of the backward that is shown.
    left, right : str
        What the two are called.
    scale : NormScale
        What the bars stand for.
    """

    BINDINGS = [
        Binding("escape,q,v", "dismiss(-1)", "Close", show=False),
        Binding("j", "cursor('down')", "Down", show=False),
        Binding("k", "cursor('up')", "Up", show=False),
        Binding("ctrl+d", "cursor('page_down')", "Page down", show=False),
        Binding("ctrl+u", "cursor('page_up')", "Page up", show=False),
        Binding("g,home", "go(0)", "First", show=False),
        Binding("G,end", "go(-1)", "Last", show=False),
        Binding("n", "difference(1)", "Next difference", show=False),
        Binding("N", "difference(-1)", "Difference before", show=False),
    ]

    def __init__(self, pairs: Sequence[NodePair], left: str, right: str, scale: NormScale) -> None:
        super().__init__()
        self._pairs, self._titles, self._scale = pairs, (left, right), scale

    def compose(self) -> ComposeResult:
        """Lay out the table."""
        with Vertical(id="comparison") as box:
            box.border_title = Text(" and ".join(self._titles))
            box.border_subtitle = Text("n N next difference · Enter goes to the node · Esc closes")
            yield DataTable(cursor_type="row", zebra_stripes=False)

    def on_mount(self) -> None:
        """Fill it, and go to the first difference."""
        table, (left, right) = self.query_one(DataTable), self._titles
        table.add_columns("", "#", "operator", "where", left, "", right, "", "right/left")
        first = first_difference(self._pairs)
        for place, pair in enumerate(self._pairs):
            table.add_row(*_cells(pair, "▶" if place == first else "≠" if pair.differs else "", self._scale))
        table.move_cursor(row=max(0, first))
        table.focus()

    def action_cursor(self, direction: str) -> None:
        """Move the cursor."""
        getattr(self.query_one(DataTable), f"action_{direction if 'page' in direction else 'cursor_' + direction}")()

    def action_go(self, row: int) -> None:
        """Go to the first or the last row."""
        self.query_one(DataTable).move_cursor(row=row % max(1, len(self._pairs)))

    def action_difference(self, step: int) -> None:
        """Go to the next pair that differs, or to the one before."""
        table = self.query_one(DataTable)
        here = table.cursor_row
        places = range(here + 1, len(self._pairs)) if step > 0 else range(here - 1, -1, -1)
        table.move_cursor(row=next((place for place in places if self._pairs[place].differs), here))

    @on(DataTable.RowSelected)
    def _chosen(self, event: DataTable.RowSelected) -> None:
        left = self._pairs[event.cursor_row].left
        self.dismiss(-1 if left is None else left.index)


def _cells(pair: NodePair, sign: str, scale: NormScale) -> list[Text]:
    node = pair.node
    ratio = "" if pair.ratio is None else f"×{pair.ratio:.3g}"
    far = pair.ratio is not None and not 1 / _FAR < abs(pair.ratio) < _FAR
    cells = [Text(sign, "bold"), Text(str(node.index), justify="right"), Text(node.operator, "bold")]
    cells += [Text(node.parameter or node.module), *_norm_cells(pair.left, scale), *_norm_cells(pair.right, scale)]
    return [*cells, Text(ratio, "bold" if far else "dim", justify="right")]


def _norm_cells(node: NodeRecord | None, scale: NormScale) -> list[Text]:
    """Return the norm of what comes to a node, and a bar."""
    if node is None:
        return [Text("no node", "bold"), Text("")]
    (norm, color), (bar, _), _ = norm_columns(node.norm, None, _BAR, scale)
    return [Text(norm, "bold" if color else "", justify="right"), Text(bar.strip())]
