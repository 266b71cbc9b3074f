"""Two backwards side by side, by the norms that come to each node, or two nodes, in numbers: and where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable

from gradscope.inspect.diagnosis.flow.backward_comparison import NodePair, ratio_text
from gradscope.inspect.diagnosis.flow.node_comparison import FactPair, fact_pairs, fact_text, node_title
from gradscope_tui.widgets.norm_columns import NormScale, norm_columns

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord

__all__ = ["ComparisonScreen"]

_BAR = 12
"""Cells of a bar."""

_FAR = 10.0
"""By what norms must differ for their ratio to be set off."""


class Row(NamedTuple):
    """A line of a comparison.

    Parameters
    ----------
    cells : sequence of Text
        What stands in it, behind the sign of a difference.
    differs : bool
        Whether the two sides differ in it.
    node : int
        The node that Enter goes to; -1 for none.
    """

    cells: Sequence[Text]
    differs: bool
    node: int


class ComparisonScreen(ModalScreen[int]):
    """Shows two things beside each other, line by line, the first difference marked; ends with the node to go to.

    Parameters
    ----------
    titles : (str, str)
        What the two are called.
    columns : sequence of str
        What stands above the cells of a row.
    rows : sequence of Row
        The lines.
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

    def __init__(self, titles: tuple[str, str], columns: Sequence[str], rows: Sequence[Row]) -> None:
        super().__init__()
        self._titles, self._columns, self._rows = titles, columns, rows

    @classmethod
    def of_backwards(cls, pairs: Sequence[NodePair], left: str, right: str, scale: NormScale, about: str = "") -> Self:
        """Show the nodes of two backwards: the left ones are those of the backward that is shown.

        Parameters
        ----------
        left, right : str
            What the two are called.
        scale : NormScale
            What the bars stand for.
        about : str
            Why the right one is this one.
        """
        rows = [
            Row(_node_cells(pair, scale), pair.differs, -1 if pair.left is None else pair.left.index) for pair in pairs
        ]
        titles = left, f"{right}, {about}" if about else right
        return cls(titles, ("#", "operator", "where", left, "", right, "", "right/left"), rows)

    @classmethod
    def of_nodes(cls, left: NodeRecord, right: NodeRecord) -> Self:
        """Show two nodes of the backward that is shown; Enter goes to the right one."""
        titles = node_title(left), node_title(right)
        pairs = fact_pairs(left, right)
        rows = [
            Row(_fact_cells(pair, repeated), pair.differs, right.index)
            for pair, repeated in zip(pairs, _repeated([pair.tensor for pair in pairs]))
        ]
        return cls(titles, ("tensor", "", *titles, "right/left"), rows)

    def compose(self) -> ComposeResult:
        """Lay out the table."""
        with Vertical(id="comparison") as box:
            box.border_title = Text(" and ".join(self._titles))
            box.border_subtitle = Text("n N next difference · Enter goes to the node · Esc closes")
            yield DataTable(cursor_type="row", zebra_stripes=False)

    def on_mount(self) -> None:
        """Fill it, and go to the first difference."""
        table = self.query_one(DataTable)
        table.add_columns("", *self._columns)
        first = next((place for place, row in enumerate(self._rows) if row.differs), -1)
        for place, row in enumerate(self._rows):
            sign = "▶" if place == first else "≠" if row.differs else ""
            table.add_row(Text(sign, "bold"), *row.cells)
        table.move_cursor(row=max(0, first))
        table.focus()

    def action_cursor(self, direction: str) -> None:
        """Move the cursor."""
        getattr(self.query_one(DataTable), f"action_{direction if 'page' in direction else 'cursor_' + direction}")()

    def action_go(self, row: int) -> None:
        """Go to the first or the last row."""
        self.query_one(DataTable).move_cursor(row=row % max(1, len(self._rows)))

    def action_difference(self, step: int) -> None:
        """Go to the next pair that differs, or to the one before."""
        table = self.query_one(DataTable)
        here = table.cursor_row
        places = range(here + 1, len(self._rows)) if step > 0 else range(here - 1, -1, -1)
        table.move_cursor(row=next((place for place in places if self._rows[place].differs), here))

    @on(DataTable.RowSelected)
    def _chosen(self, event: DataTable.RowSelected) -> None:
        self.dismiss(self._rows[event.cursor_row].node)


def _node_cells(pair: NodePair, scale: NormScale) -> list[Text]:
    node = pair.node
    cells = [Text(str(node.index), justify="right"), Text(node.operator, "bold"), Text(node.parameter or node.module)]
    cells += [*_norm_cells(pair.left, scale), *_norm_cells(pair.right, scale)]
    return [*cells, _ratio_cell(pair.ratio)]


def _fact_cells(pair: FactPair, repeated: bool) -> list[Text]:
    facts = [Text(fact_text(fact), "" if fact is not None else "dim", justify="right") for fact in pair[2:]]
    return [Text("" if repeated else pair.tensor, "bold"), Text(pair.name), *facts, _ratio_cell(pair.ratio)]


def _repeated(words: Sequence[str]) -> list[bool]:
    """Return for each word whether it is the one before."""
    return [place > 0 and words[place - 1] == word for place, word in enumerate(words)]


def _ratio_cell(ratio: float | None) -> Text:
    far = ratio is not None and not 1 / _FAR < abs(ratio) < _FAR
    return Text("" if ratio is None else f"×{ratio_text(ratio)}", "bold" if far else "dim", justify="right")


def _norm_cells(node: NodeRecord | None, scale: NormScale) -> list[Text]:
    """Return the norm of what comes to a node, and a bar."""
    if node is None:
        return [Text("no node", "bold"), Text("")]
    (norm, color), (bar, _), _ = norm_columns(node.norm, None, _BAR, scale)
    return [Text(norm, "bold" if color else "", justify="right"), Text(bar.strip())]
