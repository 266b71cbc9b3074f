"""A diagram drawn in cells: boxes on layers, arrows that turn in the gaps between them, and a number at each head.

Layers, their order and the columns of boxes are those of the layered drawing that pictures of graphs have; here the
arrows get tracks of their own between two layers, as wires do in a channel, so that each can be followed.

References
----------
A. Hashimoto and J. Stevens, Wire Routing by Optimizing Channel Assignment within Large Apertures, 1971.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from gradscope.inspect.graphs.formats.graph_layout import Layout, lay_out

__all__ = ["Arrow", "Cell", "Drawing", "Spot", "draw", "tracks"]

LABEL = 8
"""Cells of a number behind the head of an arrow."""

_ACROSS, _DOWN = 8.0, 16.0
"""Pixels of a cell: the layered drawing counts in pixels."""

_NEAR = 3
"""Columns by which the ends of a line may differ for it to be drawn straight."""

_UP, _RIGHT, _BELOW, _LEFT = 1, 2, 4, 8
_LINES = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
"""What stands in a cell from whose middle lines go these ways."""


class Arrow(NamedTuple):
    """An arrow from box to box.

    Parameters
    ----------
    source, target : int
        Places of the boxes.
    label : str
        What stands at its head, where there is room.
    color : str
        In which color of a pane it is drawn.
    """

    source: int
    target: int
    label: str = ""
    color: str = ""


class Cell(NamedTuple):
    """A sign at a column, and the color of a pane in which it is written."""

    text: str
    color: str


class Spot(NamedTuple):
    """Where a box stands: its first column and row, its columns and rows."""

    x: int
    y: int
    width: int
    height: int


@dataclass(slots=True)
class Drawing:
    """A drawing in cells.

    Parameters
    ----------
    spots : list of Spot
        Where each box stands; what is in it, whoever shows the drawing writes.
    layers : list of int
        On which layer each box stands, from 0 at the top.
    lines : dict of int to dict of int to Cell
        By row and column, the arrows and their labels.
    width, height : int
        Its columns and rows.
    """

    spots: list[Spot] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    lines: dict[int, dict[int, Cell]] = field(default_factory=dict)
    width: int = 0
    height: int = 0


class _Piece(NamedTuple):
    """A part of an arrow in one gap: down from one column, along a track, and on from another."""

    arrow: int
    start: int
    stop: int


def draw(widths: Sequence[int], height: int, arrows: Sequence[Arrow]) -> Drawing:
    """Draw boxes and arrows.

    Parameters
    ----------
    widths : sequence of int
        Columns of each box; one with several arrows into it becomes as wide as their labels need.
    height : int
        Rows of every box.
    arrows : sequence of Arrow
        One that closes a cycle goes up along the right.

    Examples
    --------
    >>> drawing = draw([4, 4], 1, [Arrow(0, 1, "0.5")])
    >>> drawing.spots, drawing.height
    ([Spot(x=1, y=0, width=4, height=1), Spot(x=1, y=3, width=4, height=1)], 4)
    >>> [(row, "".join(cell.text for cell in cells.values())) for row, cells in sorted(drawing.lines.items())]
    [(1, '│'), (2, '▼0.5')]
    """
    if not widths:
        return Drawing()
    arriving = [sum(1 for arrow in arrows if arrow.target == box) for box in range(len(widths))]
    wide = [max(width, _room_for(count)) for width, count in zip(widths, arriving)]
    sizes = [(width * _ACROSS, height * _DOWN) for width in wide]
    layout = lay_out(sizes, [(arrow.source, arrow.target) for arrow in arrows], margin=_ACROSS)
    return _Channels(layout, wide, height, arrows).drawing


_MOST_LABELLED = 6


def _room_for(arriving: int) -> int:
    """Return the columns of a box that labels of so many arrows need; beyond a few they go without."""
    return arriving * (LABEL + 2) if 1 < arriving <= _MOST_LABELLED else 0


class _Channels:
    """Routes the arrows of a layered drawing through the gaps between its layers."""

    def __init__(self, layout: Layout, widths: Sequence[int], height: int, arrows: Sequence[Arrow]) -> None:
        self._arrows = arrows
        rows = sorted({y for _, y in layout.boxes})
        layers = [rows.index(y) for _, y in layout.boxes]
        lefts = [round(x / _ACROSS - width / 2) for (x, _), width in zip(layout.boxes, widths)]
        self._columns = [_bends(route, layers, arrow) for route, arrow in zip(layout.routes, arrows)]
        self._leaving = Counter(arrow.source for arrow in arrows)
        ports = self._ports(lefts, widths)
        passing = [column + 1 for columns in self._columns for column in columns]
        edge = max(*(left + width for left, width in zip(lefts, widths)), *passing, 0) + 2
        gaps: dict[int, list[_Piece]] = defaultdict(list)
        self._rising: list[tuple[int, int]] = []
        for number, arrow in enumerate(arrows):
            start, stop = ports[number]
            if layers[arrow.target] > layers[arrow.source]:
                turns = [start, *self._columns[number], stop]
                for step, (here, there) in enumerate(pairwise(turns)):
                    gaps[layers[arrow.source] + step].append(_Piece(number, here, there))
            else:
                gaps[layers[arrow.source]].append(_Piece(number, start, edge))
                gaps[layers[arrow.target] - 1].append(_Piece(number, edge, stop))
                self._rising.append((number, edge))
                edge += 2
        self.drawing = Drawing(layers=layers, width=edge)
        self._place(gaps, lefts, widths, height, len(rows))

    def _ports(self, lefts: Sequence[int], widths: Sequence[int]) -> list[tuple[int, int]]:
        """Return the column at which each arrow leaves and arrives: side by side, in the order of their other ends."""
        found = [[0, 0] for _ in self._arrows]
        for end in (0, 1):
            at: dict[int, list[int]] = defaultdict(list)
            for number, arrow in enumerate(self._arrows):
                at[arrow.target if end else arrow.source].append(number)
            for box, numbers in at.items():
                numbers.sort(key=lambda number: self._other_end(number, end, lefts, widths))
                share = widths[box] / len(numbers)
                for place, number in enumerate(numbers):
                    # The head and the label to its right stand in the middle of their share.
                    found[number][end] = lefts[box] + int(place * share + max(0.0, (share - LABEL - 1) / 2))
        for number, (start, stop) in enumerate(found):  # between boxes one below the other a line need not turn
            box = self._arrows[number].source
            alone = abs(start - stop) <= _NEAR and self._leaving[box] == 1
            if alone and not self._columns[number] and lefts[box] <= stop < lefts[box] + widths[box]:
                found[number][0] = stop
        return [(start, stop) for start, stop in found]

    def _other_end(self, number: int, end: int, lefts: Sequence[int], widths: Sequence[int]) -> float:
        arrow, columns = self._arrows[number], self._columns[number]
        if columns:
            return columns[-1] if end else columns[0]
        box = arrow.source if end else arrow.target
        return lefts[box] + widths[box] / 2

    def _place(
        self,
        gaps: Mapping[int, Sequence[_Piece]],
        lefts: Sequence[int],
        widths: Sequence[int],
        height: int,
        layers: int,
    ) -> None:
        """Give every layer and every gap its rows, and draw."""
        assigned = {gap: tracks(pieces, [self._arrows[p.arrow].source for p in pieces]) for gap, pieces in gaps.items()}
        drawing, row = self.drawing, 0
        tops: dict[int, int] = {}
        for gap in range(-1, layers):
            tops[gap] = row + (height if gap >= 0 else 0)
            count = max(assigned.get(gap, ()), default=-1) + 1
            last = gap == layers - 1
            row = tops[gap] + (max(2, count + 1) if gap in gaps else 0 if last or gap < 0 else 2)
        drawing.height = row
        floors = {gap: tops[gap + 1] - height - 1 for gap in range(-1, layers - 1)}
        drawing.spots = [
            Spot(left, tops[layer] - height, width, height) for left, width, layer in zip(lefts, widths, drawing.layers)
        ]
        ways: dict[tuple[int, int], int] = defaultdict(int)
        colors: dict[tuple[int, int], str] = {}
        rising = dict(self._rising)
        turned: dict[int, list[int]] = defaultdict(list)
        for gap, pieces in gaps.items():
            for piece, track in zip(pieces, assigned[gap]):
                at = tops[gap] + track
                turned[piece.arrow].append(at)
                self._run(ways, colors, piece, at, tops[gap], floors.get(gap, at), rising.get(piece.arrow))
        for gap, pieces in gaps.items():
            for piece in pieces:
                arrow = self._arrows[piece.arrow]
                if piece.arrow not in rising and drawing.layers[arrow.target] > gap + 1:
                    _vertical(ways, colors, piece.stop, tops[gap + 1] - height, tops[gap + 1] - 1, arrow.color)
        for number, column in self._rising:
            _vertical(ways, colors, column, min(turned[number]), max(turned[number]), self._arrows[number].color, 1)
        for (y, x), way in ways.items():
            drawing.lines.setdefault(y, {})[x] = Cell(_LINES[way], colors[y, x])
        self._heads(gaps, floors)

    def _run(
        self,
        ways: dict[tuple[int, int], int],
        colors: dict[tuple[int, int], str],
        piece: _Piece,
        at: int,
        top: int,
        floor: int,
        rising: int | None,
    ) -> None:
        """Draw a piece: down to its track, along it, and down to the next layer; or to where it rises."""
        color = self._arrows[piece.arrow].color
        if piece.start != rising:
            _vertical(ways, colors, piece.start, top, at - 1, color)
            ways[at, piece.start] |= _UP
        if piece.stop != rising:
            ways[at, piece.stop] |= _BELOW
            _vertical(ways, colors, piece.stop, at + 1, floor, color)
        low, high = sorted((piece.start, piece.stop))
        for x in range(low, high):
            ways[at, x] |= _RIGHT
            ways[at, x + 1] |= _LEFT
        for x in range(low, high + 1):
            colors[at, x] = color

    def _heads(self, gaps: Mapping[int, Sequence[_Piece]], floors: Mapping[int, int]) -> None:
        """Draw the heads of the arrows, and their labels where the next arrow leaves room for them."""
        ends = [
            (floors[gap], piece.stop, self._arrows[piece.arrow])
            for gap, pieces in gaps.items()
            for piece in pieces
            if self.drawing.layers[self._arrows[piece.arrow].target] == gap + 1
        ]
        for y, x, arrow in ends:
            self.drawing.lines.setdefault(y, {})[x] = Cell("▼", arrow.color)
        for y, x, arrow in ends:
            self._label(y, x + 1, arrow)

    def _label(self, y: int, x: int, arrow: Arrow) -> None:
        row = self.drawing.lines[y]
        if arrow.label and not any(column in row for column in range(x, x + len(arrow.label))):
            row.update((x + place, Cell(sign, arrow.color)) for place, sign in enumerate(arrow.label))
            self.drawing.width = max(self.drawing.width, x + len(arrow.label) + 1)


def _bends(route: Sequence[tuple[float, float]], layers: Sequence[int], arrow: Arrow) -> list[int]:
    """Return the column at which an arrow passes each layer between its boxes."""
    passed = layers[arrow.target] - layers[arrow.source] - 1
    if passed <= 0:
        return []
    if len(route) == 2:  # with too many bends the line goes straight
        return [round(route[1][0] / _ACROSS)] * passed
    return [round(x / _ACROSS) for x, _ in route[1:-1:2]]


def _vertical(
    ways: dict[tuple[int, int], int],
    colors: dict[tuple[int, int], str],
    x: int,
    first: int,
    last: int,
    color: str,
    inner: int = 0,
) -> None:
    """Draw a line down a column; with `inner`, its ends are joined to what runs to the side there."""
    for y in range(first, last + 1):
        up = _UP if not inner or y > first else 0
        below = _BELOW if not inner or y < last else 0
        ways[y, x] |= up | below
        colors[y, x] = color


def tracks(pieces: Sequence[_Piece], sources: Sequence[int]) -> list[int]:
    """Return for each piece of an arrow in a gap the row of the gap on which it turns.

    Parameters
    ----------
    pieces : sequence of _Piece
        All of one gap.
    sources : sequence of int
        The box that each comes from: two of one box may share a row.

    Returns
    -------
    list of int
        From 0 at the top. A piece that leaves a column stands above one that comes to it, so that they do not run over
        each other, unless that closes a circle.
    """
    order = list(_from_above(pieces))
    rows: dict[int, int] = {}
    taken: list[list[tuple[int, int, int]]] = []
    for number in order:
        piece = pieces[number]
        low, high = sorted((piece.start, piece.stop))
        if low == high:
            rows[number] = 0
            continue
        above = [rows[other] + 1 for other in rows if other != number and pieces[other].start == piece.stop]
        row = max(above, default=0)
        while row < len(taken) and any(
            low <= right and left <= high and source != sources[number] for left, right, source in taken[row]
        ):
            row += 1
        while row >= len(taken):
            taken.append([])
        taken[row].append((low, high, sources[number]))
        rows[number] = row
    return [rows[number] for number in range(len(pieces))]


def _from_above(pieces: Sequence[_Piece]) -> Iterator[int]:
    """Yield the pieces so that each comes after those that leave the column to which it goes, as far as that can be."""
    leaving: dict[int, list[int]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        leaving[piece.start].append(number)
    seen: set[int] = set()
    for first in sorted(range(len(pieces)), key=lambda n: (min(pieces[n][1:]), n)):
        stack = [(first, False)]
        while stack:
            number, ready = stack.pop()
            if ready:
                yield number
            elif number not in seen:
                seen.add(number)
                stack.append((number, True))
                stack += [(other, False) for other in leaving[pieces[number].stop] if other not in seen]
