"""What a diagram of the modules shows: which nodes stand in one box, which boxes arrows join, and the norms on both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING

from gradscope_tui.widgets.graph_rows import ancestors

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord
    from gradscope_tui.widgets.graph_rows import Outline

__all__ = ["Box", "Diagram", "Pair", "containers", "diagram_of", "norms_of", "opened_to_fit"]

_MOST_NAMED = 3
"""Operators that the title of a box without a module names."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a diagram.

    Parameters
    ----------
    title : str
        The path of a module; of nodes that belong to none, or to one whose parts have boxes of their own, a parameter
        or operators.
    module : str
        The module; empty where the box is none.
    members : tuple of int
        Indices of its nodes, ascending.
    """

    title: str
    module: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The boxes of a backward and the arrows between them, along which gradients go.

    Parameters
    ----------
    boxes : tuple of Box
        In the order in which the engine comes to them.
    arrows : mapping of (int, int) to tuple of (int, int)
        From box to box, by their places: the edges that an arrow stands for, each from node to node.
    owners : sequence of int
        For each node the place of its box.
    entries : sequence of tuple of int
        For each box the nodes that get something from elsewhere, or at which the backward begins.
    sources : sequence of tuple of int
        For each node those that its gradients come from.
    positions : mapping of int to int
        The index of each node by its key.
    """

    boxes: tuple[Box, ...] = ()
    arrows: Mapping[Pair, tuple[Pair, ...]] = field(default_factory=dict)
    owners: Sequence[int] = ()
    entries: Sequence[tuple[int, ...]] = ()
    sources: Sequence[tuple[int, ...]] = ()
    positions: Mapping[int, int] = field(default_factory=dict)

    def box_of(self, index: int) -> int:
        """Return the place of the box in which a node stands; -1 where there is no such node."""
        return self.owners[index] if 0 <= index < len(self.owners) else -1


def containers(modules: Iterable[str]) -> frozenset[str]:
    """Return the modules that have others inside them.

    Examples
    --------
    >>> sorted(containers(["", "net.0.fc", "net.1", "head"]))
    ['net', 'net.0']
    """
    return frozenset(around for module in set(modules) for around in ancestors(module)[:-1])


def opened_to_fit(modules: Sequence[str], most: int, limit: int) -> frozenset[str]:
    """Return the modules to open so that about `most` boxes show as deep as they can.

    One around all others is open even so, unless that makes more than `limit` boxes.

    Examples
    --------
    >>> modules = [f"net.layers.{layer}.{part}" for layer in range(4) for part in ("fc", "act")]
    >>> sorted(opened_to_fit(modules, 6, 300)), sorted(opened_to_fit(modules, 8, 300))[-1]
    (['net', 'net.layers'], 'net.layers.3')
    """
    paths = [ancestors(module) for module in set(modules) - {""}]
    opened: frozenset[str] = frozenset()
    for depth in range(1, max(map(len, paths), default=0)):
        here = {path[depth - 1] for path in paths if len(path) > depth}
        shown = {path[min(depth, len(path) - 1)] for path in paths}
        if len(shown) > (most if len(here) > 1 else limit):
            break
        opened |= here
    return opened


