"""What the nodes ahead in a backward will do, by what they have saved and by what they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...adapters import Adapter, SavedView
from ...diagnosis.flow.bounded_chain import LET_THROUGH, bounded_chain
from ...diagnosis.flow.signal_fading import FadedSignal, faded_signal
from ...diagnosis.nan.infinite_slopes import infinite_slope, may_be_infinite
from ...output.number_format import count, repeated_factor
from ...records.records import Location, NodeRecord, WriteRecord, operator_name
from ...records.tensor_statistics import norm_of
from ...source.call_sites import place
from .debugged_backward import TaskView
from .session_records import BackwardFinding

__all__ = [
    "bounded_gradients",
    "faded_signals",
    "infinite_slopes",
    "line_of",
    "targets_of",
    "writes_text",
    "written_tensors",
]

_MOST_ELEMENTS = 1 << 22
"""Elements up to which a saved tensor is read: at a larger one a stop would be felt."""


def written_tensors(
    adapter: Adapter, view: TaskView, writes_into: Callable[[SavedView], Sequence[WriteRecord]]
) -> Iterator[BackwardFinding]:
    """Yield the nodes ahead that need a saved tensor which has been written since.

    Parameters
    ----------
    writes_into : callable
        Returns who has written a saved tensor.
    """
    for index in _ahead(view):
        for saved in adapter.saved(view.live_node(view.order[index])):
            before, now = saved.saved_version, saved.current_version
            if before is None or now is None or before == now:
                continue
            node = view.record(index)
            title = f"{node.operator} will fail: its `{saved.name}` has been written since it was saved"
            writes = writes_into(saved)
            yield BackwardFinding("modified", "error", title, writes_text(writes), line_of(writes, node), index)


def infinite_slopes(adapter: Adapter, view: TaskView) -> Iterator[BackwardFinding]:
    """Yield the nodes ahead whose derivative is infinite for some elements."""
    for index in _ahead(view):
        node = view.live_node(view.order[index])
        operator = operator_name(adapter.node_name(node))
        if not may_be_infinite(operator):
            continue
        tensors = {one.name: one.data for one in adapter.saved(node) if adapter.is_tensor(one.data)}
        values = {name: adapter.to_host(t) for name, t in tensors.items() if t.numel() <= _MOST_ELEMENTS}
        slope = infinite_slope(operator, values)
        if slope is not None:
            share = f"{slope.elements} of {count(slope.total, 'element')}"
            title = f"the gradient of {operator} will be infinite where its {slope.where} ({share})"
            text = f"{slope.text}\n{slope.help}"
            yield BackwardFinding("slope", "warning", title, text, view.record(index).location, index)


def bounded_gradients(adapter: Adapter, view: TaskView, most: float) -> Iterator[BackwardFinding]:
    """Yield the chain of operators that must make the gradient vanish, if one leaves that much of it at most."""
    nodes = [view.live_node(key) for key in view.order]
    names = {index: view.parameter_of(node) for index, node in enumerate(nodes)}
    operators = [operator_name(adapter.node_name(node)) for node in nodes]
    chain = bounded_chain(operators, targets_of(view), {index: name for index, name in names.items() if name}, most)
    if chain is None:
        return
    first = view.record(chain.nodes[0])
    title = f"{len(chain.nodes)} {first.operator} in a row make the gradient vanish"
    text = f"Together they multiply it by at most {chain.bound:.1e} on the way to {chain.parameter}.\n{LET_THROUGH}"
    yield BackwardFinding("bounded", "warning", title, text, first.location, first.index, (chain.parameter,))


class _Layer(NamedTuple):
    """A node that multiplies its input with a weight: both, as it has saved them, and the weight's name."""

    given: SavedView
    weight: SavedView
    name: str


