"""Putting nodes of a graph together into groups, so that the result is again a graph without cycles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import networkx

from ..records.object_search import no_collection
from ..records.tensor_statistics import combined_norm

if TYPE_CHECKING:
    from .graph_model import BackwardGraph

__all__ = ["acyclic", "group_attributes", "incoming_norm", "mark_of", "members_of", "quotient", "topological"]

Partition = dict[Any, Hashable]


def topological(graph: networkx.MultiDiGraph) -> list[Any]:
    """Return the keys in an order in which every edge points forward; those that lie on a cycle are left out."""
    return _sorted({key: list(into) for key, into in graph.adjacency()})


def _sorted(targets: Mapping[Any, Iterable[Any]]) -> list[Any]:
    waiting: dict[Any, int] = dict.fromkeys(targets, 0)
    for children in targets.values():
        for child in children:
            waiting[child] += 1
    order = [key for key, count in waiting.items() if not count]
    for key in order:  # the list grows as it is read
        for child in targets[key]:
            waiting[child] -= 1
            if not waiting[child]:
                order.append(child)
    return order


# --- keeping it free of cycles ---


def acyclic(
    graph: networkx.MultiDiGraph, partition: Partition, part_of: Callable[[Hashable, int, int], Hashable]
) -> Partition:
    """Return a partition with those groups split whose contraction would make a cycle.

    A module that is called twice, with something else in between, is both before and after that something: it becomes
    two groups.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Without cycles.
    partition : mapping
        From key to group; keys that it does not have stay by themselves.
    part_of : callable
        ``part_of(group, number, total)`` names a part, numbered from 1 in forward order.
    """
    targets = _contracted(graph, partition)
    if len(_sorted(targets)) == len(targets):
        return partition
    tangled = set()
    for component in networkx.strongly_connected_components(networkx.DiGraph(targets)):
        if len(component) > 1:
            tangled |= component
    ranks = _ranks(graph, partition, tangled)
    levels: dict[Hashable, set[int]] = defaultdict(set)
    for key, rank in ranks.items():
        if key in partition:
            levels[partition[key]].add(rank)
    numbers = {
        group: {rank: i for i, rank in enumerate(sorted(found, reverse=True), 1)} for group, found in levels.items()
    }
    split = dict(partition)
    for key, rank in ranks.items():
        if key in partition and len(numbers[partition[key]]) > 1:
            group = partition[key]
            split[key] = part_of(group, numbers[group][rank], len(numbers[group]))
    return split


def _contracted(graph: networkx.MultiDiGraph, partition: Partition) -> dict[Any, set[Any]]:
    # A node that stays by itself keeps its key; groups are told apart by their names.
    targets: dict[Any, set[Any]] = {partition.get(key, key): set() for key in graph}
    for key, into in graph.adjacency():
        group = partition.get(key, key)
        for child in into:
            other = partition.get(child, child)
            if other != group:
                targets[group].add(other)
    return targets


def _ranks(graph: networkx.MultiDiGraph, partition: Partition, tangled: set[Any]) -> dict[Any, int]:
    """Return how many changes of group lie above each node of the tangled groups.

    Edges between groups lead to a higher rank and edges inside never to a lower one, so (group, rank) has no cycle.
    """
    ranks: dict[Any, int] = {}
    for key in topological(graph):
        group = partition.get(key, key)
        if group not in tangled:
            continue
        rank = 0
        for source in graph.pred[key]:
            if source in ranks:
                rank = max(rank, ranks[source] + (partition.get(source, source) != group))
        ranks[key] = rank
    return ranks


# --- contraction ---


def quotient(
    graph: BackwardGraph, partition: Partition, describe: Callable[[Hashable, list[Any]], dict[str, Any]]
) -> BackwardGraph:
    """Return the graph with each group of two or more nodes contracted into one.

    Parameters
    ----------
    partition : mapping
        From key to group, without cycles (see :func:`acyclic`).
    describe : callable
        ``describe(group, members)`` gives attributes to set on the group's node beyond :func:`group_attributes`.

    Returns
    -------
    BackwardGraph
        Its groups have the group as key, told apart from the keys of `graph`. Edges from or to a group are one per pair
        of nodes, with ``count``; edges inside are gone.
    """
    members: dict[Hashable, list[Any]] = defaultdict(list)
    for key in graph:
        if key in partition:
            members[partition[key]].append(key)
    fresh = {group: _fresh(graph, group) for group, inside in members.items() if len(inside) > 1}
    owner = {key: fresh[group] for key, group in partition.items() if group in fresh}
    folded = type(graph)(**graph.graph)
    folded.source = graph
    with no_collection():
        groups = {
            fresh[group]: (inside, describe(group, inside)) for group, inside in members.items() if group in fresh
        }
        _add_nodes(folded, graph, owner, groups)
        _add_edges(folded, graph, owner)
    roots = [owner.get(key, key) for key in graph.graph.get("roots", ()) if key in graph]
    folded.graph["roots"] = list(dict.fromkeys(roots))
    return folded


def _fresh(graph: BackwardGraph, group: Hashable) -> Hashable:
    while group in graph:
        group = f"{group}'"
    return group


def _add_nodes(
    folded: BackwardGraph,
    graph: BackwardGraph,
    owner: Partition,
    groups: Mapping[Hashable, tuple[list[Any], dict[str, Any]]],
) -> None:
    nodes = dict(graph.nodes(data=True))  # the views of networkx are slow
    for key, data in nodes.items():
        group = owner.get(key)
        if group is None:
            folded.add_node(key, **data)
        elif group not in folded:
            inside, facts = groups[group]
            folded.add_node(group, **{**group_attributes(nodes, inside), **facts})


def _add_edges(folded: BackwardGraph, graph: BackwardGraph, owner: Partition) -> None:
    counts: Counter[tuple[Any, Any]] = Counter()
    first: dict[tuple[Any, Any], dict[str, Any]] = {}
    for source, into in graph.adjacency():
        start = owner.get(source, source)
        for target, parallel in into.items():
            end = owner.get(target, target)
            if start is source and end is target:
                for number, data in parallel.items():
                    folded.add_edge(start, end, number, **data)
            elif start != end:
                pair = start, end
                counts[pair] += sum(data.get("count", 1) for data in parallel.values())
                first.setdefault(pair, next(iter(parallel.values())))
    for (start, end), count in counts.items():
        data = first[start, end]
        folded.add_edge(start, end, 0, output_nr=data["output_nr"], input_nr=data["input_nr"], count=count)


def group_attributes(nodes: Mapping[Any, Mapping[str, Any]], members: list[Any]) -> dict[str, Any]:
    """Return what a group of nodes has in common, and in sum.

    Parameters
    ----------
    nodes : mapping
        From key to attributes.
    members : list
        Keys.

    Returns
    -------
    dict
        The attributes of a node, and ``members`` (keys of the graph that was folded), ``count`` (nodes of the graph
        before any folding), ``parameters`` (their number), ``saved_bytes``, ``operators`` (name to number) and
        ``mark``.
    """
    first, last = nodes[members[0]], nodes[members[-1]]
    operators: Counter[str] = Counter()
    count = parameters = saved_bytes = 0
    marks = set()
    locations: set[Any] = set()
    index, sequence = first["index"], 0
    for key in members:
        data = nodes[key]
        if "members" in data:
            operators.update(data["operators"])
            count += data["count"]
            parameters += data["parameters"]
            saved_bytes += data["saved_bytes"]
        else:
            operators[data["operator"]] += 1
            count += 1
            parameters += data["name"] == "AccumulateGrad"
            saved_bytes += sum([saved.nbytes for saved in data["saved"]])
        marks.add(mark_of(data))
        if len(locations) < 2:
            locations.add(data["location"])
        index = min(index, data["index"])
        sequence = max(sequence, data["sequence_nr"])
    return {
        "index": index,
        "name": "",
        "operator": "",
        "sequence_nr": sequence,
        "module": "",
        "parameter": "",
        "location": locations.pop() if len(locations) == 1 else None,
        "outputs": first["outputs"],
        "inputs": last["inputs"],
        "saved": (),
        "kind": "group",
        "members": tuple(members),
        "count": count,
        "parameters": parameters,
        "saved_bytes": saved_bytes,
        "operators": dict(operators.most_common()),
        "mark": next((mark for mark in ("nonfinite", "modified", "failed") if mark in marks), ""),
    }


def mark_of(data: Mapping[str, Any]) -> str:
    """Return what is wrong with a node: ``'nonfinite'`` gradients, a ``'modified'`` saved tensor, ``'failed'``, or ''.

    Parameters
    ----------
    data : mapping
        The node's attributes.
    """
    if "mark" in data:
        mark: str = data["mark"]
        return mark
    for name in ("grad_outputs", "grad_inputs"):
        for summary in data.get(name) or ():
            if summary is not None and (summary.nans or summary.infs):
                return "nonfinite"
    for saved in data["saved"]:
        if saved.state == "modified":
            return "modified"
    return "failed" if data.get("state") == "failed" else ""


def incoming_norm(data: Mapping[str, Any]) -> float | None:
    """Return the 2-norm over all elements of a node's incoming gradients; None where none has been seen.

    Parameters
    ----------
    data : mapping
        The node's attributes.
    """
    return combined_norm(None if summary is None else summary.norm for summary in data.get("grad_outputs") or ())


def members_of(folded: BackwardGraph, key: Any) -> list[Any]:
    """Return the nodes that a node of a folded graph stands for, in the graph before any folding."""
    found: list[Any] = []
    pending = [(folded, key)]
    while pending:
        graph, node = pending.pop()
        below = graph.source
        if below is None:
            found.append(node)
        elif node in below:  # the node was left as it is
            pending.append((below, node))
        else:
            pending.extend((below, member) for member in reversed(graph.nodes[node]["members"]))
    return found