def diagram_of(outline: Outline, nodes: Sequence[NodeRecord], opened: frozenset[str], most: int) -> Diagram:
    """Return the diagram of a backward.

    Parameters
    ----------
    outline : Outline
        What modules its nodes have, and how they hang together.
    nodes : sequence of NodeRecord
        The same, for their names.
    opened : frozenset of str
        Modules whose parts have boxes of their own. A node that belongs to such a one itself, or to none, stands in
        a box with those before and behind it, as long as there is no other way; a parameter of it has its own.
    most : int
        Boxes from which on nodes without a module are put together further, by the order in which they run.

    Returns
    -------
    Diagram
        A module that is called twice, with something in between, is one box, with arrows there and back.
    """
    modules = {module: _closed(module, opened) for module in set(outline.modules)}
    groups: list[object] = []
    for index, module in enumerate(outline.modules):
        groups.append(modules[module] or _chain(outline, nodes, modules, groups, index))
    groups = _fewer(groups, most)
    members: dict[object, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    places = {group: place for place, group in enumerate(members)}
    boxes = tuple(
        Box(group, group, tuple(inside)) if isinstance(group, str) else Box(_title(nodes, inside), "", tuple(inside))
        for group, inside in members.items()
    )
    owners = [places[group] for group in groups]
    arrows: dict[Pair, list[Pair]] = defaultdict(list)
    for source, targets in enumerate(outline.targets):
        for target in dict.fromkeys(targets):
            if owners[source] != owners[target]:
                arrows[owners[source], owners[target]].append((source, target))
    joined = {pair: tuple(edges) for pair, edges in arrows.items()}
    entries = [tuple(_entries(outline.sources, owners, box.members)) for box in boxes]
    return Diagram(boxes, joined, owners, entries, outline.sources, outline.positions)


def _entries(sources: Sequence[tuple[int, ...]], owners: Sequence[int], members: Sequence[int]) -> Iterable[int]:
    """Yield the nodes of a box that get something from elsewhere, or at which the backward begins."""
    for index in members:
        into = sources[index]
        if not into or any(owners[source] != owners[index] for source in into):
            yield index


def _closed(module: str, opened: frozenset[str]) -> str:
    """Return the module whose box a module's nodes stand in; empty where it has been opened."""
    return next((around for around in ancestors(module) if around not in opened), "")


def _chain(
    outline: Outline, nodes: Sequence[NodeRecord], modules: Mapping[str, str], groups: Sequence[object], index: int
) -> object:
    """Return the group of the node before, where this one is all that follows it and nothing else leads here."""
    sources = outline.sources[index]
    if len(sources) == 1 and sources[0] < index and not nodes[index].parameter:
        before = sources[0]
        if not modules[outline.modules[before]] and len(set(outline.targets[before])) == 1:
            return groups[before]
    return index


def _fewer(groups: Sequence[object], most: int) -> list[object]:
    """Put nodes without a module together, neighbours of the engine's order, until there are at most so many boxes."""
    loose = [group for group in dict.fromkeys(groups) if not isinstance(group, str)]
    room = max(1, most - (len(set(groups)) - len(loose)))
    if len(loose) <= room:
        return list(groups)
    size = -(-len(loose) // room)
    into = {group: loose[place // size * size] for place, group in enumerate(loose)}
    return [into.get(group, group) for group in groups]


def _title(nodes: Sequence[NodeRecord], members: Sequence[int]) -> str:
    if len(members) == 1:
        return nodes[members[0]].parameter or nodes[members[0]].operator
    runs = [(name, len(list(same))) for name, same in groupby(nodes[index].operator for index in members)]
    names = [name if count == 1 else f"{name} ×{count}" for name, count in runs]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], "…", names[-1]]
    return " → ".join(names)


# Norms ---------------------------------------------------------------------------------------------------------------


def norms_of(
    diagram: Diagram, norms: Mapping[int, float], read: Callable[[int], NodeRecord]
) -> tuple[list[float | None], dict[Pair, float | None]]:
    """Return the norm of the gradient that comes into each box, and of that which each arrow brings.

    Parameters
    ----------
    norms : mapping of int to float
        Of the gradients that have come to nodes, by their indices, as far as the backward has run.
    read : callable
        Returns the record of a node by its index: called for such as are one of several that bring a node something,
        where all of these have been reached.

    Returns
    -------
    list of float or None, dict of (int, int) to float or None
        None where nobody has seen it: of what a node gets from several others, their sum alone is known when the
        program runs free.
    """
    into = [_together(map(norms.get, entries)) for entries in diagram.entries]
    reached = max(norms, default=-1)
    arrows = {pair: _brought(diagram, norms, read, reached, edges) for pair, edges in diagram.arrows.items()}
    return into, arrows


def _brought(
    diagram: Diagram,
    norms: Mapping[int, float],
    read: Callable[[int], NodeRecord],
    reached: int,
    edges: Sequence[Pair],
) -> float | None:
    """Return the norm of what edges from one box bring another: of sums, at nodes that no others come to."""
    parts, sums = [], []
    for target, sources in _by_target(edges):
        if len(sources) == len(diagram.sources[target]):
            sums.append(norms.get(target))
        else:
            parts += [(source, target) for source in sources]
    if None in sums or any(source > reached for source, _ in parts):
        return None
    return _together(chain(sums, chain.from_iterable(_part(diagram, read(source), target) for source, target in parts)))


def _part(diagram: Diagram, source: NodeRecord, target: int) -> Iterable[float | None]:
    """Return the norms of what a node has brought another, by each edge between the two."""
    produced = zip(source.grad_inputs or (), source.edges)
    found = [
        summary.norm
        for summary, edge in produced
        if summary is not None and edge.target_key is not None and diagram.positions.get(edge.target_key) == target
    ]
    return found or [None]


def _by_target(edges: Iterable[Pair]) -> Iterable[tuple[int, list[int]]]:
    """Return each node that edges lead to, with those that they come from."""
    sources: dict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        sources[target].append(source)
    return sources.items()


def _together(norms: Iterable[float | None]) -> float | None:
    """Return the norm over all elements of several gradients; None where one of them is not known."""
    numbers = []
    for norm in norms:
        if norm is None:
            return None
        numbers.append(norm)
    if not numbers:
        return None
    return math.nan if any(map(math.isnan, numbers)) else math.hypot(*numbers)
