"""The engine's loop in its simplest form: what :class:`~.graph_task.GraphTask` computes, and in which order.

The loop of a graph task does the same, and tells listeners, runs hooks, pauses, hands gradients over without a copy
and finds the next node without a search. A property test holds that both agree bit for bit. Hooks, runs under
``create_graph=True`` and runs to some inputs only are not specified here.

Examples
--------
>>> import gradscope as gs
>>> from gradscope.runtime.engine import specification
>>> x = gs.tensor(3.0, requires_grad=True)
>>> [node.name() for node, _ in specification.run([(x * x + x).grad_fn], [gs.ones(()).numpy()])]
['AddBackward0', 'MulBackward0', 'AccumulateGrad']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..graph.edges import Edge, ends_of
from ..graph.graph_node import Node
from .gradient_validation import validate_array

__all__ = ["run"]


def run(roots: Sequence[Edge], grads: Sequence[Any]) -> Iterator[tuple[Node, list[Any]]]:
    """Yield each node that runs, with the gradients of its outputs, from `grads`, which enter by the edges `roots`.

    A node runs when all gradients that it waits for are there. Of several such nodes the one runs that forward has
    made last; leaves, which count as made after all others, run first, in the order in which they became ready.

    Parameters
    ----------
    roots : sequence of Edge
        Where the gradients enter; the same place may be named twice.
    grads : sequence of array
        One for each root, of the shape and dtype of that output.

    Yields
    ------
    node : Node
        What it has saved is kept; a leaf's AccumulateGrad is only named, and adds nothing to ``grad``.
    gradients : list of array or None
        One for each output of the node; None where nothing has arrived.
    """
    waiting = _dependencies(roots)
    arrived: dict[tuple[Node, int], Any] = {}
    for edge, grad in zip(roots, grads, strict=True):
        _add(arrived, ends_of(edge), grad)
    ready = [node for node in waiting if not waiting[node]]
    while ready:
        node = max(ready, key=_sequence_number)
        ready.remove(node)
        gradients = [arrived.pop((node, nr), None) for nr in range(len(node.output_specs()))]
        yield node, gradients
        for end, grad in _derivatives(node, gradients):
            if grad is not None:
                _add(arrived, end, grad)
            waiting[end[0]] -= 1
            if not waiting[end[0]]:
                ready.append(end[0])


def _dependencies(roots: Sequence[Edge]) -> dict[Node, int]:
    """Return how many gradients each node waits for: as many as edges lead to it from nodes that will run."""
    counts = {ends_of(root)[0]: 0 for root in roots}
    unseen = list(counts)
    while unseen:
        for child, _ in _ends(unseen.pop()):
            if child not in counts:
                unseen.append(child)
            counts[child] = counts.get(child, 0) + 1
    return counts


def _ends(node: Node) -> list[tuple[Node, int]]:
    return [ends_of(edge) for edge in node.edges if edge is not None]


def _sequence_number(node: Node) -> int:
    return node.seq


def _derivatives(node: Node, gradients: list[Any]) -> Iterator[tuple[tuple[Node, int], Any]]:
    """Yield, for each edge of a node, where it leads and the gradient that goes there, fitted to what it is of."""
    results = node.apply(gradients if node.multi else gradients[0]) if node.edges else ()
    for index, edge in enumerate(node.edges):
        if edge is None:
            continue
        child, nr = ends_of(edge)
        grad = results[index]
        yield (child, nr), grad if grad is None else validate_array(node, index, grad, *child.output_specs()[nr])


def _add(arrived: dict[tuple[Node, int], Any], end: tuple[Node, int], grad: Any) -> None:
    arrived[end] = arrived[end] + grad if end in arrived else grad
