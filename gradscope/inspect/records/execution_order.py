"""Walking a backward graph, and the order in which the engine will run it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..adapters.protocol import Adapter

__all__ = ["NodeLinks", "engine_order", "walk"]


class NodeLinks(NamedTuple):
    """A live node, its sequence number and its edges, by which the engine orders nodes: do not hold it for long."""

    node: Any
    sequence_nr: int
    edges: tuple[tuple[int | None, int], ...]


def walk(adapter: Adapter, roots: Iterable[Any]) -> dict[int, NodeLinks]:
    """Return every node reachable from `roots`, by key."""
    found: dict[int, NodeLinks] = {}
    stack = list(roots)
    adapter = adapter.of(stack[0]) if stack else adapter
    while stack:
        node = stack.pop()
        key = adapter.key(node)
        if key in found:
            continue
        edges = []
        for child, nr in adapter.edges(node):
            edges.append((None if child is None else adapter.key(child), nr))
            if child is not None:
                stack.append(child)
        found[key] = NodeLinks(node, adapter.sequence_nr(node), tuple(edges))
    return found


def engine_order(roots: Sequence[int], sequence: Mapping[int, int], targets: Mapping[int, Sequence[int]]) -> list[int]:
    """Return node keys in the order in which the engine will run them.

    A node is ready when all its gradients have arrived; of the ready nodes the one with the highest sequence number
    runs, which is the one recorded last. AccumulateGrad has the highest number of all, so it runs as soon as it is
    ready.

    Parameters
    ----------
    roots : sequence of int
        The keys of the nodes that gradients enter first.
    sequence : mapping of int to int
        From key to sequence number.
    targets : mapping of int to sequence of int
        From key to the keys its gradients go to, once per edge.

    Examples
    --------
    >>> engine_order([1], {1: 9, 2: 5, 3: 7, 4: 2**64 - 1}, {1: [2, 3], 2: [4], 3: [], 4: []})
    [1, 3, 2, 4]
    """
    waiting = dict.fromkeys(sequence, 0)
    for children in targets.values():
        for child in children:
            waiting[child] += 1
    tie = itertools.count().__next__
    ready = [(-sequence[key], tie(), key) for key in dict.fromkeys(roots) if not waiting[key]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        key = heapq.heappop(ready)[2]
        order.append(key)
        for child in targets[key]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (-sequence[child], tie(), child))
    return order
