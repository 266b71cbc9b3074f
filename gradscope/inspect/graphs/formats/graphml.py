"""GraphML, for Gephi, yEd, Cytoscape and their kin."""

from __future__ import annotations

import io

import networkx

from ...output.terminal_text import printable
from ..graph_model import BackwardGraph
from .graph_format_registry import graph_format
from .plain import edge_scalars, node_scalars

__all__ = ["to_graphml"]


@graph_format("graphml", place=4)
def to_graphml(graph: BackwardGraph) -> str:
    """Return a graph in GraphML, its attributes as numbers and text.

    Parameters
    ----------
    graph : BackwardGraph
        Of any size.

    Returns
    -------
    str
        :func:`networkx.read_graphml` reads it.

    Examples
    --------
    >>> import io
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> import networkx
    >>> text = to_graphml(gi.graph(gs.ones(2, requires_grad=True).exp()))
    >>> read = networkx.parse_graphml(text, force_multigraph=True)
    >>> [data["operator"] for _, data in read.nodes(data=True)]
    ['Exp', 'AccumulateGrad']
    """
    plain = networkx.MultiDiGraph(roots=" ".join(map(str, graph.graph.get("roots", ()))))
    plain.add_nodes_from((str(key), _clean(node_scalars(data))) for key, data in graph.nodes(data=True))
    for source, target, number, data in graph.edges(keys=True, data=True):
        plain.add_edge(str(source), str(target), number, **edge_scalars(data))
    stream = io.BytesIO()
    # This is the writer in pure Python: networkx would take lxml where it is installed, which is stricter.
    networkx.write_graphml_xml(plain, stream)
    return stream.getvalue().decode()


def _clean(data: dict[str, object]) -> dict[str, object]:
    return {name: printable(value) if isinstance(value, str) else value for name, value in data.items()}
