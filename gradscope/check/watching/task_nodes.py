"""The nodes of a backward, and which gradients have come to them."""

from __future__ import annotations

from typing import Any

from ...inspect.adapters import Adapter

__all__ = ["arrivals", "nodes_of"]


def nodes_of(adapter: Adapter, task: Any) -> list[Any]:
    """Return the nodes of a backward pass.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> from gradscope.runtime.engine.graph_task import GraphTask
    >>> loss = gs.ones(2, requires_grad=True).exp().sum()
    >>> [node.name() for node in nodes_of(NativeAdapter(), GraphTask([loss.grad_fn], [1.0]))]
    ['SumBackward0', 'ExpBackward0', 'AccumulateGrad']
    """
    found = dict.fromkeys(node for node, _ in adapter.task_roots(task))
    stack = list(found)
    while stack:
        for child, _ in adapter.edges(stack.pop()):
            if child is not None and child not in found:
                found[child] = None
                stack.append(child)
    return list(found)


def arrivals(adapter: Adapter, task: Any, receiver: tuple[Any, int], now: Any) -> int:
    """Return how many gradients have come to an input of a node when another node is about to run.

    Nodes run in the order of their sequence numbers, the highest first.

    Parameters
    ----------
    receiver : tuple of (node, int)
        The node, and which of its gradients.
    now : object
        The node that is about to run, or runs.
    """
    number = adapter.sequence_nr(now)
    found = sum(root == receiver for root in adapter.task_roots(task))
    for node in nodes_of(adapter, task):
        if adapter.sequence_nr(node) > number and adapter.task_runs(task, node):
            found += sum(edge == receiver for edge in adapter.edges(node))
    return found
