"""A layered drawing of a directed graph: where each box stands, and how each arrow runs.

The steps are those of Sugiyama's method: nodes go onto layers so that arrows point down; an arrow over several layers
gets a bend on each; the order on each layer is improved until few arrows cross; and boxes move as close to the mean of
their neighbours as their order allows.

References
----------
K. Sugiyama, S. Tagawa and M. Toda, Methods for Visual Understanding of Hierarchical System Structures, 1981.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Layout", "lay_out"]

Point = tuple[float, float]

_GAP, _LANE, _LAYER_GAP = 22.0, 12.0, 38.0
_MOST_BENDS = 30_000
_SWEEPS, _FEW_SWEEPS = 12, 2
_MOST_SWEPT = 12_000  # boxes and bends; the order of more of them is improved less thoroughly


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing, in pixels; y grows downwards.

    Attributes
    ----------
    boxes : tuple of (float, float)
        The centre of each box.
    routes : tuple of tuple of (float, float)
        The points of each arrow, from the lower side of a box to the upper side of another. Between two points that
        lie above each other it is a line, else a curve that leaves and arrives vertically.
    curved : bool
        The points of a route are those of cubic Bézier curves instead: on the curve, two to steer it, on it again.
    """

    boxes: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    curved: bool = False


def lay_out(sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]], margin: float = 12.0) -> Layout:
    """Return a drawing of a graph.

    Parameters
    ----------
    sizes : sequence of (float, float)
        Width and height of each box.
    arrows : sequence of (int, int)
        From box to box, by their place in `sizes`. An arrow that closes a cycle is drawn upwards.
    margin : float
        Around everything.

    Examples
    --------
    >>> layout = lay_out([(40, 20), (40, 20)], [(0, 1)])
    >>> layout.boxes
    ((32.0, 22.0), (32.0, 80.0))
    >>> layout.routes
    (((32.0, 32.0), (32.0, 70.0)),)
    """
    if not sizes:
        return Layout((), (), 2 * margin, 2 * margin)
    forward = _without_cycles(len(sizes), arrows)
    layers = _layers(len(sizes), forward)
    rows = _Rows(sizes, layers, forward)
    rows.order()
    x = rows.place()
    return _draw(rows, x, sizes, layers, arrows, margin)


# --- layers ---


