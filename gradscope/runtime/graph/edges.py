"""Edges: where the gradients that a node makes go, and where that of a tensor goes.

An edge is the node itself where it has one output, ``(node, output number)`` where it has several: most have one, and a
tuple for each would be the third thing per operator that the garbage collector has to follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from .. import state

if TYPE_CHECKING:
    from .graph_node import Node

__all__ = ["ACCUMULATE_SEQUENCE", "Edge", "edge_to", "ends_of", "hold_edge", "own_edge"]

Edge = Union["Node", tuple["Node", int]]

ACCUMULATE_SEQUENCE = 2**64 - 1
"""The sequence number of a leaf's node, which runs before all others that are ready."""


def edge_to(node: Node, nr: int = 0) -> Edge:
    """Return the edge to output `nr` of `node`."""
    return (node, nr) if node.multi else node


def ends_of(edge: Edge) -> tuple[Node, int]:
    """Return the node that an edge leads to, and the number of its output."""
    return edge if type(edge) is tuple else (edge, 0)  # type: ignore[return-value]


def own_edge(tensor: Any) -> Edge | None:
    """Return the edge that a tensor which is no view holds."""
    edge = tensor._edge
    return tensor._meta.aside if edge is None and tensor._meta is not None else edge


def hold_edge(tensor: Any, edge: Edge | None) -> None:
    """Let a tensor which is no view hold an edge.

    Where ``_edge`` is set operators look at no flags: a tensor with one from INERT up holds its edge aside.
    """
    rare = edge is not None and tensor._flags >= state.INERT
    tensor._edge = None if rare else edge
    if rare:
        tensor._extras().aside = edge
    elif tensor._meta is not None:
        tensor._meta.aside = None
