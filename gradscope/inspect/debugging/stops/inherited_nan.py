"""Since when what a node has saved is not finite: since a backward before, in the parameters, or since an operator."""

from __future__ import annotations

from typing import NamedTuple

from ...adapters import Adapter, SavedView
from ...diagnosis.explanation import at
from ...diagnosis.nan.forward_origin import forward_origin
from ...diagnosis.nan.nan_causes import Cause, masked_rows
from ...output.number_format import several
from ...records.records import Location
from ...records.tensor_statistics import count_bad
from ..session.backward_outlook import targets_of
from ..session.debugged_backward import TaskView
from .stop_decision import BadBegin

__all__ = ["Inherited", "inherited_nan"]


class Inherited(NamedTuple):
    """Where a NaN or an infinity of the forward pass is from: in words, and the line to look at."""

    text: str
    location: Location | None


def inherited_nan(adapter: Adapter, view: TaskView, index: int, begin: BadBegin | None) -> Inherited | None:
    """Return since when what a node has saved is not finite; None where that is not seen.

    Parameters
    ----------
    view : TaskView
        A backward that goes on, or whose nodes still have what they saved.
    index : int
        The node.
    begin : BadBegin or None
        Where a backward has made a NaN or an infinity first.
    """
    nodes = [view.live_node(key) for key in view.order]
    leaves = {place: leaf for place, node in enumerate(nodes) if (leaf := adapter.variable(node)) is not None}

    def bad_saved(place: int) -> str:
        return next((one.name for one in adapter.saved(nodes[place]) if _is_bad_saved(adapter, one)), "")

    found = forward_origin(
        index, targets_of(view), bad_saved, lambda place: place in leaves and _is_bad(adapter, leaves[place])
    )
    if found is None:
        return None
    if not found.leaves:
        node = view.record(found.index)
        where = f"the saved `{found.saved}` of {node.name}{at(node.location)}"
        text = f"Of what the forward pass has saved, {where} has it first"
        cause = _made_by_softmax(adapter, nodes[found.index], node.operator, found.saved)
        more = f": {cause.text}.\n{cause.help}" if cause is not None else "."
        return Inherited(text + more, node.location)
    names = [f"`{view.record(place).parameter or 'a leaf'}`" for place in found.leaves]
    text = f"It is in the parameters already: {several(names)}."
    if begin is None or begin.backward == view.number:
        return Inherited(text, view.record(index).location)
    what = "NaN" if begin.kind == "nan" else "infinity"
    made = f"The first {what} was made in backward {begin.backward}, by {begin.name}{at(begin.location)}."
    return Inherited(f"{text}\n{made}", begin.location)


def _made_by_softmax(adapter: Adapter, node: object, operator: str, name: str) -> Cause | None:
    """Return of what a softmax has made NaN, where it is its result that has one first."""
    if operator not in ("Softmax", "LogSoftmax") or name != "result":
        return None
    results = [one.data for one in adapter.saved(node) if one.name == name]
    return masked_rows(adapter.to_host(results[0])) if results else None


def _is_bad_saved(adapter: Adapter, saved: SavedView) -> bool:
    return not saved.released and adapter.is_tensor(saved.data) and _is_bad(adapter, saved.data)


def _is_bad(adapter: Adapter, tensor: object) -> bool:
    return any(count_bad(adapter.to_host(tensor)))