def _without_cycles(count: int, arrows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the arrows, those that close a cycle the other way round, those from a box to itself left out."""
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        targets[source].append(target)
    entered, left = [False] * count, [False] * count
    turned = set()
    for start in range(count):
        stack = [] if entered[start] else [(start, iter(targets[start]))]
        entered[start] = True
        while stack:
            node, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                left[node] = True
                stack.pop()
            elif not entered[child]:
                entered[child] = True
                stack.append((child, iter(targets[child])))
            elif not left[child]:
                turned.add((node, child))
    return [(t, s) if (s, t) in turned else (s, t) for s, t in arrows if s != t]


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each node: the longest path to it, and for a source the layer above what it leads to."""
    targets: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for source, target in arrows:
        targets[source].append(target)
        waiting[target] += 1
    sources = [node for node in range(count) if not waiting[node]]
    layers = [0] * count
    order = list(sources)
    for node in order:  # the list grows as it is read
        for child in targets[node]:
            layers[child] = max(layers[child], layers[node] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                order.append(child)
    for node in sources:
        if targets[node]:
            layers[node] = min(layers[child] for child in targets[node]) - 1
    return layers


class _Rows:
    """The layers with their boxes and bends, in order.

    Numbers below ``len(sizes)`` are boxes, others bends. All long arrows to one box share their bends, so that they run
    together.
    """

    def __init__(self, sizes: Sequence[tuple[float, float]], layers: list[int], arrows: list[tuple[int, int]]) -> None:
        self.boxes = len(sizes)
        self.widths = [width for width, _ in sizes]
        self.layer = list(layers)
        self.bends: dict[tuple[int, int], int] = {}
        self._straight = _too_long(layers, arrows)
        segments: dict[tuple[int, int], None] = {}
        for source, target in arrows:
            route = self.route(source, target, make=True)
            if len(route) > 2 or layers[target] == layers[source] + 1:
                segments.update(dict.fromkeys(pairwise(route)))
        self.up: list[list[int]] = [[] for _ in self.layer]
        self.down: list[list[int]] = [[] for _ in self.layer]
        for source, target in segments:
            self.down[source].append(target)
            self.up[target].append(source)
        self.weights = [self._weight(node) for node in range(len(self.layer))]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for node in self._first_order():
            self.rows[self.layer[node]].append(node)

    def route(self, source: int, target: int, *, make: bool = False) -> list[int]:
        """Return the numbers on the way of an arrow that points down."""
        route = [source]
        if target not in self._straight:
            for layer in range(self.layer[source] + 1, self.layer[target]):
                bend = self.bends.get((target, layer))
                if bend is None:
                    assert make
                    bend = self.bends[target, layer] = len(self.layer)
                    self.layer.append(layer)
                    self.widths.append(0.0)
                route.append(bend)
        return [*route, target]

    def _weight(self, node: int) -> float:
        """Return how much a number pulls: bends and what leads on a lot, so that the long lines become straight."""
        if node >= self.boxes:
            return 8.0
        return 4.0 if self.down[node] and self.up[node] else 0.5

    def _first_order(self) -> list[int]:
        """Return all numbers depth first, so that what hangs together stands together."""
        seen = [False] * len(self.layer)
        order = []
        starts = sorted((n for n in range(len(self.layer)) if not self.up[n]), key=lambda n: self.layer[n])
        for start in [*starts, *range(len(self.layer))]:
            stack = [start]
            while stack:
                node = stack.pop()
                if not seen[node]:
                    seen[node] = True
                    order.append(node)
                    stack.extend(reversed(self.down[node]))
        return order

    # --- order on each layer ---

    def order(self) -> None:
        """Sort each layer by the mean place of its neighbours, downwards and upwards in turn; keep the best."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS if len(self.layer) < _MOST_SWEPT else _FEW_SWEEPS):
            if not fewest:
                break
            self._sweep(downwards=sweep % 2 == 0)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _sweep(self, *, downwards: bool) -> None:
        neighbours = self.up if downwards else self.down
        place: dict[int, int] = {}
        for row in self.rows if downwards else reversed(self.rows):
            now = {node: i for i, node in enumerate(row)}
            row.sort(key=lambda node: _mean([place[n] for n in neighbours[node]], now[node]))
            place.update((node, i) for i, node in enumerate(row))

    def _crossings(self) -> int:
        total = 0
        for row, below in pairwise(self.rows):
            place = {node: i for i, node in enumerate(below)}
            seen: list[int] = []
            for node in row:
                ends = sorted(place[child] for child in self.down[node])
                total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    # --- place on each layer ---

    def place(self) -> list[float]:
        """Return the x of each number: as near to its neighbours as the order and the widths allow."""
        x = [0.0] * len(self.layer)
        for row in self.rows:
            self._settle(row, [0.0] * len(row), x)
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            for row in self.rows if downwards else reversed(self.rows):
                self._settle(row, [self._wish(node, x, downwards) for node in row], x)
        for row in self.rows:
            self._settle(row, [self._middle((*self.up[node], *self.down[node]), x, node) for node in row], x)
        return x

    def _wish(self, node: int, x: list[float], downwards: bool) -> float:
        near, far = (self.up, self.down) if downwards else (self.down, self.up)
        return self._middle(near[node] or far[node], x, node)

    def _middle(self, neighbours: Sequence[int], x: list[float], node: int) -> float:
        total = sum([self.weights[n] for n in neighbours])
        return sum([x[n] * self.weights[n] for n in neighbours]) / total if total else x[node]

    def _settle(self, row: list[int], wishes: list[float], x: list[float]) -> None:
        """Give a row the places that are nearest to its wishes, by least squares, with the gaps kept.

        With the gaps taken off, the places must not decrease: that is isotonic regression, by pooling adjacent
        violators.
        """
        offsets, offset = [], 0.0
        for i, node in enumerate(row):
            if i:
                before = row[i - 1]
                gap = _GAP if node < self.boxes and before < self.boxes else _LANE
                offset += (self.widths[before] + self.widths[node]) / 2 + gap
            offsets.append(offset)
        pools: list[tuple[float, float, int]] = []  # mean, weight, how many
        for node, wish, offset in zip(row, wishes, offsets):
            mean, weight, count = wish - offset, self.weights[node], 1
            while pools and pools[-1][0] > mean:
                other, heavy, more = pools.pop()
                mean = (mean * weight + other * heavy) / (weight + heavy)
                weight, count = weight + heavy, count + more
            pools.append((mean, weight, count))
        i = 0
        for mean, _, count in pools:
            for _ in range(count):
                x[row[i]] = mean + offsets[i]
                i += 1


def _too_long(layers: list[int], arrows: list[tuple[int, int]]) -> set[int]:
    """Return the boxes whose long arrows are drawn straight, for there would be too many bends."""
    longest: dict[int, int] = {}
    for source, target in arrows:
        longest[target] = max(longest.get(target, 0), layers[target] - layers[source] - 1)
    total, straight = sum(longest.values()), set()
    for target in sorted(longest, key=lambda node: -longest[node]):
        if total <= _MOST_BENDS:
            break
        total -= longest[target]
        straight.add(target)
    return straight


def _mean(values: list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


# --- the drawing ---


def _draw(
    rows: _Rows,
    x: list[float],
    sizes: Sequence[tuple[float, float]],
    layers: list[int],
    arrows: Sequence[tuple[int, int]],
    margin: float,
) -> Layout:
    left = min(x[node] - rows.widths[node] / 2 for node in range(len(x)))
    right = max(x[node] + rows.widths[node] / 2 for node in range(len(x)))
    shift = margin - left
    tops, heights, y = [], [], margin
    for row in rows.rows:
        height = max((sizes[node][1] for node in row if node < rows.boxes), default=0.0)
        tops.append(y)
        heights.append(height)
        y += height + _LAYER_GAP
    centres = tuple(
        (round(x[node] + shift, 1), round(tops[layers[node]] + heights[layers[node]] / 2, 1))
        for node in range(len(sizes))
    )
    leaving, arriving = _ports(arrows, centres, sizes)
    routes = []
    for number, (source, target) in enumerate(arrows):
        start = (leaving[number], round(centres[source][1] + sizes[source][1] / 2, 1))
        end = (arriving[number], round(centres[target][1] - sizes[target][1] / 2, 1))
        points = [start]
        if layers[target] > layers[source] and source != target:
            for node in rows.route(source, target)[1:-1]:
                layer, here = rows.layer[node], round(x[node] + shift, 1)
                points += [(here, round(tops[layer], 1)), (here, round(tops[layer] + heights[layer], 1))]
        routes.append((*points, end))
    return Layout(centres, tuple(routes), round(right - left + 2 * margin, 1), round(y - _LAYER_GAP + margin, 1))


def _ports(
    arrows: Sequence[tuple[int, int]], centres: Sequence[Point], sizes: Sequence[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """Return at which x each arrow leaves and arrives: side by side, in the order of their other ends."""
    leaving, arriving = [0.0] * len(arrows), [0.0] * len(arrows)
    for ports, near, far in ((leaving, 0, 1), (arriving, 1, 0)):
        ends: dict[int, list[int]] = {}
        for number, arrow in enumerate(arrows):
            ends.setdefault(arrow[near], []).append(number)
        for box, numbers in ends.items():
            numbers.sort(key=lambda number: centres[arrows[number][far]][0])
            step = min(14.0, sizes[box][0] * 0.7 / len(numbers))
            first = centres[box][0] - step * (len(numbers) - 1) / 2
            for i, number in enumerate(numbers):
                ports[number] = round(first + step * i, 1)
    return leaving, arriving
