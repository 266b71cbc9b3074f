"""The backward graph of a loss as a networkx graph: what a notebook, a picture or an analysis starts from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx

from ..adapters import Adapter, adapter_for
from ..output.number_format import format_shape
from ..records.execution_order import NodeLinks, engine_order, walk
from ..records.module_tracking import Tracker, module_of_parameter
from ..records.naming import Names, name_graph
from ..records.object_search import no_collection
from ..records.records import NodeRecord, TensorSpec
from .record_interning import InternTable

__all__ = ["BackwardGraph", "annotate", "execution_order", "graph", "graph_of", "graph_of_roots"]

# The attributes that a node has only once it has run.
RUN_ATTRIBUTES = ("state", "grad_outputs", "grad_inputs", "seconds")


class BackwardGraph(networkx.MultiDiGraph):
    """A backward graph: a networkx graph that a notebook shows as a picture.

    Nodes and edges have the attributes that :func:`gradscope.inspect.graph` lists; every algorithm of networkx runs on
    it.

    Attributes
    ----------
    source : BackwardGraph or None
        What this graph was folded from.

    See Also
    --------
    graph, find_node

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> print(gi.graph(gs.ones(2, requires_grad=True).exp().sum()))
    BackwardGraph with 3 nodes and 2 edges
    """

    source: BackwardGraph | None = None

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # Drawing loads when a notebook asks for the picture.
        from .formats.notebook import mime_bundle

        return mime_bundle(self)

    def _repr_svg_(self) -> str:
        return self._repr_mimebundle_()["image/svg+xml"]

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]


def graph(loss: Any, params: Any = None, *, adapter: Adapter | None = None) -> BackwardGraph:
    """Return the graph that the backward of `loss` will run.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives leaves their names, and tells :func:`graph_statistics` which parameters to expect. By default the modules
        that :func:`track` saw, else the living modules that own the leaves. Nodes that use their parameters belong to
        them; which module made any other node is known only of what ran inside ``with gi.track():``.
    adapter : Adapter, optional
        The framework; that of `loss` by default.

    Returns
    -------
    BackwardGraph
        A :class:`networkx.MultiDiGraph`. Its nodes are stable keys (int) in the engine's order, with the attributes
        ``index`` (place in that order), ``name``, ``operator``, ``sequence_nr``, ``module``, ``parameter``,
        ``location`` (:class:`Location` or None), ``outputs`` (:class:`TensorSpec` of each forward output, so of each
        incoming gradient), ``inputs`` (of each gradient that the node produces; None where none is wanted) and
        ``saved`` (:class:`SavedRecord`, without summaries); a node into which nobody can look has ``blind``, which says
        why, and one that torch.compile has compiled ``inside`` (:class:`InnerOperator`, last call first). Its edges go
        the way of the gradients, from a node to those of its inputs, with ``output_nr`` (which of the
        gradients that the node produces; also the edge's key) and ``input_nr`` (which input of the receiver).
        ``graph.graph["roots"]`` lists the keys where gradients enter, ``graph.graph["parameters"]`` the names of all
        parameters of those modules. It holds no tensor and no node alive.

    Raises
    ------
    TypeError
        If `loss` is no tensor, or `params` none of these.
    RuntimeError
        If it does not require grad.

    See Also
    --------
    execution_order : The order in which the engine runs the nodes.
    track : Records modules and lines while the graph is made.
    fold : Fewer nodes: modules, repeated blocks, chains.
    graph_of : The graph of a debugger session's backward.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(2, 3, requires_grad=True)
    >>> g = gi.graph((w * w).sum(), params={"w": w})
    >>> [(d["index"], d["name"], d["parameter"]) for _, d in g.nodes(data=True)]
    [(0, 'SumBackward0', ''), (1, 'MulBackward0', ''), (2, 'AccumulateGrad', 'w')]
    >>> [(d["output_nr"], d["input_nr"]) for _, _, d in g.edges(data=True)]
    [(0, 0), (0, 0), (1, 0)]
    """
    losses = [loss] if hasattr(loss, "requires_grad") or not isinstance(loss, Iterable) else list(loss)
    adapter = adapter or _adapter_of(losses)
    roots = [_root(adapter, value) for value in losses]
    with no_collection():
        links = walk(adapter, roots)
        names = name_graph(adapter, links, params)
        return _graph(adapter, roots, links, names, dict.fromkeys(name for name, _ in names.tensors if name))


def graph_of_roots(adapter: Adapter, roots: Sequence[Any], names: Mapping[int, str] | None = None) -> BackwardGraph:
    """Return the graph below live nodes.

    Parameters
    ----------
    roots : sequence of node
        Where gradients enter.
    names : mapping of int to str, optional
        From the id of a leaf to what it is called.

    Returns
    -------
    BackwardGraph
        As :func:`graph` returns it.
    """
    names = names or {}
    with no_collection():
        return _graph(adapter, roots, walk(adapter, roots), Names(dict(names)), dict.fromkeys(names.values()))


def _graph(
    adapter: Adapter, roots: Sequence[Any], links: Mapping[int, NodeLinks], names: Names, parameters: Iterable[str]
) -> BackwardGraph:
    keys = list(dict.fromkeys(map(adapter.key, roots)))
    targets = {key: [child for child, _ in link.edges if child is not None] for key, link in links.items()}
    order = engine_order(keys, {key: link.sequence_nr for key, link in links.items()}, targets)
    model = BackwardGraph(roots=keys, parameters=list(parameters))
    _add_nodes(model, adapter, links, order, names)
    add_edge = model.add_edge
    for key in order:
        for output_nr, (child, input_nr) in enumerate(links[key].edges):
            if child is not None:
                add_edge(key, child, output_nr, output_nr=output_nr, input_nr=input_nr)
    return model


def _add_nodes(
    model: BackwardGraph, adapter: Adapter, links: Mapping[int, NodeLinks], order: Sequence[int], names: Names
) -> None:
    interned = InternTable()
    once = interned.once
    module_of = Tracker(adapter).module_of
    outputs = {key: once(adapter.outputs(links[key].node)) for key in order}
    for index, key in enumerate(order):
        node, sequence_nr, edges = links[key]
        name = adapter.node_name(node)
        leaf = adapter.variable(node)
        parameter = "" if leaf is None else names.paths.get(id(leaf), "")
        model.add_node(
            key,
            index=index,
            name=name,
            operator=interned.operator(name),
            sequence_nr=sequence_nr,
            module=module_of(node) or names.modules.get(key) or module_of_parameter(parameter),
            parameter=parameter,
            location=adapter.location(node),
            outputs=outputs[key],
            inputs=interned.once_of_shared(tuple([_spec(outputs, child, nr) for child, nr in edges])),
            saved=interned.saved(adapter.saved(node)),
        )
        if blind := adapter.blind(node):
            model.nodes[key]["blind"] = blind
        if inside := adapter.inside(node):
            model.nodes[key]["inside"] = inside


def _spec(outputs: Mapping[int, tuple[TensorSpec, ...]], key: int | None, nr: int) -> TensorSpec | None:
    specs = () if key is None else outputs.get(key, ())
    return specs[nr] if nr < len(specs) else None


# --- a debugger session's backward ---


def graph_of(session: Any) -> BackwardGraph:
    """Return the graph of a debugger session's current backward, with what has been seen of each node.

    Returns
    -------
    BackwardGraph
        As :func:`graph` returns it, and with ``state``, ``grad_outputs`` and ``grad_inputs`` (summaries; None where
        nobody looked) of each node.

    See Also
    --------
    annotate : Adds the same to a graph made before.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug((gs.ones(2, requires_grad=True) * 3).sum())
    >>> session.step(2)
    >>> session.wait().value
    'paused before'
    >>> g = gi.graph_of(session)
    >>> [(d["operator"], d["state"]) for _, d in g.nodes(data=True)]
    [('Sum', 'done'), ('Mul', 'done'), ('AccumulateGrad', 'current')]
    >>> session.cont()
    >>> session.wait().value
    'finished'
    """
    records = _records(session)
    outputs = {record.key: record.outputs for record in records}
    model = BackwardGraph(parameters=[record.parameter for record in records if record.parameter])
    for record in records:
        model.add_node(
            record.key,
            **{name: getattr(record, name) for name in _PLAIN},
            outputs=record.outputs,
            inputs=tuple(_spec(outputs, edge.target_key, edge.input_nr) for edge in record.edges),
            saved=record.saved,
        )
    for record in records:
        for output_nr, edge in enumerate(record.edges):
            if edge.target_key in outputs:
                model.add_edge(record.key, edge.target_key, output_nr, output_nr=output_nr, input_nr=edge.input_nr)
    model.graph["roots"] = [key for key in model if not model.in_degree(key)]
    return annotate(model, records)


def annotate(model: BackwardGraph, session: Any) -> BackwardGraph:
    """Add what a session has seen of each node to a graph of the same process; return the graph.

    Parameters
    ----------
    model : BackwardGraph
        Changed in place. Nodes that the session does not know are left as they are.

    Returns
    -------
    BackwardGraph
        `model`.

    See Also
    --------
    graph

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> loss = (gs.ones(2, requires_grad=True) * 3).sum()
    >>> g = gi.graph(loss)
    >>> session = gi.debug(loss)
    >>> session.step(2)
    >>> session.wait().value
    'paused before'
    >>> [d["grad_outputs"][0].norm for _, d in gi.annotate(g, session).nodes(data=True)]
    [1.0, 1.4142135623730951, 4.242640687119285]
    >>> session.abort()
    """
    for record in _records(session):
        if record.key not in model:
            continue
        data = model.nodes[record.key]
        data.update({name: getattr(record, name) for name in RUN_ATTRIBUTES if hasattr(record, name)})
        if record.saved:
            data["saved"] = record.saved
    return model


_PLAIN = ("index", "name", "operator", "sequence_nr", "module", "parameter", "location")


def _records(session: Any) -> list[NodeRecord]:
    records = list(getattr(session, "nodes", session))
    for record in records:
        if not isinstance(record, NodeRecord):
            raise TypeError(
                f"expected a debugger session or its node records, got an item of {type(record).__name__}\n"
                "Pass the Debugger, or its nodes."
            )
    return records


# --- order ---


def execution_order(model: networkx.MultiDiGraph) -> list[Any]:
    """Return the keys of a graph's nodes in the order in which the engine will run them.

    Parameters
    ----------
    model : networkx.MultiDiGraph
        From :func:`graph`; parts may have been removed or folded.

    Returns
    -------
    list
        Of the ready nodes the one with the highest sequence number comes first, AccumulateGrad before all.

    See Also
    --------
    graph

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    >>> g = gi.graph((a * 2 + b).sum())
    >>> [g.nodes[key]["operator"] for key in gi.execution_order(g)]
    ['Sum', 'Add', 'AccumulateGrad', 'Mul', 'AccumulateGrad']
    """
    sequence = dict(model.nodes(data="sequence_nr"))
    targets = {key: [child for _, child, _ in _out_edges(model, key)] for key in model}
    roots = [key for key in model.graph.get("roots", ()) if key in sequence]
    roots += [key for key in model if not model.in_degree(key) and key not in roots]
    return engine_order(roots, sequence, targets)


def _out_edges(model: networkx.MultiDiGraph, key: Any) -> list[tuple[Any, Any, int]]:
    return sorted(model.out_edges(key, data="output_nr"), key=lambda edge: edge[2])


# --- arguments ---


def _adapter_of(losses: Sequence[Any]) -> Adapter:
    try:
        return adapter_for(losses[0] if losses else None)
    except TypeError:
        raise TypeError(f"graph() takes a tensor or several, got {type(losses[0]).__name__}") from None


def _root(adapter: Adapter, tensor: Any) -> Any:
    if not adapter.is_tensor(tensor):
        raise TypeError(f"graph() takes a tensor or several, got {type(tensor).__name__}")
    root = adapter.root(tensor)
    if root is None:
        raise RuntimeError(
            f"a tensor of shape {format_shape(tuple(tensor.shape))} does not require grad, so it has no graph\n"
            "It was computed under no_grad, from tensors that do not require grad, or was detached."
        )
    return root[0]
