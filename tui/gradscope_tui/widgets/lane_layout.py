"""The lanes of a graph in execution order, drawn as ``git log --graph`` draws commits.

One row is one node. Every node that has been reached and has not run yet owns one lane. A row gives the lane of its
node to the furthest of the node's targets, so that the trunk of a network runs straight down, and opens or joins lanes
to the right and left for the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["NOWHERE", "LaneRow", "draw_row", "lane_cells", "lay_out"]

NOWHERE = -1
"""The column of a row that is no node: lanes run past it."""

MAX_LANES = 12
"""Lanes that are ever drawn; further ones are only counted."""


class LaneRow(NamedTuple):
    """One row of the lanes.

    Parameters
    ----------
    column : int
        Lane of the node; `NOWHERE` for a row that is none.
    above, below : int
        Bit masks of the drawn lanes that are occupied above and below the row.
    targets : tuple of int
        Lanes to which the node is connected sideways, without its own.
    hidden : int
        How many lanes are open below the row beyond `MAX_LANES`.
    """

    column: int
    above: int
    below: int
    targets: tuple[int, ...]
    hidden: int


class _Lanes:
    """The lanes in use, and the lowest free one."""

    def __init__(self) -> None:
        self.mask = 0
        self.hidden = 0
        self._free: list[int] = []
        self._width = 0

    def take(self) -> int:
        if self._free:
            column = heapq.heappop(self._free)
        else:
            column = self._width
            self._width += 1
        if column < MAX_LANES:
            self.mask |= 1 << column
        else:
            self.hidden += 1
        return column

    def release(self, column: int) -> None:
        heapq.heappush(self._free, column)
        if column < MAX_LANES:
            self.mask &= ~(1 << column)
        else:
            self.hidden -= 1


def lay_out(graph: Iterable[tuple[int, Sequence[int | None]]]) -> list[LaneRow]:
    """Assign lanes to a graph.

    Parameters
    ----------
    graph : iterable of (int, sequence of int or None)
        For each node in execution order: its key, and the keys of the nodes its edges lead to.

    Returns
    -------
    list of LaneRow
        One row a node. Edges to ``None``, to nodes outside `graph`, or backwards are not drawn.

    Examples
    --------
    >>> for row in lay_out([(1, [2, 3]), (2, []), (3, [])]):
    ...     print(draw_row(row, "●", 2))
    ●─╮
    │ ●
    ●
    """
    nodes = list(graph)
    position = {key: index for index, (key, _) in enumerate(nodes)}
    lanes = _Lanes()
    lane_of: dict[int, int] = {}
    rows: list[LaneRow] = []
    for index, (key, edges) in enumerate(nodes):
        above = lanes.mask
        column = lane_of.pop(key, -1)
        if column < 0:
            column = lanes.take()
        targets = [t for t in edges if t is not None and position.get(t, -1) > index]
        if len(targets) > 1:
            targets = sorted(set(targets), key=position.__getitem__, reverse=True)
        sideways = []
        heir = None
        for target in targets:
            lane = lane_of.get(target)
            if lane is not None:
                sideways.append(lane)
            elif heir is None:
                heir = target
            else:
                lane_of[target] = lane = lanes.take()
                sideways.append(lane)
        if heir is None:
            lanes.release(column)
        else:
            lane_of[heir] = column
        rows.append(LaneRow(column, above, lanes.mask, tuple(sideways), lanes.hidden))
    return rows


def draw_row(row: LaneRow, glyph: str, lanes: int) -> str:
    """Draw one row of the lanes: the cells of `lane_cells`, without trailing blanks."""
    return "".join(text for text, _ in lane_cells(row, glyph, lanes)).rstrip()


def lane_cells(row: LaneRow, glyph: str, lanes: int) -> list[tuple[str, int]]:
    """Draw one row of the lanes, cell by cell.

    Parameters
    ----------
    row : LaneRow
        The row, from `lay_out`.
    glyph : str
        One cell wide picture of the node.
    lanes : int
        How many lanes to draw; what lies beyond is summed up as ``+n`` by the caller.

    Returns
    -------
    list of (str, int)
        ``2 * lanes`` cells, each with the lane whose line it is part of. A node beyond the last lane stands there,
        after ``…``.

    Examples
    --------
    >>> lane_cells(LaneRow(0, 0b10, 0b11, (1,), 0), "●", 2)
    [('●', 0), ('─', 0), ('┤', 1), (' ', 1)]
    """
    column = min(row.column, lanes - 1)
    drawn = [t for t in row.targets if t < lanes and t != column]
    low, high = min([column, *drawn]), max([column, *row.targets])
    cells = []
    for lane in range(lanes):
        owner = lane
        if lane == column:
            cell = glyph
        elif lane in drawn:
            cell = _joint(lane, low, high, bool(row.above >> lane & 1))
        elif row.above >> lane & 1 and row.below >> lane & 1:
            cell = "│"
        elif low < lane < high:
            cell, owner = "─", column
        else:
            cell = " "
        gap = "─" if low <= lane < high else " "
        if lane == column and row.column > column:
            cell, gap = "…", glyph
        cells += [(cell, owner), (gap, column if gap == "─" else lane)]
    return cells


def _joint(lane: int, low: int, high: int, joins: bool) -> str:
    """Return the picture of a lane where a sideways edge enters it: a lane that was there (`joins`) or a new one."""
    if lane == high:
        return "┤" if joins else "╮"
    if lane == low:
        return "├" if joins else "╭"
    return "┼" if joins else "┬"
