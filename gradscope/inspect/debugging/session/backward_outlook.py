"""What the nodes ahead in a backward will do, by what they have saved and by what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...adapters import Adapter, SavedView
from ...diagnosis.flow.bounded_chain import bounded_chain
from ...diagnosis.nan.infinite_slopes import infinite_slope, may_be_infinite
from ...records.records import Location, NodeRecord, WriteRecord, operator_name
from ...source.call_sites import place
from .debugged_backward import TaskView
from .session_records import BackwardFinding

__all__ = ["bounded_gradients", "infinite_slopes", "line_of", "writes_text", "written_tensors"]

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
            title = f"{operator} will be infinite: {slope.elements} of {slope.total} elements of `{slope.name}`"
            text = f"{slope.text}\n{slope.help}"
            yield BackwardFinding("slope", "warning", title, text, view.record(index).location, index)


def bounded_gradients(adapter: Adapter, view: TaskView) -> Iterator[BackwardFinding]:
    """Yield the chain of operators that must make the gradient vanish, if there is one."""
    nodes = [view.live_node(key) for key in view.order]
    targets = [
        [place for target, _ in view.edges(key) if target is not None and (place := view.position(target)) is not None]
        for key in view.order
    ]
    names = {index: view.parameter_of(node) for index, node in enumerate(nodes)}
    operators = [operator_name(adapter.node_name(node)) for node in nodes]
    chain = bounded_chain(operators, targets, {index: name for index, name in names.items() if name})
    if chain is None:
        return
    first = view.record(chain.nodes[0])
    title = f"{len(chain.nodes)} {first.operator} in a row make the gradient vanish"
    text = f"Together they multiply it by at most {chain.bound:.1e} on the way to {chain.parameter}."
    yield BackwardFinding("bounded", "warning", title, text, first.location, first.index, (chain.parameter,))


def writes_text(writes: Sequence[WriteRecord]) -> str:
    """Return a line for each write: what was written, by which operator and where."""
    return "\n".join(
        f"`{write.name}` was written by {write.operator}" + (f" at {place(write.location)}" if write.location else "")
        for write in writes
    )


def line_of(writes: Sequence[WriteRecord], node: NodeRecord) -> Location | None:
    """Return the line to look at: that of the first write that is known, or else that which made the node."""
    return next((write.location for write in writes if write.location is not None), node.location)


def _ahead(view: TaskView) -> range:
    """Return the places of the nodes that have not run."""
    seen: Any = None if view.call is None else view.seen_now()
    has_run = seen is not None and seen.state in ("done", "skipped")
    return range(max(0, view.index + has_run), len(view.order))
