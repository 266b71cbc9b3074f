"""The backward graph of a loss as a networkx graph: what a notebook, a picture or an analysis starts from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx

from .adapters import Adapter, NativeAdapter
from .order import engine_order, walk
from .snapshots import bare_record
from .statistics import format_shape
from .tracking import Tracker

__all__ = ["execution_order", "graph"]


def graph(loss: Any, params: Any = None, *, adapter: Adapter | None = None) -> networkx.MultiDiGraph:
    """Return the graph that the backward of `loss` will run.

    Parameters
    ----------
    loss : Tensor or iterable of Tensor
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives leaves their names.
    adapter : Adapter, optional

    Returns
    -------
    networkx.MultiDiGraph
        Its nodes are stable keys (int) with the attributes ``name``, ``operator``, ``sequence_nr``, ``module``,
        ``parameter``, ``location``, ``outputs`` (:class:`TensorSpec` of each forward output), ``saved``
        (:class:`SavedRecord`, without summaries) and ``index`` (place in the engine's order). Its edges go the way of
        the gradients, from a node to those of its inputs, with ``output_nr`` (which of the gradients that the node
        produces) and ``input_nr`` (which input of the receiver). ``graph.graph["roots"]`` lists the keys where
        gradients enter. It holds no tensor and no node alive.

    Raises
    ------
    TypeError
        If `loss` is no tensor.
    RuntimeError
        If it does not require grad.

    See Also
    --------
    execution_order : The order in which the engine runs the nodes.
    track : Records modules and lines while the graph is made.

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
    adapter = adapter or NativeAdapter()
    names = _names(adapter, params)
    tracker = Tracker(adapter)
    roots = [_root(adapter, tensor) for tensor in _losses(adapter, loss)]
    wires = walk(adapter, roots)
    keys = [adapter.key(node) for node in roots]
    targets = {k: [child for child, _ in wire.edges if child is not None] for k, wire in wires.items()}
    order = engine_order(keys, {k: wire.sequence_nr for k, wire in wires.items()}, targets)
    model = networkx.MultiDiGraph(roots=keys)
    for index, key in enumerate(order):
        node = wires[key].node
        leaf = adapter.variable(node)
        record = bare_record(
            adapter,
            node,
            index=index,
            module=tracker.module_of(node),
            parameter="" if leaf is None else names.get(id(leaf), ""),
            saved=True,
            wire=wires[key],
        )
        attributes = ("index", "name", "operator", "sequence_nr", "module", "parameter", "location", "outputs", "saved")
        model.add_node(key, **{a: getattr(record, a) for a in attributes})
    for key in order:
        for output_nr, (child, input_nr) in enumerate(wires[key].edges):
            if child is not None:
                model.add_edge(key, child, output_nr=output_nr, input_nr=input_nr)
    return model


def execution_order(model: networkx.MultiDiGraph) -> list[int]:
    """Return the keys of a graph's nodes in the order in which the engine will run them.

    Parameters
    ----------
    model : networkx.MultiDiGraph
        From :func:`graph`; parts may have been removed.

    Returns
    -------
    list of int
        Of the ready nodes the one with the highest sequence number comes first, AccumulateGrad before all.

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
    roots = [key for key in model.graph["roots"] if key in sequence]
    roots += [key for key in model if not model.in_degree(key) and key not in roots]
    return engine_order(roots, sequence, targets)


def _out_edges(model: networkx.MultiDiGraph, key: int) -> list[tuple[int, int, int]]:
    return sorted(model.out_edges(key, data="output_nr"), key=lambda edge: edge[2])


def _losses(adapter: Adapter, loss: Any) -> list[Any]:
    losses = [loss] if adapter.is_tensor(loss) or not isinstance(loss, Iterable) else list(loss)
    for value in losses:
        if not adapter.is_tensor(value):
            raise TypeError(f"graph() takes a tensor or several, got {type(value).__name__}")
    return losses


def _root(adapter: Adapter, tensor: Any) -> Any:
    root = adapter.root(tensor)
    if root is None:
        raise RuntimeError(
            f"a tensor of shape {format_shape(tuple(tensor.shape))} does not require grad, so it has no graph\n"
            "It was computed under no_grad, from tensors that do not require grad, or was detached."
        )
    return root[0]


def _names(adapter: Adapter, params: Any) -> dict[int, str]:
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        pairs = adapter.named_parameters(params)
    elif isinstance(params, Mapping):
        pairs = list(params.items())
    else:
        pairs = list(params)
    found: dict[int, str] = {}
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(
                f"params is a module, a mapping or pairs of (name, parameter), got an item of {type(pair).__name__}\n"
                "Pass model, or model.named_parameters()."
            )
        found.setdefault(id(pair[1]), pair[0])
    return found
