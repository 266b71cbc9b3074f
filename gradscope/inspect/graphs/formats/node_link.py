"""Node-link JSON, with everything that the graph knows."""

from __future__ import annotations

from typing import Any

import networkx

from ...output.terminal_text import json_text
from ..graph_model import BackwardGraph
from .graph_format_registry import graph_format
from .plain import edge_scalars, node_json

__all__ = ["FORMAT", "VERSION", "to_json"]

FORMAT = "gradscope backward graph"
VERSION = 1


@graph_format("json", place=5)
def to_json(graph: BackwardGraph) -> str:
    """Return a graph as node-link JSON.

    Parameters
    ----------
    graph : BackwardGraph
        Of any size.

    Returns
    -------
    str
        ``networkx.node_link_graph(json.loads(text), edges="links")`` reads it. Its ``"graph"`` has ``"format"``,
        ``"version"`` (raised when a reader would have to change) and ``"roots"``.

    Examples
    --------
    >>> import json
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> data = json.loads(to_json(gi.graph(gs.ones(2, requires_grad=True).exp())))
    >>> data["graph"]["version"], [(node["operator"], node["outputs"]) for node in data["nodes"]][0]
    (1, ('Exp', [{'shape': [2], 'dtype': 'float32', 'device': 'cpu'}]))
    """
    plain = networkx.MultiDiGraph(format=FORMAT, version=VERSION, **graph.graph)
    plain.add_nodes_from((key, _without_key(node_json(data))) for key, data in graph.nodes(data=True))
    for source, target, number, data in graph.edges(keys=True, data=True):
        plain.add_edge(source, target, number, **edge_scalars(data))
    return json_text(_node_link(plain), separators=(",", ":")) + "\n"


def _node_link(plain: networkx.MultiDiGraph) -> dict[str, Any]:
    data: dict[str, Any]
    try:
        data = networkx.node_link_data(plain, edges="links")
    except TypeError:  # networkx before 3.4 has another name for it, and the same default
        data = networkx.node_link_data(plain, link="links")
    return data


def _without_key(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in ("id", "key")}
