"""The ways that gradients take from a loss to a parameter: how many, which, and what lies on all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import networkx

from .graph_model import BackwardGraph
from .node_selection import find_node, reachable, roots_of
from .quotient import topological

__all__ = ["count_paths", "dominators", "paths", "shortest_path"]


def count_paths(graph: BackwardGraph, target: Any, source: Any = None) -> int:
    """Return how many paths lead from the losses to a node: how many terms the chain rule sums there.

    Parameters
    ----------
    target : node or str
        As :func:`find_node` takes it.
    source : node or str, optional
        Where paths begin; at all losses by default.

    Returns
    -------
    int
        Parallel edges make paths of their own: ``x * x`` has two to ``x``. It is found without walking them, so that it
        may have many digits; 0 where no gradient arrives.

    Raises
    ------
    NodeNotFoundError
        If there is no such node.

    See Also
    --------
    paths, shortest_path

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = y = gs.ones((), requires_grad=True)
    >>> for _ in range(100):
    ...     y = y * y
    >>> gi.count_paths(gi.graph(y, params={"x": x}), "x")
    1267650600228229401496703205376
    """
    end, starts = find_node(graph, target), _starts(graph, source)
    between = reachable(graph, starts) & reachable(graph, [end], upwards=True)
    counts: dict[Any, int] = dict.fromkeys((key for key in starts if key in between), 1)
    for key in topological(graph):
        if key == end or key not in between:
            continue
        # The count is taken out of the table, for the numbers of a deep graph are long.
        count = counts.pop(key, 0)
        for child, parallel in graph.succ[key].items():
            if child in between:
                counts[child] = counts.get(child, 0) + count * _edges(parallel)
    return counts.get(end, 0)


def _edges(parallel: Any) -> int:
    return sum(data.get("count", 1) for data in parallel.values())


def paths(graph: BackwardGraph, target: Any, source: Any = None) -> Iterator[tuple[Any, ...]]:
    """Yield the paths from the losses to a node, one after the other.

    Parameters
    ----------
    target : node or str
        As :func:`find_node` takes it.
    source : node or str, optional
        Where paths begin; at all losses by default.

    Yields
    ------
    tuple of node
        From a loss to `target`. A path over parallel edges comes once for each, as :func:`count_paths` counts it. No
        dead end is walked: the first of any number of paths comes at once.

    Raises
    ------
    NodeNotFoundError
        If there is no such node.

    See Also
    --------
    shortest_path, count_paths

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.ones(2, requires_grad=True)
    >>> g = gi.graph((x.exp() + x).sum(), params={"x": x})
    >>> for path in gi.paths(g, "x"):
    ...     print(" → ".join(g.nodes[key]["operator"] for key in path))
    Sum → Add → Exp → AccumulateGrad
    Sum → Add → AccumulateGrad
    """
    end, starts = find_node(graph, target), _starts(graph, source)
    return _walk(graph, starts, end, reachable(graph, [end], upwards=True))


def _walk(graph: BackwardGraph, starts: list[Any], end: Any, leading: set[Any]) -> Iterator[tuple[Any, ...]]:
    path: list[Any] = []
    pending = [iter([key for key in starts if key in leading])]
    while pending:
        key = next(pending[-1], None)
        if key is None:
            pending.pop()
            if path:
                path.pop()
            continue
        if key == end:
            yield (*path, key)
            continue
        path.append(key)
        further = graph.succ[key].items()
        pending.append(iter([child for child, edges in further if child in leading for _ in range(_edges(edges))]))


def shortest_path(graph: BackwardGraph, target: Any, source: Any = None) -> tuple[Any, ...]:
    """Return a shortest path from the losses to a node.

    Parameters
    ----------
    target : node or str
        As :func:`find_node` takes it.
    source : node or str, optional
        Where the path begins; at any loss by default.

    Returns
    -------
    tuple of node
        Empty where no gradient arrives.

    Raises
    ------
    NodeNotFoundError
        If there is no such node.

    See Also
    --------
    paths

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.ones(2, requires_grad=True)
    >>> g = gi.graph((x.exp() + x).sum(), params={"x": x})
    >>> [g.nodes[key]["operator"] for key in gi.shortest_path(g, "x")]
    ['Sum', 'Add', 'AccumulateGrad']
    """
    end, starts = find_node(graph, target), _starts(graph, source)
    came: dict[Any, Any] = dict.fromkeys(starts)
    queue = deque(starts)
    while queue and end not in came:
        key = queue.popleft()
        for child in graph.succ[key]:
            if child not in came:
                came[child] = key
                queue.append(child)
    if end not in came:
        return ()
    path = [end]
    while (before := came[path[-1]]) is not None:
        path.append(before)
    return tuple(reversed(path))


def dominators(graph: BackwardGraph, target: Any, source: Any = None) -> list[Any]:
    """Return the nodes that every gradient of a node passes through.

    Where one of them makes a NaN, an Inf or zeros of a gradient, nothing else arrives at `target`.

    Parameters
    ----------
    target : node or str
        As :func:`find_node` takes it.
    source : node or str, optional
        Where paths begin; at all losses by default.

    Returns
    -------
    list of node
        From the loss to `target`, which is the last; empty where no gradient arrives.

    Raises
    ------
    NodeNotFoundError
        If there is no such node.

    References
    ----------
    K. D. Cooper, T. J. Harvey and K. Kennedy, A Simple, Fast Dominance Algorithm, 2001.

    See Also
    --------
    paths

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.ones(2, requires_grad=True)
    >>> g = gi.graph((x.exp() + x).log().sum(), params={"x": x})
    >>> [g.nodes[key]["operator"] for key in gi.dominators(g, "x")]
    ['Sum', 'Log', 'Add', 'AccumulateGrad']
    """
    end, starts = find_node(graph, target), _starts(graph, source)
    between = reachable(graph, starts) & reachable(graph, [end], upwards=True)
    if end not in between:
        return []
    flow = networkx.DiGraph()
    entry = object()  # an extra node above all losses
    flow.add_edges_from((entry, key) for key in starts if key in between)
    flow.add_edges_from((key, child) for key in between for child in graph.succ[key] if child in between)
    above = networkx.immediate_dominators(flow, entry)
    chain = [end]
    while above[chain[-1]] is not entry:
        chain.append(above[chain[-1]])
    return chain[::-1]


def _starts(graph: BackwardGraph, source: Any) -> list[Any]:
    return roots_of(graph) if source is None else [find_node(graph, source)]
