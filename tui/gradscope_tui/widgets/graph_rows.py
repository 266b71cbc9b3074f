"""What the rows of the graph pane are: all nodes below headings, modules folded into one row, or only what matches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gradscope.inspect.debugging.stops.breakpoints import parse_spec
from gradscope_tui.widgets.lane_layout import NOWHERE, LaneRow, lay_out

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord
    from gradscope_tui.widgets.cut_branches import CutRow

__all__ = [
    "NOTHING",
    "NodeFilter",
    "Outline",
    "Row",
    "Rows",
    "SortedRows",
    "ancestors",
    "fold",
    "has_bad",
    "node_filter",
    "parts_of",
]


_JOINING = frozenset({"Add", "Bmm", "Cat", "Stack", "Sub", "Where"})
"""Operators that bring the branches of a model together."""


class Outline(NamedTuple):
    """What does not change of a backward while it runs.

    Parameters
    ----------
    modules : sequence of str
        For each node in execution order its module, empty where it has none.
    targets : sequence of tuple of int
        Indices of the nodes that its gradients go to.
    sources : sequence of tuple of int
        Indices of the nodes that its gradients come from, ascending.
    positions : mapping of int to int
        The index of each node by its key.
    joins : mapping of int to int
        For the nodes that join branches of which some need no gradient, how many of their inputs get none.
    """

    modules: Sequence[str]
    targets: Sequence[tuple[int, ...]]
    sources: Sequence[tuple[int, ...]]
    positions: Mapping[int, int]
    joins: Mapping[int, int] = MappingProxyType({})

    @classmethod
    def read(cls, nodes: Iterable[NodeRecord]) -> Outline:
        """Read it from the nodes of a backward."""
        modules, edges, positions, joins = [], [], {}, {}
        for index, node in enumerate(nodes):
            positions[node.key] = index
            modules.append(node.module)
            keys = tuple(edge.target_key for edge in node.edges)
            edges.append(keys)
            if None in keys and node.operator in _JOINING and keys.count(None) < len(keys):
                joins[index] = keys.count(None)
        targets = [tuple(positions[key] for key in keys if key is not None and key in positions) for keys in edges]
        return cls(modules, targets, _sources(targets), positions, joins)


NOTHING = Outline((), (), (), {})
"""The outline of a graph that has not been read."""


class Row(NamedTuple):
    """A row that does not stand for one node alone.

    Parameters
    ----------
    start, stop : int
        The nodes that it stands for.
    module : str
        What they belong to.
    folded : bool
        Whether they are folded into it; otherwise it is the heading above them.
    cut : CutRow or None
        Of a row that stands for no node, the module in it that gets no gradient.
    """

    start: int
    stop: int
    module: str
    folded: bool
    cut: CutRow | None = None


class Rows:
    """The rows of the graph pane: a row stands for one node, for neighbours folded into it, or is a heading of such.

    Modules that get no gradient have rows too, between those of nodes.

    Parameters
    ----------
    starts : sequence of int
        For each row the index of its first node, ascending; a heading stands before the row of its first node.
    others : dict of int to Row
        By their numbers, the rows that do not stand for one node alone.

    Examples
    --------
    >>> rows = Rows([0, 1, 4, 4], {1: Row(1, 4, "fc1", True), 2: Row(4, 6, "fc2", False)})
    >>> len(rows), rows.row_of(3), rows.folded(1), rows.span(1), rows.heading(2), rows.row_of(4)
    (4, 1, 'fc1', range(1, 4), 'fc2', 3)
    """

    def __init__(self, starts: Sequence[int], others: Mapping[int, Row] | None = None) -> None:
        self._starts = starts
        self._others = others or {}

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def plain(self) -> bool:
        """Whether every node has a row of its own, in its place."""
        return isinstance(self._starts, range)

    def index(self, row: int) -> int:
        """Return the index of the first node of a row."""
        return self._starts[row]

    def span(self, row: int) -> range:
        """Return the indices of the nodes of a row; of a heading, those below it."""
        other = self._others.get(row)
        return range(self._starts[row], self._starts[row] + 1) if other is None else range(other.start, other.stop)

    def folded(self, row: int) -> str:
        """Return the module that is folded into a row; empty where nothing is."""
        other = self._others.get(row)
        return other.module if other is not None and other.folded else ""

    def heading(self, row: int) -> str:
        """Return the module that a row is the heading of; empty for another."""
        other = self._others.get(row)
        return other.module if other is not None and not other.folded and other.cut is None else ""

    def cut(self, row: int) -> CutRow | None:
        """Return the module without a gradient that a row stands for; None for another."""
        other = self._others.get(row)
        return other.cut if other is not None else None

    def with_cut(self, at: int, cut: Sequence[CutRow]) -> Rows:
        """Return the same rows with others before that of node `at`, or of the module into which it is folded.

        Examples
        --------
        >>> rows = Rows(range(3)).with_cut(1, ["a tower"])
        >>> len(rows), rows.cut(1), rows.row_of(0), rows.row_of(1), rows.span(1)
        (4, 'a tower', 0, 2, range(1, 2))
        """
        place = min(bisect_left(self._starts, at), len(self._starts) - 1)
        if place < 0 or not cut:
            return self
        start = self._starts[place]
        others = {row + len(cut) * (row >= place): other for row, other in self._others.items()}
        others |= {place + row: Row(start, start + 1, "", False, one) for row, one in enumerate(cut)}
        return Rows([*self._starts[:place], *[start] * len(cut), *self._starts[place:]], others)

    def row_of(self, index: int) -> int:
        """Return the row of a node: its own, that it is folded into, or else the one before; -1 before the first."""
        return bisect_right(self._starts, index) - 1

    def lanes(self, outline: Outline) -> list[LaneRow]:
        """Lay out the lanes: past a heading, those run through that come from above."""
        if self.plain:
            return lay_out(enumerate(outline.targets))
        nodes = iter(lay_out(self._edges(outline)))
        layout: list[LaneRow] = []
        for row in range(len(self)):
            if self.is_no_node(row):
                below, hidden = (layout[-1].below, layout[-1].hidden) if layout else (0, 0)
                layout.append(LaneRow(NOWHERE, below, below, (), hidden))
            else:
                layout.append(next(nodes))
        return layout

    def is_no_node(self, row: int) -> bool:
        """Say whether a row is a heading, or a module without a gradient."""
        other = self._others.get(row)
        return other is not None and not other.folded

    def _edges(self, outline: Outline) -> list[tuple[int, list[int]]]:
        """Return for each row of nodes the rows that its gradients go to."""
        own = [0] * len(outline.targets)
        rows = [row for row in range(len(self)) if not self.is_no_node(row)]
        for row in rows:
            for index in self.span(row):
                own[index] = row
        return [
            (row, [own[target] for index in self.span(row) for target in outline.targets[index] if own[target] != row])
            for row in rows
        ]


class SortedRows(Rows):
    """The rows of the graph pane in an order of their own: one a node, without headings, folds and lanes.

    Parameters
    ----------
    order : sequence of int
        For each row the index of its node.

    Examples
    --------
    >>> rows = SortedRows([4, 1, 3])
    >>> len(rows), rows.index(0), rows.row_of(3), rows.row_of(2), rows.plain
    (3, 4, 2, -1, False)
    """

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__(order)
        self._rows = {index: row for row, index in enumerate(order)}

    @property
    def plain(self) -> bool:
        """Whether every node has a row of its own, in its place: it does not."""
        return False

    def row_of(self, index: int) -> int:
        """Return the row of a node; -1 where it has none."""
        return self._rows.get(index, -1)


def ancestors(module: str) -> list[str]:
    """Return a module and those that it is part of, the outermost first.

    Examples
    --------
    >>> ancestors("layers.0.fc1")
    ['layers', 'layers.0', 'layers.0.fc1']
    """
    parts = module.split(".") if module else []
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def parts_of(module: str, modules: Iterable[str]) -> frozenset[str]:
    """Return the parts of a module; where its only part holds all of it, the parts of that one.

    Parameters
    ----------
    module : str
        The module.
    modules : iterable of str
        The module of each node.

    Examples
    --------
    >>> sorted(parts_of("encoder", ["encoder.layers.0.fc", "encoder.layers.1.fc", "head"]))
    ['encoder.layers.0', 'encoder.layers.1']
    >>> sorted(parts_of("encoder", ["encoder", "encoder.layers.0.fc"])), sorted(parts_of("head", ["head.fc"]))
    (['encoder.layers'], [])
    """
    inside = {tuple(one.split(".")) for one in modules if one == module or one.startswith(module + ".")}
    depth = module.count(".") + 1
    while True:
        parts = {path[: depth + 1] for path in inside if len(path) > depth}
        if len(parts) != 1 or any(len(path) <= depth for path in inside):
            return frozenset(".".join(path) for path in parts)
        depth += 1


def fold(modules: Sequence[str], folded: frozenset[str], *, headings: bool = False) -> Rows:
    """Fold neighbours of one module into one row.

    Parameters
    ----------
    modules : sequence of str
        The module of each node.
    folded : frozenset of str
        Modules to fold, with all that they consist of.
    headings : bool
        Whether several neighbours of one module that are not folded have a row above them that names it.

    Examples
    --------
    >>> rows = fold(["", "net.fc2", "net.act", "", "net.fc1"], frozenset({"net"}))
    >>> [(rows.span(row), rows.folded(row)) for row in range(len(rows))]
    [(range(0, 1), ''), (range(1, 3), 'net'), (range(3, 4), ''), (range(4, 5), 'net')]
    >>> rows = fold(["", "fc", "fc"], frozenset(), headings=True)
    >>> [(rows.span(row), rows.heading(row)) for row in range(len(rows))]
    [(range(0, 1), ''), (range(1, 3), 'fc'), (range(1, 2), ''), (range(2, 3), '')]
    """
    if not folded and not headings:
        return Rows(range(len(modules)))
    outermost = {m: next((a for a in ancestors(m) if a in folded), "") for m in set(modules)}
    starts: list[int] = []
    others: dict[int, Row] = {}
    first = 0
    for into, group in groupby(modules, lambda module: outermost[module] or module):
        stop = first + len(list(group))
        if into and outermost.get(modules[first]):
            others[len(starts)] = Row(first, stop, into, True)
            starts.append(first)
        else:
            if headings and into and stop - first > 1:
                others[len(starts)] = Row(first, stop, into, False)
                starts.append(first)
            starts += range(first, stop)
        first = stop
    return Rows(starts if others else range(len(modules)), others)


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """The test that a filter stands for: called with a node, says whether it matches.

    Parameters
    ----------
    matches : callable
        Takes a node.
    gradients : bool
        Whether it looks at the gradients of the node.
    """

    matches: Callable[[NodeRecord], bool]
    gradients: bool = False

    def __call__(self, node: NodeRecord) -> bool:
        """Say whether a node matches."""
        return self.matches(node)


def node_filter(text: str) -> NodeFilter:
    """Return the test that a filter stands for.

    Parameters
    ----------
    text : str
        A breakpoint's words (``'op:Mul*'``, ``'mod:layers.*'``, ``'param:*.weight'``, ``'line:train.py:31'``);
        ``'nan'`` or ``'inf'`` for nodes with one among their known gradients; anything else is looked for in the
        operator, the module, the parameter and the line. ``'!'`` before it turns it round.

    Raises
    ------
    BreakpointError
        If the words cannot be understood.

    Examples
    --------
    >>> from gradscope.inspect import NodeRecord
    >>> node = NodeRecord(3, 7, "MulBackward0", "Mul", 12, "layers.0", "", None, ())
    >>> [node_filter(text)(node) for text in ("op:M*", "mod:layers.*", "layers.0", "mul", "!mul", "nan")]
    [True, True, True, True, False, False]
    """
    text = text.strip()
    if text.startswith("!"):
        wanted = node_filter(text[1:])
        return NodeFilter(lambda node: not wanted(node), wanted.gradients)
    if text in ("nan", "inf"):
        return NodeFilter(lambda node: has_bad(node, f"{text}s"), gradients=True)
    if ":" in text:
        return NodeFilter(parse_spec(text))
    word = text.lower()
    return NodeFilter(lambda node: word in _words(node))


def has_bad(node: NodeRecord, *counts: str) -> bool:
    """Say whether one of a node's known gradients has such elements: ``'nans'``, ``'infs'``."""
    groups = (*(node.grad_outputs or ()), *(node.grad_inputs or ()))
    return any(summary is not None and getattr(summary, count) for summary in groups for count in counts)


def _words(node: NodeRecord) -> str:
    return f"{node.name} {node.module} {node.parameter} {node.location or ''}".lower()


def _sources(targets: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Turn the edges round."""
    found: list[list[int]] = [[] for _ in targets]
    for source, indices in enumerate(targets):
        for target in dict.fromkeys(indices):
            found[target].append(source)
    return [tuple(sources) for sources in found]
