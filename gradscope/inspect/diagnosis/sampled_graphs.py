"""The graphs that are looked into: those of the first few backward passes from each line, then every 2**k-th."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..adapters import Adapter
from ..records.execution_order import NodeLinks, walk
from ..records.records import Location, operator_name
from .finding_limits import Limits
from .flow.reshaping_operators import RESHAPING
from .watch import Watch

__all__ = ["BackwardSampler", "SampledGraphs", "is_sampled", "leaves_behind", "senders", "source_of", "users_of"]


def is_sampled(number: int, first: int = Limits.sampled_backwards) -> bool:
    """Whether the one of this number, from 1, is looked into: the `first` ones, and then each power of two.

    Examples
    --------
    >>> [number for number in range(1, 40) if is_sampled(number)]
    [1, 2, 3, 4, 8, 16, 32]
    """
    return number <= first or not number & (number - 1)


class BackwardSampler:
    """Says which backward passes are looked into: a training run has many, and they resemble.

    Parameters
    ----------
    first : int
        How many of those from one line.

    Examples
    --------
    >>> sampler = BackwardSampler()
    >>> [sampler.is_due(None) for _ in range(10)]
    [True, True, True, True, False, False, False, True, False, False]
    """

    def __init__(self, first: int = Limits.sampled_backwards) -> None:
        self._first = first
        self._seen: dict[Location | None, int] = {}

    def is_due(self, made: Location | None) -> bool:
        """Count a backward of a loss made at a line; return whether it is one to look into."""
        times = self._seen[made] = self._seen.get(made, 0) + 1
        return is_sampled(times, self._first)


class SampledGraphs(Watch):
    """The graph of the backward that starts, walked once for all who ask."""

    def __init__(self, adapter: Adapter, first: int = Limits.sampled_backwards) -> None:
        self._adapter = adapter
        self._sampler = BackwardSampler(first)
        self._task: Any = None  # the one that was asked for last, and its nodes
        self._links: dict[int, NodeLinks] = {}

    def of(self, task: Any) -> dict[int, NodeLinks]:
        """Return the nodes of a backward that starts, by key; none where it is not looked into."""
        if task is not self._task:
            roots = [node for node, _ in self._adapter.task_roots(task)]
            due = bool(roots) and self._sampler.is_due(self._adapter.location(roots[0]))
            self._task, self._links = task, walk(self._adapter, roots) if due else {}
        return self._links

    def task_finished(self, task: Any) -> None:
        """Let go of the nodes."""
        self._task, self._links = None, {}

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Let go of the nodes."""
        self._task, self._links = None, {}


def source_of(
    adapter: Adapter, links: Mapping[int, NodeLinks], key: int | None, skipped: frozenset[str] = RESHAPING
) -> NodeLinks | None:
    """Return the first node, from one inwards, that does more than reshape.

    Parameters
    ----------
    links : mapping of int to NodeLinks
        The nodes of a graph, by key.
    key : int or None
        Where to begin.
    skipped : frozenset of str
        The operators to pass, along their first input.
    """
    while key is not None:
        link = links[key]
        if operator_name(adapter.node_name(link.node)) not in skipped:
            return link
        key = link.edges[0][0]
    return None


def leaves_behind(adapter: Adapter, links: Mapping[int, NodeLinks], key: int) -> list[Any]:
    """Return the leaves whose gradients come through a node.

    Parameters
    ----------
    links : mapping of int to NodeLinks
        The nodes of a graph, by key.
    """
    seen, stack, found = {key}, [key], []
    while stack:
        link = links[stack.pop()]
        leaf = adapter.variable(link.node)
        if leaf is not None:
            found.append(leaf)
        new = [child for child, _ in link.edges if child is not None and child not in seen]
        seen.update(new)
        stack += new
    return found


def senders(links: Mapping[int, NodeLinks]) -> dict[int, list[tuple[NodeLinks, int]]]:
    """Return, by the key of a node, those that send it a gradient, each with the number of that gradient."""
    found: dict[int, list[tuple[NodeLinks, int]]] = {}
    for link in links.values():
        for index, (child, _) in enumerate(link.edges):
            if child is not None:
                found.setdefault(child, []).append((link, index))
    return found


def users_of(
    adapter: Adapter, above: Mapping[int, list[tuple[NodeLinks, int]]], key: int, skipped: frozenset[str] = RESHAPING
) -> Iterator[tuple[NodeLinks, int]]:
    """Yield the nodes that use a node's result, and as which of their inputs, past those that reshape it.

    Parameters
    ----------
    above : mapping
        What :func:`senders` gives.
    skipped : frozenset of str
        The operators to pass.
    """
    stack = [key]
    while stack:
        for link, index in above.get(stack.pop(), ()):
            if operator_name(adapter.node_name(link.node)) in skipped:
                stack.append(adapter.key(link.node))
            else:
                yield link, index
