"""The difference between two graphs, of two runs or two versions of a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..output.number_format import count, format_shape
from ..records.node_identity import Identity, node_identities
from ..records.records import SavedRecord, TensorSpec
from .graph_model import BackwardGraph, execution_order

__all__ = ["GraphDifference", "Identity", "NodeChange", "graph_difference", "identities"]

_COLUMNS = ("", "node", "of", "line", "what", "before", "after")


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that both graphs have, and one thing about it that differs.

    Attributes
    ----------
    what : str
        ``'outputs'`` (shapes, dtypes, devices), ``'saved'`` or ``'edges'``.
    """

    identity: Identity
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.identity}: {self.what} {self.before or 'none'} → {self.after or 'none'}"


@dataclass(frozen=True, slots=True, repr=False)
class GraphDifference:
    """The difference of two graphs; false if there is none.

    Attributes
    ----------
    added, removed : tuple of Identity
        Nodes of the second or of the first graph alone, in the engine's order.
    changed : tuple of NodeChange
        Nodes of both, with other shapes, saved tensors or edges.
    same : int
        How many nodes are as they were.

    See Also
    --------
    graph_difference

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.ones(2, requires_grad=True)
    >>> bool(gi.graph_difference(gi.graph(x.exp().sum()), gi.graph(x.exp().sum())))
    False
    """

    added: tuple[Identity, ...]
    removed: tuple[Identity, ...]
    changed: tuple[NodeChange, ...]
    same: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from ..output.notebook_html import MOST_IN_A_TABLE, note, page, table

        rows = list(islice(self._rows(), MOST_IN_A_TABLE))
        changes = len(self.added) + len(self.removed) + len(self.changed)
        of = f", the first {len(rows):,} of them" if len(rows) < changes else ""
        caption = f"{count(changes, 'difference')}{of}"
        return page(note(self._summary()), table(_COLUMNS, rows, caption=caption) if rows else "")

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield from (("+", *_cells(identity), "", "", "") for identity in self.added)
        yield from (("-", *_cells(identity), "", "", "") for identity in self.removed)
        for change in self.changed:
            yield ("~", *_cells(change.identity), change.what, change.before or "none", change.after or "none")

    def _summary(self) -> str:
        return (
            f"{len(self.added)} added, {len(self.removed)} removed, "
            f"{len({change.identity for change in self.changed})} changed, {self.same} the same"
        )

    def _lines(self) -> Iterator[str]:
        yield self._summary()
        yield from (f"+ {identity}" for identity in self.added)
        yield from (f"- {identity}" for identity in self.removed)
        yield from (f"~ {change}" for change in self.changed)


def graph_difference(before: BackwardGraph, after: BackwardGraph) -> GraphDifference:
    """Return what has changed from one graph to another.

    Nodes are told apart by module, parameter, operator, the line that made them, and how many of the kind came before;
    so the graphs may be those of two processes.

    See Also
    --------
    graph, difference

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(2, requires_grad=True)
    >>> first = gi.graph((w * 2).sum(), params={"w": w})
    >>> second = gi.graph((w * 2).tanh().sum(), params={"w": w})
    >>> print(gi.graph_difference(first, second))
    1 added, 0 removed, 1 changed, 2 the same
    + TanhBackward0
    ~ SumBackward0: edges gradient 0 to MulBackward0 → gradient 0 to TanhBackward0
    """
    ours, theirs = identities(before), identities(after)
    keys = {identity: key for key, identity in theirs.items()}
    known = set(ours.values())
    changed: list[NodeChange] = []
    same = 0
    for key, identity in ours.items():
        other = keys.get(identity)
        if other is None:
            continue
        found = list(_changes(identity, before, key, ours, after, other, theirs))
        changed += found
        same += not found
    return GraphDifference(
        added=tuple(identity for identity in theirs.values() if identity not in known),
        removed=tuple(identity for identity in ours.values() if identity not in keys),
        changed=tuple(changed),
        same=same,
    )


def _cells(identity: Identity) -> tuple[str, str, str]:
    """Return a node, what it is of, and the line that made it."""
    return identity.counted, identity.parameter or identity.module, identity.place


def identities(graph: BackwardGraph) -> dict[Any, Identity]:
    """Return the stable identity of every node, by key, in the engine's order."""
    keys = execution_order(graph)
    facts = (graph.nodes[key] for key in keys)
    found = node_identities((data["module"], data["parameter"], data["name"], data["location"]) for data in facts)
    return dict(zip(keys, found, strict=True))


def _changes(
    identity: Identity,
    before: BackwardGraph,
    key: Any,
    ours: dict[Any, Identity],
    after: BackwardGraph,
    other: Any,
    theirs: dict[Any, Identity],
) -> Iterator[NodeChange]:
    first, second = before.nodes[key], after.nodes[other]
    yield from _change(identity, "outputs", _specs(first["outputs"]), _specs(second["outputs"]))
    yield from _change(identity, "saved", _saved(first["saved"]), _saved(second["saved"]))
    yield from _change(identity, "edges", _edges(before, key, ours), _edges(after, other, theirs))


def _change(identity: Identity, what: str, before: str, after: str) -> Iterator[NodeChange]:
    if before != after:
        yield NodeChange(identity, what, before, after)


def _specs(specs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(f"{spec.dtype} {format_shape(spec.shape)} {spec.device}" for spec in specs)


def _saved(saved: tuple[SavedRecord, ...]) -> str:
    # A released tensor has no shape left to compare.
    return ", ".join(f"{s.name} {s.dtype} {format_shape(s.shape)}" for s in saved if s.shape is not None)


def _edges(graph: BackwardGraph, key: Any, names: dict[Any, Identity]) -> str:
    edges = sorted(graph.out_edges(key, data=True), key=lambda edge: edge[2]["output_nr"])
    return ", ".join(f"gradient {data['output_nr']} to {_receiver(names[child], data)}" for _, child, data in edges)


def _receiver(identity: Identity, data: dict[str, Any]) -> str:
    return f"{identity} input {data['input_nr']}" if data["input_nr"] else str(identity)
