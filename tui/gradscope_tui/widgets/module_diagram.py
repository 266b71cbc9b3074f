"""What a diagram of the modules shows: which nodes stand in one box, which boxes arrows join, and the norms on both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
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
    sources : sequence of tuple of int
        For each node those that its gradients come from.
    """

    boxes: tuple[Box, ...] = ()
    arrows: Mapping[Pair, tuple[Pair, ...]] = field(default_factory=dict)
    owners: Sequence[int] = ()
    sources: Sequence[tuple[int, ...]] = ()

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
    return Diagram(boxes, {pair: tuple(edges) for pair, edges in arrows.items()}, owners, outline.sources)


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


def norms_of(diagram: Diagram, nodes: Sequence[NodeRecord]) -> tuple[list[float | None], dict[Pair, float | None]]:
    """Return the norm of the gradient that comes into each box, and of that which each arrow brings.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        Of the backward, as far as it has run.

    Returns
    -------
    list of float or None, dict of (int, int) to float or None
        None where nobody has seen it: of what a node gets from several others, their sum alone is known when the
        program runs free.
    """
    into = [_together(_entering(diagram, nodes, place)) for place in range(len(diagram.boxes))]
    arrows = {
        pair: _together(norm for target in _by_target(edges) for norm in _brought(diagram, nodes, *target))
        for pair, edges in diagram.arrows.items()
    }
    return into, arrows


def _entering(diagram: Diagram, nodes: Sequence[NodeRecord], place: int) -> Iterable[float | None]:
    """Yield the norm at each node of a box that gets something from elsewhere, or where the backward begins."""
    for index in diagram.boxes[place].members:
        sources = diagram.sources[index]
        if not sources or any(diagram.owners[source] != place for source in sources):
            yield nodes[index].norm


def _by_target(edges: Iterable[Pair]) -> Iterable[tuple[int, list[int]]]:
    """Return each node that edges lead to, with those that they come from."""
    sources: dict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        sources[target].append(source)
    return sources.items()


def _brought(
    diagram: Diagram, nodes: Sequence[NodeRecord], target: int, sources: Sequence[int]
) -> Iterable[float | None]:
    """Yield the norms of what edges from one box bring a node; of their sum, where no others come to it."""
    if len(sources) == len(diagram.sources[target]):
        yield nodes[target].norm
        return
    for source in sources:
        produced = zip(nodes[source].grad_inputs or (), nodes[source].edges)
        key = nodes[target].key
        found: list[float | None] = [
            summary.norm for summary, edge in produced if summary is not None and edge.target_key == key
        ]
        yield from found or [None]


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
