"""Fewer, larger nodes: modules, repeated blocks, chains and stretches of the execution order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..records.object_search import no_collection
from .quotient import Partition, acyclic, quotient, topological
from .repeated_blocks import block_runs

if TYPE_CHECKING:
    from .graph_model import BackwardGraph

__all__ = ["FOLDS", "fold", "fold_to_fit", "unfold"]

FOLDS = ("module", "blocks", "chains", "order")


def fold(graph: BackwardGraph, by: str = "module", *, depth: int = 1, size: int = 50) -> BackwardGraph:
    """Return a graph in which groups of nodes are one node each.

    Folding never makes a cycle: a module that runs twice, with something else in between, becomes two groups. What
    could be reached before can be reached after. Folds can follow one another, and :func:`unfold` takes them back.

    Parameters
    ----------
    graph : BackwardGraph
        It is not changed.
    by : str
        ``'module'``: the nodes of each module, nested down to `depth`. ``'blocks'``: repeated modules of the same
        structure (``layers.0`` to ``layers.11``), which become one node ``layers.[0-11]``; and each other numbered
        module. ``'chains'``: nodes where each is the only way on from the one before. ``'order'``: stretches of the
        execution order, which works on any graph.
    depth : int
        With ``'module'``: how many parts of a module's path to keep: 1 leaves ``layers``, 2 ``layers.0``.
    size : int
        With ``'order'``: into how many stretches to cut.

    Returns
    -------
    BackwardGraph
        A group has a string as its key, ``kind`` (``'module'``, ``'blocks'``, ``'chain'`` or ``'order'``), ``name``,
        ``members``, ``count`` (nodes before any folding), ``parameters``, ``saved_bytes``, ``operators`` and ``mark``.
        An edge from or to a group stands for ``count`` edges. ``source`` is the graph that was folded.

    Raises
    ------
    ValueError
        If there is no such way of folding, or `depth` or `size` is not positive.

    See Also
    --------
    unfold : The way back.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> net = gs.nn.Sequential(*(gs.nn.Linear(3, 3) for _ in range(4)))
    >>> with gi.track():
    ...     loss = net(gs.ones(1, 3)).sum()
    >>> g = gi.graph(loss, params=net)
    >>> [data["name"] for _, data in gi.fold(g, depth=1).nodes(data=True)]
    ['SumBackward0', '3', '2', '1', '0']
    >>> folded = gi.fold(g, "blocks")
    >>> [data["name"] for _, data in folded.nodes(data=True)]
    ['SumBackward0', '[0-3] ×4']
    >>> len(gi.unfold(folded)) == len(g)
    True
    """
    if depth < 1 or size < 1:
        raise ValueError(f"fold() takes a positive depth and size, got depth={depth}, size={size}")
    if by not in FOLDS:
        raise ValueError(f"there is no folding by {by!r}: choose one of {', '.join(map(repr, FOLDS))}")
    with no_collection():
        if by == "module":
            return _by_module(graph, depth)
        if by == "blocks":
            return _by_blocks(graph)
        return _by_chains(graph) if by == "chains" else _by_order(graph, size)


def unfold(folded: BackwardGraph, key: Any = None) -> BackwardGraph:
    """Return a folded graph with one group opened, or as it was before its last folding.

    Parameters
    ----------
    folded : BackwardGraph
        From :func:`fold`.
    key : node, optional
        The group to open; all by default.

    Raises
    ------
    ValueError
        If `folded` has not been folded, or `key` is no group of it.

    See Also
    --------
    fold

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> net = gs.nn.Sequential(gs.nn.Linear(3, 3), gs.nn.Tanh())
    >>> with gi.track():
    ...     loss = net(gs.ones(1, 3)).sum()
    >>> folded = gi.fold(gi.graph(loss, params=net))
    >>> [data["name"] for _, data in gi.unfold(folded, "0").nodes(data=True)]
    ['SumBackward0', 'TanhBackward0', 'AddmmBackward0', 'AccumulateGrad', 'AccumulateGrad']
    """
    source = folded.source
    if source is None:
        raise ValueError("this graph has not been folded, or is a copy that does not know what it was folded from")
    if key is None:
        return source
    if key not in folded or "members" not in folded.nodes[key]:
        raise ValueError(f"there is no group {key!r} in this graph")
    groups = {group: data for group, data in folded.nodes(data=True) if "members" in data and group not in source}
    if key not in groups:  # the group was folded earlier: it is opened in the graph below, and the rest is folded again
        source = unfold(source, key)
    partition = {member: group for group, data in groups.items() if group != key for member in data["members"]}
    return quotient(source, partition, lambda group, _: _label(groups[group]))


def _label(data: dict[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("kind", "name", "module")}


# --- modules ---


def _by_module(graph: BackwardGraph, depth: int) -> BackwardGraph:
    levels = max((path.count(".") + 1 for _, path in graph.nodes(data="module") if path), default=0)
    for level in range(levels, depth - 1, -1):
        graph = _one_level(graph, level)
    return graph


def _one_level(graph: BackwardGraph, depth: int) -> BackwardGraph:
    paths = _paths(graph) - {""}
    parents = {path[:end] for path in paths for end, letter in enumerate(path) if letter == "."}
    # The own operators of a module that contains others wait for its level.
    closed = {path: ".".join(path.split(".")[:depth]) for path in paths if _deep(path, depth) or path not in parents}
    partition: Partition = {key: closed[path] for key, path in graph.nodes(data="module") if path in closed}
    partition = acyclic(graph, partition, _part)
    return quotient(graph, partition, lambda group, _: {"kind": "module", "name": group, "module": _path(group)})


def _deep(path: str, depth: int) -> bool:
    return path.count(".") + 1 >= depth


def _part(group: Hashable, number: int, total: int) -> str:
    return f"{group} ({number} of {total})"


def _path(group: Hashable) -> str:
    return str(group).partition(" (")[0]


# --- repeated blocks ---


def _by_blocks(graph: BackwardGraph) -> BackwardGraph:
    runs = block_runs(graph)
    partition: Partition = {key: run.name for run in runs for block in run.blocks for key in block.members}
    names: dict[Hashable, tuple[str, str]] = {run.name: (run.name, run.parent) for run in runs}

    def part(group: Hashable, number: int, total: int) -> str:
        name = _part(group, number, total)
        names[name] = name, names[group][1]
        return name

    partition = acyclic(graph, partition, part)

    def describe(group: Hashable, _: list[Any]) -> dict[str, Any]:
        name, module = names[group]
        return {"kind": "blocks", "name": name, "module": module}

    return quotient(graph, partition, describe)


# --- chains ---


def _by_chains(graph: BackwardGraph) -> BackwardGraph:
    after = _only_links(graph)
    inside = set(after.values())
    partition: Partition = {}
    for first in after:
        if first not in inside:
            name, key = f"chain {first}", first
            while key is not None:
                partition[key] = name
                key = after.get(key)
    return quotient(graph, partition, lambda _, members: _chain(graph, members))


def _only_links(graph: BackwardGraph) -> dict[Any, Any]:
    """Return the next node of each whose gradients all go there, over one edge, where they are all that it gets."""
    arriving = dict(graph.in_degree())
    return {
        key: child
        for key, into in graph.adjacency()
        if len(into) == 1
        for child, parallel in into.items()
        if len(parallel) == 1 and arriving[child] == 1 and next(iter(parallel.values())).get("count", 1) == 1
    }


def _chain(graph: BackwardGraph, members: list[Any]) -> dict[str, Any]:
    nodes = [graph.nodes[key] for key in members]
    modules = {data["module"] for data in nodes}
    return {
        "kind": "chain",
        "name": _shortened([_title(data) for data in nodes]),
        "module": modules.pop() if len(modules) == 1 else "",
    }


def _title(data: dict[str, Any]) -> str:
    name: str = data["parameter"] or data["operator"] or data["name"]
    return name


def _shortened(titles: Iterable[str], most: int = 4) -> str:
    """Return ``'Mul ×3 → Tanh'`` for four titles; the middle is left out where it would be long."""
    runs = [(title, len(list(same))) for title, same in groupby(titles)]
    texts = [title if count == 1 else f"{title} ×{count}" for title, count in runs]
    if len(texts) > most:
        texts = [*texts[: most - 1], "…", texts[-1]]
    return " → ".join(texts)


# --- stretches of the execution order ---


def _by_order(graph: BackwardGraph, size: int) -> BackwardGraph:
    order = topological(graph)
    length = -(-len(order) // size)
    partition: Partition = {key: f"order {i // length}" for i, key in enumerate(order)}
    return quotient(graph, partition, lambda _, members: _stretch(graph, members))


def _stretch(graph: BackwardGraph, members: list[Any]) -> dict[str, Any]:
    indices = [graph.nodes[key]["index"] for key in members]
    operators: Counter[str] = Counter()
    for key in members:
        data = graph.nodes[key]
        operators.update(data["operators"] if "members" in data else {data["operator"]: 1})
    common = ", ".join(f"{name} ×{count}" for name, count in operators.most_common(3))
    return {"kind": "order", "name": f"nodes {min(indices)}-{max(indices)}: {common}"}


# --- as much as a picture needs ---


def fold_to_fit(graph: BackwardGraph, most: int = 120) -> BackwardGraph:
    """Return a graph of at most `most` nodes, folded no more than that takes.

    Returns
    -------
    BackwardGraph
        `graph` itself if it is small enough.

    See Also
    --------
    fold, unfold

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> y = gs.ones(2, requires_grad=True)
    >>> for _ in range(1000):
    ...     y = y.tanh()
    >>> [data["name"] for _, data in gi.fold_to_fit(gi.graph(y.sum())).nodes(data=True)]
    ['Sum → Tanh ×1000 → AccumulateGrad']
    """
    if len(graph) <= most:
        return graph
    depth = _fitting_depth(graph, most)
    if depth:
        graph = fold(graph, "module", depth=depth)
    if len(graph) > most and any(part.isdigit() for path in _paths(graph) for part in path.split(".")):
        graph = fold(graph, "blocks")
    if len(graph) > most:
        enough = len(graph) - len(_only_links(graph)) <= most
        graph = fold(graph, "chains") if enough else fold(graph, "order", size=most)
    return graph


def _paths(graph: BackwardGraph) -> set[str]:
    return {path for _, path in graph.nodes(data="module")}


def _fitting_depth(graph: BackwardGraph, most: int) -> int:
    """Return how deep the module paths may be for the picture to fit, 0 if none is short enough."""
    paths = Counter(path for _, path in graph.nodes(data="module"))
    alone = paths.pop("", 0)
    groups: dict[int, set[str]] = defaultdict(set)
    deepest = max((path.count(".") + 1 for path in paths), default=0)
    for depth in range(1, deepest + 1):
        groups[depth] = {".".join(path.split(".")[:depth]) for path in paths}
    fitting = [depth for depth, found in groups.items() if len(found) + alone <= most]
    return max(fitting, default=0)
