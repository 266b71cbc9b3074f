"""The columns of the graph pane: which there are, which have room, and by which the rows can be put in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradscope_tui.widgets.norm_columns import NORM_WIDTH, RATIO_WIDTH

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord
    from gradscope_tui.widgets.graph_rows import Outline

__all__ = ["COLUMNS", "Column", "GraphView", "column_widths", "norm_before", "ordered"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the graph pane.

    Parameters
    ----------
    id : str
        How it is called in the settings.
    width : int
        Cells that it takes, with the one before it; the bar grows where there is room.
    since : int
        Cells of the pane from which on it is there by itself.
    help : str
        What it shows, in a few words.
    sorts : bool
        Whether rows can be put in its order.
    """

    id: str
    width: int
    since: int
    help: str
    sorts: bool = True


COLUMNS: tuple[Column, ...] = (
    Column("shape", 13, 72, "shape of the gradient that comes in", sorts=False),
    Column("norm", NORM_WIDTH, 0, "2-norm of the gradient that comes in"),
    Column("bar", 7, 60, "that norm on a logarithmic scale", sorts=False),
    Column("ratio", RATIO_WIDTH, 60, "what it has been multiplied by since the node it comes from"),
    Column("time", 9, 88, "how long the node ran, by the clock of the host"),
)
"""The columns, in the order in which they stand."""

_BAR_SINCE = next(column.since for column in COLUMNS if column.id == "bar")
_LABEL = 30
"""Cells that lanes, operator and module keep, whatever columns have been chosen."""

_MOST_BAR = 24


@dataclass(frozen=True, slots=True)
class GraphView:
    """How the rows of the graph are shown.

    Parameters
    ----------
    columns : tuple of str
        The columns that somebody has chosen; None where they follow from the room.
    order : str
        The column by which rows are sorted, with ``-`` before it for the smallest first; empty for the engine's order.
    """

    columns: tuple[str, ...] | None = None
    order: str = ""

    def switched(self, column: str, shown: Sequence[str]) -> GraphView:
        """Return the view with a column more, or less than those that are shown.

        Examples
        --------
        >>> GraphView().switched("bar", ["norm", "bar"]), GraphView(("norm",)).switched("time", ["norm"]).columns
        (GraphView(columns=('norm',), order=''), ('norm', 'time'))
        """
        return GraphView(tuple(c.id for c in COLUMNS if (c.id in shown) != (c.id == column)), self.order)

    def sorted(self, column: str) -> GraphView:
        """Return the view sorted by a column: the largest first, then the smallest, then as the engine runs.

        Examples
        --------
        >>> [GraphView(order=order).sorted("norm").order for order in ("", "norm", "-norm", "time")]
        ['norm', '-norm', '', 'norm']
        """
        after = {column: f"-{column}", f"-{column}": ""}
        return GraphView(self.columns, after.get(self.order, column))


def column_widths(width: int, chosen: Sequence[str] | None = None) -> dict[str, int]:
    """Return the columns that are shown, with the cells of each.

    Parameters
    ----------
    width : int
        Cells of a row.
    chosen : sequence of str, optional
        Columns that somebody has chosen; of these the last are left out where they have no room.

    Examples
    --------
    >>> column_widths(40), column_widths(64), column_widths(50, ["norm", "time", "bar"])
    ({'norm': 7}, {'norm': 7, 'bar': 8, 'ratio': 7}, {'norm': 7, 'bar': 7})
    """
    if chosen is None:
        shown = [column for column in COLUMNS if width >= column.since]
    else:
        shown = [column for column in COLUMNS if column.id in chosen]
        while shown and width - sum(column.width for column in shown) < _LABEL:
            shown.pop()
    widths = {column.id: column.width for column in shown}
    if "bar" in widths:
        spare = width - _BAR_SINCE - sum(widths.get(extra, 0) for extra in ("shape", "time"))
        widths["bar"] += min(_MOST_BAR - widths["bar"] + 1, max(0, spare) // 3)
    return widths


def ordered(nodes: Sequence[NodeRecord], outline: Outline, order: str) -> list[int]:
    """Return the indices of nodes in the order of a column; nodes without a value come last, NaN first.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        Of one backward.
    outline : Outline
        Tells for the ratio where each gradient comes from.
    order : str
        As `GraphView.order`.
    """
    column = order.removeprefix("-")
    values = [_value(node, nodes, outline, column) for node in nodes]
    known = [index for index, value in enumerate(values) if value is not None]
    unknown = [index for index, value in enumerate(values) if value is None]

    def place(index: int) -> tuple[bool, float]:
        value = values[index]
        assert value is not None
        return not math.isnan(value), 0.0 if math.isnan(value) else value if order.startswith("-") else -value

    return sorted(known, key=place) + unknown


def _value(node: NodeRecord, nodes: Sequence[NodeRecord], outline: Outline, column: str) -> float | None:
    if column == "time":
        return node.duration
    if column == "norm" or node.norm is None:
        return node.norm
    before = norm_before(node.index, nodes, outline)
    return node.norm / before if before else None


def norm_before(index: int, nodes: Sequence[NodeRecord], outline: Outline) -> float | None:
    """Return the norm at the node that a gradient came from: of several the largest, which makes most of their sum."""
    sources = outline.sources[index] if 0 <= index < len(outline.sources) else ()
    norms = [norm for source in sources if (norm := nodes[source].norm) is not None]
    return max(norms, key=lambda norm: math.inf if math.isnan(norm) else norm, default=None)