def faded_signals(
    adapter: Adapter, view: TaskView, initialised_at: Callable[[SavedView], Location | None], most: float
) -> Iterator[BackwardFinding]:
    """Yield the layer that gets next to nothing, since the layers before it have made its input so small.

    Parameters
    ----------
    initialised_at : callable
        Returns the line that has initialised a weight, None where it is not known.
    most : float
        The size that is next to nothing, and its share of the largest on the way.
    """
    layers = dict(_layers(adapter, view))
    sizes = {index: _size(adapter, layer.given.data) for index, layer in layers.items()}
    faded = faded_signal(sizes, targets_of(view), most)
    if faded is None:
        return
    steps = _line_of_most(view, faded)
    first = view.record(steps[0][0])
    layer = layers[first.index]
    title = f"the values fade to {faded.size:.1e} on the way forward to {layers[faded.index].name}"
    where = f" at {place(first.location)}" if first.location else ""
    text = f"{first.operator}{where} multiplies them {repeated_factor([math.log(factor) for _, factor in steps])}."
    line, advice = first.location, _about_weights(adapter, layer)
    if advice:
        made_at = initialised_at(layer.weight)
        line = made_at or line
        text += f" {advice}" + (f"; it was initialised at {place(made_at)}." if made_at else ".")
    text += "\nWhere the input of a layer is next to nothing, so is the gradient of its weight."
    yield BackwardFinding("faded", "warning", title, text, line, faded.index)


def _layers(adapter: Adapter, view: TaskView) -> Iterator[tuple[int, _Layer]]:
    """Yield the nodes that have saved one matrix which is a parameter's memory, and one which is not."""
    nodes = [view.live_node(key) for key in view.order]
    leaves = [(view.parameter_of(node), adapter.variable(node)) for node in nodes]
    names = {adapter.memory_key(leaf): name for name, leaf in leaves if name and leaf is not None}
    for index, node in enumerate(nodes):
        matrices = [one for one in adapter.saved(node) if not one.released and _is_matrix(adapter, one.data)]
        weights = [one for one in matrices if adapter.memory_key(one.data) in names]
        given = [one for one in matrices if one not in weights]
        if len(weights) == len(given) == 1:
            yield index, _Layer(given[0], weights[0], names[adapter.memory_key(weights[0].data)])


def _is_matrix(adapter: Adapter, value: Any) -> bool:
    return bool(
        adapter.is_tensor(value)
        and len(value.shape) >= 2
        and value.is_floating_point()
        and value.numel() <= _MOST_ELEMENTS
    )


def _line_of_most(view: TaskView, faded: FadedSignal) -> list[tuple[int, float]]:
    """Return the steps that one line makes, of the line that does most of it."""
    by_line: dict[Location | None, list[tuple[int, float]]] = {}
    for index, factor in faded.steps:
        by_line.setdefault(view.record(index).location, []).append((index, factor))
    return min(by_line.values(), key=lambda steps: sum(math.log(factor) for _, factor in steps))


def _about_weights(adapter: Adapter, layer: _Layer) -> str:
    """Say that the weights of a layer are too small for their number, where they are."""
    weight, given = layer.weight.data, layer.given.data
    inputs = math.prod(weight.shape[1:]) if len(weight.shape) > 2 else given.shape[-1]
    size, usual = _size(adapter, weight), 1 / math.sqrt(max(1, inputs))
    if size > usual / 2:
        return ""
    return (
        f"Its weights are too small: `{layer.name}` has the size {size:.2g}, where 1 / sqrt({inputs}) = {usual:.2g} "
        "keeps the values as large as they are"
    )


def _size(adapter: Adapter, tensor: Any) -> float:
    """Return the root mean square of a tensor's elements."""
    values = adapter.to_host(tensor)
    size = norm_of(values) / math.sqrt(values.size) if values.size else 0.0
    return size if math.isfinite(size) else 0.0


def writes_text(writes: Sequence[WriteRecord]) -> str:
    """Return a line for each write: what was written, by which operator and where."""
    return "\n".join(
        f"`{write.name}` was written by {write.operator}" + (f" at {place(write.location)}" if write.location else "")
        for write in writes
    )


def line_of(writes: Sequence[WriteRecord], node: NodeRecord) -> Location | None:
    """Return the line to look at: that of the first write that is known, or else that which made the node."""
    return next((write.location for write in writes if write.location is not None), node.location)


def targets_of(view: TaskView) -> list[list[int]]:
    """Return for each node, in their order, the places of those that its gradients go to."""
    return [
        [place for target, _ in view.edges(key) if target is not None and (place := view.position(target)) is not None]
        for key in view.order
    ]


def _ahead(view: TaskView) -> range:
    """Return the places of the nodes that have not run."""
    seen: Any = None if view.call is None else view.seen_now()
    has_run = seen is not None and seen.state in ("done", "skipped")
    return range(max(0, view.index + has_run), len(view.order))
