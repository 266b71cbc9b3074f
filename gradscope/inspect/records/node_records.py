"""Nodes of a backward by their place, whoever reads them: a debugger, a front of another process, a recording."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from .records import NodeRecord

__all__ = ["NodeRecords", "norms_by_place"]


def norms_by_place(nodes: Iterable[NodeRecord]) -> dict[int, float]:
    """Return the norms of the gradients that have come to nodes, by their places, as far as they are known."""
    return {node.index: node.norm for node in nodes if node.norm is not None}


class NodeRecords(Sequence[NodeRecord]):
    """A sequence whose subclasses read one node, or faster several that follow each other.

    Examples
    --------
    >>> class Numbered(NodeRecords):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def _at(self, index):
    ...         return NodeRecord(index, index, "MulBackward0", "Mul", index, "", "", None, (), norm=index / 2)
    >>> nodes = Numbered()
    >>> nodes[-1].index, [node.index for node in nodes[::2]]
    (2, [0, 2])
    >>> nodes.known_norms()
    {0: 0.0, 1: 0.5, 2: 1.0}
    >>> nodes[3]
    Traceback (most recent call last):
        ...
    IndexError: there is no node 3 in this backward: it has 3 nodes
    """

    @overload
    def __getitem__(self, index: int) -> NodeRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeRecord]: ...
    def __getitem__(self, index: int | slice) -> NodeRecord | list[NodeRecord]:
        count = len(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(count)
            return self._between(start, stop) if step == 1 else [self._at(at) for at in range(start, stop, step)]
        if not -count <= index < count:
            raise IndexError(f"there is no node {index} in this backward: it has {count} nodes")
        return self._at(index % count)

    def known_norms(self) -> Mapping[int, float]:
        """Return the norms of the gradients that have come to nodes, by their places, as far as they are known.

        Subclasses that can tell them without the records do.
        """
        return norms_by_place(self)

    @abstractmethod
    def _at(self, index: int) -> NodeRecord:
        """Return the node at a place, from 0."""

    def _between(self, start: int, stop: int) -> list[NodeRecord]:
        return [self._at(at) for at in range(start, stop)]
