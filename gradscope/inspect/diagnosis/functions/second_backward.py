"""A backward through a graph that an earlier one has freed: where the first was, and what the two share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...adapters import Adapter
from ...output.number_format import count
from ...records.execution_order import NodeLinks, walk
from ...records.module_tracking import Tracker
from ...records.naming import name_graph
from ...records.records import Location
from ...source.call_sites import place
from ..explanation import Explanation, adapter_of_loss, at
from ..flow.backward_replay import freed_nodes
from ..no_gradient.dataflow import ran_in

__all__ = ["SecondBackward", "SharedNode", "second_backward"]

_SHOWN = 3


@dataclass(frozen=True)
class SharedNode:
    """A node that an earlier backward has freed."""

    name: str
    module: str
    location: Location | None


@dataclass(frozen=True, repr=False)
class SecondBackward(Explanation):
    """Why a backward cannot run a second time.

    Attributes
    ----------
    shared : tuple of SharedNode
        The freed nodes, from the loss down.
    nodes : int
        How many nodes the graph has.
    first : Location or None
        Where the backward that freed them was called.
    joint : Location or None
        The line where new nodes begin to build on freed ones; None when the whole graph has been run.

    See Also
    --------
    second_backward : makes it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> loss = gs.ones(3, requires_grad=True).exp().sum()
    >>> loss.backward()
    >>> found = gi.second_backward(loss)
    >>> [node.name for node in found.shared], found.nodes
    (['ExpBackward0'], 3)
    """

    shared: tuple[SharedNode, ...]
    nodes: int
    first: Location | None
    joint: Location | None

    def __bool__(self) -> bool:
        return bool(self.shared)

    def __str__(self) -> str:
        if not self.shared:
            return f"No node of the graph has been freed: backward() can run through its {count(self.nodes, 'node')}."
        first = f"; the first backward was{at(self.first)}" if self.first is not None else " by an earlier backward"
        lines = [f"{len(self.shared)} of {count(self.nodes, 'node')} are freed{first}"]
        for node in self.shared[:_SHOWN]:
            inside = f" in `{node.module}`" if node.module else ""
            lines.append(f"  {node.name}{inside}{at(node.location)}")
        if len(self.shared) > _SHOWN:
            lines.append(f"  and {len(self.shared) - _SHOWN} more")
        if self.joint is not None:
            lines.append(f"  The graph builds on them{at(self.joint)}: detach() what is carried over there.")
            lines.append("  If both gradients are wanted, pass retain_graph=True to the first backward.")
        else:
            lines.append("  Add the losses and call backward() once, or pass retain_graph=True to the first.")
        if self.first is None:
            lines.append("  Run both under `with gradscope.inspect.ledger():` to be told where the first was.")
        return "\n".join(lines)

    def _title(self) -> str:
        return f"Freed by the backward at {place(self.first)}"

    def _columns(self) -> Sequence[str]:
        return ("node", "module", "line")

    def _rows(self) -> Iterable[Sequence[str]]:
        for node in self.shared:
            yield (node.name, node.module, place(node.location))


def second_backward(loss: Any, *, adapter: Adapter | None = None) -> SecondBackward:
    """Say what of a loss's graph an earlier backward has freed, and where that was called.

    Raises
    ------
    RuntimeError
        If the loss has no graph.

    See Also
    --------
    functions

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(3, requires_grad=True)
    >>> with gi.ledger():
    ...     hidden = w.exp()
    ...     hidden.sum().backward()
    ...     loss = (hidden * 2).sum()
    >>> found = gi.second_backward(loss)
    >>> [node.name for node in found.shared], found.nodes
    (['ExpBackward0'], 4)
    """
    adapter = adapter_of_loss("second_backward", loss, adapter)
    root = adapter.root(loss)
    if root is None:
        raise RuntimeError("the loss does not require grad, so it has no graph\nThere is no backward to run.")
    links = walk(adapter, [root[0]])
    runs = {key: ran_in(adapter, link.node) for key, link in links.items()}
    freed = {adapter.key(node): node for node in freed_nodes(adapter, links)}
    # Nodes that a failing backward freed before its failure did not cause it.
    blamed = {key: node for key, node in freed.items() if (run := runs[key]) is None or not run.failed} or freed
    tracker = Tracker(adapter)
    tracker.add_users(name_graph(adapter, links).modules)
    order = sorted(blamed.values(), key=adapter.sequence_nr, reverse=True)
    shared = tuple(
        SharedNode(adapter.node_name(node), tracker.module_of(node), adapter.location(node)) for node in order
    )
    first = min((run for key in blamed if (run := runs[key]) is not None), key=lambda run: run.number, default=None)
    ran = set(blamed) | {key for key, run in runs.items() if run is not None and not run.failed}
    return SecondBackward(shared, len(links), None if first is None else first.location, _joint(adapter, links, ran))


def _joint(adapter: Adapter, links: dict[int, NodeLinks], ran: set[int]) -> Location | None:
    """Return the line of a node that is new and hands its gradients to one that has run."""
    for key, link in sorted(links.items(), key=lambda item: item[1].sequence_nr):
        if key not in ran and any(child in ran for child, _ in link.edges):
            return adapter.location(link.node)
    return None
