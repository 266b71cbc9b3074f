"""A backward graph in numbers: how many nodes of what, how deep, how wide, what it keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..output.number_format import count, format_bytes
from ..output.terminal_text import one_line
from .quotient import topological

if TYPE_CHECKING:
    from .graph_model import BackwardGraph

__all__ = ["GraphStatistics", "format_bytes", "graph_statistics"]


@dataclass(frozen=True, slots=True, repr=False)
class GraphStatistics:
    """The numbers of a graph.

    Attributes
    ----------
    depth : int
        Nodes on the longest path.
    width : int
        The largest number of nodes at one distance (by the longest path) from the losses.
    operators, modules : dict of str to int
        How many nodes, most first; a folded group counts as the nodes in it, and ``''`` is no module.
    saved_tensors, saved_bytes : int
        What the nodes hold for their derivatives. A tensor that two nodes saved counts twice.
    modified : int
        Saved tensors that have been written since.
    reached, not_reached : tuple of str
        Parameters that gradients arrive at, and those that were named when the graph was made and are not in it.

    See Also
    --------
    graph_statistics

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> gi.graph_statistics(gi.graph(gs.ones(3, requires_grad=True).exp().sum())).nodes
    3
    """

    nodes: int
    edges: int
    depth: int
    width: int
    operators: dict[str, int]
    modules: dict[str, int]
    saved_tensors: int
    saved_bytes: int
    modified: int
    reached: tuple[str, ...]
    not_reached: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [
            f"{count(self.nodes, 'node')}, {count(self.edges, 'edge')}, {self.depth} deep, {self.width} wide",
            f"saved       {format_bytes(self.saved_bytes)} in {count(self.saved_tensors, 'tensor')}"
            + (f", {self.modified} of them modified since" if self.modified else ""),
            f"operators   {_most(self.operators)}",
        ]
        modules = {name: number for name, number in self.modules.items() if name}
        if modules:
            lines.append(f"modules     {_most(modules)}")
        lines.append(f"parameters  {len(self.reached)} reached" + _missing(self.not_reached))
        return "\n".join(map(one_line, lines))


def graph_statistics(graph: BackwardGraph) -> GraphStatistics:
    """Return a graph in numbers.

    Returns
    -------
    GraphStatistics
        Printed, a few lines of text.

    See Also
    --------
    graph

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> net = gs.nn.Linear(3, 2)
    >>> net.spare = gs.nn.Parameter(gs.ones(2))
    >>> print(gi.graph_statistics(gi.graph(net(gs.ones(1, 3)).sum(), params=net)))
    4 nodes, 3 edges, 3 deep, 2 wide
    saved       12 B in 1 tensor
    operators   AccumulateGrad 2, Sum 1, Addmm 1
    parameters  2 reached, 1 not reached: spare
    """
    operators: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    tensors = nbytes = modified = 0
    reached = []
    for _, data in graph.nodes(data=True):
        modules[data["module"]] += data.get("count", 1)
        if "members" in data:
            operators.update(data["operators"])
            nbytes += data["saved_bytes"]
            continue
        operators[data["operator"]] += 1
        for saved in data["saved"]:
            tensors += saved.state != "released"
            nbytes += saved.nbytes
            modified += saved.state == "modified"
        if data["parameter"]:
            reached.append(data["parameter"])
    depth, width = _extent(graph)
    there = set(reached)
    return GraphStatistics(
        nodes=len(graph),
        edges=graph.number_of_edges(),
        depth=depth,
        width=width,
        operators=dict(operators.most_common()),
        modules=dict(modules.most_common()),
        saved_tensors=tensors,
        saved_bytes=nbytes,
        modified=modified,
        reached=tuple(reached),
        not_reached=tuple(name for name in graph.graph.get("parameters", ()) if name not in there),
    )


def _extent(graph: BackwardGraph) -> tuple[int, int]:
    level: dict[object, int] = {}
    for key in topological(graph):
        level[key] = max((level[source] + 1 for source in graph.pred[key]), default=0)
    if not level:
        return 0, 0
    return max(level.values()) + 1, max(Counter(level.values()).values())


def _most(counts: dict[str, int], most: int = 8) -> str:
    shown = ", ".join(f"{name} {number:,}" for name, number in list(counts.items())[:most]) or "none"
    return shown + (f", and {len(counts) - most} more" if len(counts) > most else "")


def _missing(names: tuple[str, ...], most: int = 8) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
    return f", {len(names)} not reached: {shown}"
