"""The nodes of a backward as a sequence that makes a record when somebody looks at it.

A backward of a hundred thousand nodes is stopped in every iteration and looked at in a window of thirty lines: what is
kept of its nodes are columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from ...records.node_records import NodeRecords
from ...records.records import EdgeRecord, Location, NodeRecord, TensorSpec, operator_name
from ..stops.breakpoint_specs import Candidate

__all__ = [
    "MOST_RECORDS",
    "FinishedNodeFacts",
    "FinishedNodes",
    "NodeList",
    "RecordSource",
    "candidates_of",
]

MOST_RECORDS = 20_000
"""Nodes of a backward up to which all records are returned at once."""


class FinishedNodes(NamedTuple):
    """What stays of the nodes of a backward that has ended, in the engine's order: a column for each fact."""

    names: Sequence[str] = ()
    sequence_nrs: Sequence[int] = ()
    modules: Sequence[str] = ()
    parameters: Sequence[str] = ()
    locations: Sequence[Location | None] = ()
    edges: Sequence[tuple[tuple[int | None, int], ...]] = ()
    outputs: Sequence[tuple[TensorSpec, ...]] = ()

    def record(self, place: int, key: int, state: str) -> NodeRecord:
        """Return the record of a node that nobody has looked at."""
        name = self.names[place]
        return NodeRecord(
            index=place,
            key=key,
            name=name,
            operator=operator_name(name),
            sequence_nr=self.sequence_nrs[place],
            module=self.modules[place],
            parameter=self.parameters[place],
            location=self.locations[place],
            edges=tuple(EdgeRecord(*edge) for edge in self.edges[place]),
            state=state,
            outputs=self.outputs[place],
        )


class FinishedNodeFacts:
    """What a breakpoint asks of a node whose backward has ended."""

    __slots__ = ("_nodes", "index")

    def __init__(self, nodes: FinishedNodes, index: int) -> None:
        self._nodes = nodes
        self.index = index

    @property
    def name(self) -> str:
        """The node's name."""
        return self._nodes.names[self.index]

    @property
    def operator(self) -> str:
        """The operator's name."""
        return operator_name(self.name)

    @property
    def module(self) -> str:
        """The module's path."""
        return self._nodes.modules[self.index]

    @property
    def parameter(self) -> str:
        """The parameter's path."""
        return self._nodes.parameters[self.index]

    @property
    def location(self) -> Location | None:
        """The user's line that made the node."""
        return self._nodes.locations[self.index]


class RecordSource(Protocol):
    """A backward that can tell of its nodes by their place."""

    @property
    def order(self) -> Sequence[int]:
        """The keys of its nodes, in the engine's order."""

    @property
    def arrangement(self) -> Hashable:
        """Another object as soon as its nodes stand in another order."""

    def record(self, index: int) -> NodeRecord:
        """Return the record of the node at a place."""

    def candidate(self, index: int) -> Candidate:
        """Return what a breakpoint asks of the node at a place."""

    def known_norms(self) -> Mapping[int, float]:
        """Return the norms of the gradients that have come to nodes, by their places, as far as they are known."""

    def position(self, key: int) -> int | None:
        """Return the place of a node."""


class NodeList(NodeRecords):
    """The nodes of a backward, in the engine's order; a record is made when it is asked for."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source.order)

    def _at(self, index: int) -> NodeRecord:
        return self._source.record(index)

    def __iter__(self) -> Iterator[NodeRecord]:
        return map(self._source.record, range(len(self)))

    def known_norms(self) -> Mapping[int, float]:
        """Return the norms of the gradients that have come to nodes, by their places, without making a record."""
        return self._source.known_norms()

    @property
    def order(self) -> Hashable:
        """Another object as soon as the nodes stand in another order."""
        return self._source.arrangement

    def position(self, key: int) -> int | None:
        """Return the place of a node by its key, None if it is not one of these."""
        return self._source.position(key)

    def candidates(self, start: int = 0) -> Iterator[Candidate]:
        """Yield what a breakpoint asks of the nodes from a place on, without making a record."""
        return map(self._source.candidate, range(start, len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} nodes>"

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from ...records.record_html import first_nodes_html

        return first_nodes_html(self)


def candidates_of(nodes: Sequence[NodeRecord], start: int = 0) -> Iterator[Candidate]:
    """Yield what a breakpoint asks of nodes: of such as can tell it, without making or reading a record.

    Parameters
    ----------
    start : int
        The first of them.
    """
    tell: Callable[[int], Iterator[Candidate]] | None = getattr(nodes, "candidates", None)
    return islice(iter(nodes), start, None) if tell is None else tell(start)
