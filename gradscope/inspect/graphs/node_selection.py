"""Naming a node in words, and cutting a part out of a graph."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable
from typing import Any

from .graph_model import BackwardGraph

__all__ = ["NodeNotFoundError", "find_node", "reachable", "roots_of", "subgraph"]


class NodeNotFoundError(ValueError):
    """No node of the graph, or more than one, answers to a name.

    See Also
    --------
    find_node : raises it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> graph = gi.graph(gs.ones(2, requires_grad=True).exp().sum())
    >>> try:
    ...     gi.find_node(graph, "Tanh")
    ... except gi.NodeNotFoundError as error:
    ...     print("Tanh" in str(error))
    True
    """


def find_node(graph: BackwardGraph, name: Any) -> Any:
    """Return the key of the node that `name` means.

    Parameters
    ----------
    name : int or str
        A key; ``'12'`` or ``'node:12'`` (place in the engine's order); the path of a parameter (``'fc1.weight'``,
        ``'param:fc1.weight'``); the name of a group; or the name of an operator, if it occurs once (``'Tanh'``,
        ``'op:Tanh'``). ``*`` and ``?`` are as in file names.

    Raises
    ------
    NodeNotFoundError
        If there is none, or several.

    See Also
    --------
    subgraph, graph

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(2, requires_grad=True)
    >>> g = gi.graph(w.exp().sum(), params={"w": w})
    >>> [g.nodes[gi.find_node(g, name)]["index"] for name in ("w", "Exp", "node:0")]
    [2, 1, 0]
    >>> gi.find_node(g, "b")
    Traceback (most recent call last):
        ...
    gradscope.inspect.graphs.node_selection.NodeNotFoundError: there is no node 'b' in this graph
    It takes a number from 0 to 2, a parameter or an operator: w, Sum, Exp, AccumulateGrad
    """
    if not isinstance(name, str):
        if name in graph:
            return name
        raise NodeNotFoundError(f"there is no node with key {name!r} in this graph")
    if name in graph:
        return name
    kind, found, rest = name.partition(":")
    if not (found and kind in _WAYS):
        kind, rest = "", name
    for way in [kind] if kind else list(_WAYS):
        matches = _matches(graph, way, rest)
        if len(matches) == 1:
            return matches[0]
        if matches:
            indices = ", ".join(str(graph.nodes[key]["index"]) for key in matches[:6])
            more = ", ..." if len(matches) > 6 else ""
            raise NodeNotFoundError(
                f"{name!r} means {len(matches)} nodes\nName one by its number in the engine's order: {indices}{more}"
            )
    raise NodeNotFoundError(f"there is no node {name!r} in this graph\n{_suggestion(graph, rest)}")


_WAYS = {"node": (), "param": ("parameter",), "group": ("name",), "op": ("operator", "name")}


def _matches(graph: BackwardGraph, way: str, text: str) -> list[Any]:
    if way == "node":
        return [key for key, index in graph.nodes(data="index") if text.isdigit() and index == int(text)]
    exact: list[Any] = []
    close: list[Any] = []
    for key, data in graph.nodes(data=True):
        if way == "group" and "members" not in data:
            continue
        values = [data[attribute] for attribute in _WAYS[way] if data[attribute]]
        if text in values:
            exact.append(key)
        elif any(fnmatch.fnmatchcase(value, text) for value in values):
            close.append(key)
    return exact or close


def _suggestion(graph: BackwardGraph, text: str) -> str:
    known = [
        data[kind]
        for kind in ("parameter", "name")
        for data in graph.nodes.values()
        if kind == "parameter" or "members" in data
    ]
    known += [data["operator"] for data in graph.nodes.values()]
    known = [name for name in dict.fromkeys(known) if name]
    close = difflib.get_close_matches(text, known, n=3)
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}?"
    most = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
    return f"It takes a number from 0 to {len(graph) - 1}, a parameter or an operator: {most}"


def roots_of(graph: BackwardGraph) -> list[Any]:
    """Return the nodes where gradients enter: those of the losses that are left, and any other that none leads to."""
    roots = [key for key in graph.graph.get("roots", ()) if key in graph]
    return list(dict.fromkeys(roots + [key for key, count in graph.in_degree() if not count]))


def reachable(graph: BackwardGraph, keys: Iterable[Any], *, upwards: bool = False) -> set[Any]:
    """Return the nodes that gradients of `keys` come to, and `keys`; `upwards`, those they come from."""
    neighbours = graph.pred if upwards else graph.succ
    found = set(keys)
    stack = list(found)
    while stack:
        for key in neighbours[stack.pop()]:
            if key not in found:
                found.add(key)
                stack.append(key)
    return found


def subgraph(graph: BackwardGraph, source: Any = None, target: Any = None) -> BackwardGraph:
    """Return the part of a graph that lies between two nodes: all nodes on a path from one to the other.

    Parameters
    ----------
    source, target : node or str, optional
        As :func:`find_node` takes them. Without `source` from the losses; without `target` to all leaves.

    Returns
    -------
    BackwardGraph
        A copy; its nodes are in the order of `graph`.

    Raises
    ------
    NodeNotFoundError
        If there is no such node.
    ValueError
        If no gradient of `source` comes to `target`.

    See Also
    --------
    find_node, fold

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    >>> g = gi.graph((a.exp() * b.tanh()).sum(), params={"a": a, "b": b})
    >>> [data["operator"] for _, data in gi.subgraph(g, "Mul", "b").nodes(data=True)]
    ['Mul', 'Tanh', 'AccumulateGrad']
    """
    starts = roots_of(graph) if source is None else [find_node(graph, source)]
    kept = reachable(graph, starts)
    if target is not None:
        end = find_node(graph, target)
        if end not in kept:
            raise ValueError(f"no gradient of {_words(graph, starts)} comes to {_words(graph, [end])}")
        kept &= reachable(graph, [end], upwards=True)
    part = BackwardGraph(**graph.graph)
    part.source = graph.source
    part.add_nodes_from((key, dict(data)) for key, data in graph.nodes(data=True) if key in kept)
    for key, other, number, data in graph.edges(keys=True, data=True):
        if key in kept and other in kept:
            part.add_edge(key, other, number, **data)
    part.graph["roots"] = [key for key in starts if key in kept]
    return part


def _words(graph: BackwardGraph, keys: list[Any]) -> str:
    if len(keys) != 1:
        return "the losses"
    data = graph.nodes[keys[0]]
    return f"{data['name']} (node {data['index']}{', ' + data['parameter'] if data['parameter'] else ''})"
