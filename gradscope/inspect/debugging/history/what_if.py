"""What-if: the gradients of the parameters if one gradient were another, by running the rest of a backward aside.

Nodes are run alone and nothing is accumulated: the program does not notice. Its hooks may do anything, so they are not
called; the answer names those that the backward itself will call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...adapters import NOT_TOLD, Adapter, expected_spec
from ...records.records import TensorSpec
from ...records.tensor_statistics import norm_of
from ..session.debugged_backward import TaskView
from ..session.session_records import ParameterChange, WhatIf
from ..stops.condition_names import HOW_TO_KEEP

__all__ = ["what_if"]

_Waiting = dict[int, list[Any]]


def what_if(adapter: Adapter, view: TaskView, index: int, grads: Sequence[Any], slot: int, value: Any) -> WhatIf:
    """Run the backward from a node on twice, as it is and with another gradient, and compare what reaches the leaves.

    Parameters
    ----------
    view : TaskView
        The backward, in progress.
    index : int
        The node.
    grads : sequence of Tensor or None
        Its incoming gradients.
    slot : int
        Which of them to replace.
    value : number, array or tensor
        By what.

    Raises
    ------
    ValueError, TypeError
        If the value does not fit, or the backward has ended, or a node has let go of its saved tensors.
    """
    if not view.live:
        raise ValueError(f"backward {view.number} has ended: its saved tensors are gone, so it cannot be run again")
    node = view.live_node(view.order[index])
    spec = adapter.spec(grads[slot]) if grads[slot] is not None else expected_spec(adapter, node, slot)
    if spec is None:
        raise ValueError(NOT_TOLD)
    other = list(grads)
    other[slot] = adapter.tensor_like(value, spec)
    waiting = _waiting(adapter, view, index)
    suffix = _Suffix(adapter, view, index, waiting or {})
    before, after = suffix.run(grads), suffix.run(other)
    return WhatIf(
        index=index,
        slot=slot,
        norm_before=_norm(adapter, grads[slot]),
        norm_after=_norm(adapter, other[slot]),
        changes=tuple(
            _change(adapter, view.record(place).parameter, before.get(place), after.get(place))
            for place in sorted(before.keys() | after.keys())
        ),
        complete=waiting is not None,
        nodes_run=suffix.nodes_run // 2,
        hooks_left_out=suffix.hooks(sorted(suffix.reached)),
    )


def _waiting(adapter: Adapter, view: TaskView, index: int) -> _Waiting | None:
    """Return the gradients that wait for nodes after this one, None where some of them were not recorded."""
    for root, _ in adapter.task_roots(view.task):
        if (view.position(adapter.key(root)) or 0) > index:
            return None
    found: _Waiting = {}
    for place in range(index):
        seen = view.seen(place)
        for slot, (target, nr) in enumerate(view.edges(view.order[place])):
            position = view.position(target) if target is not None else None
            if position is None or position <= index:
                continue
            if seen is None or seen.produced is None:
                return None
            values = seen.produced.tensors(adapter)
            if values is None:
                return None
            if values[slot] is not None:
                _add(found, adapter, view, target, nr, values[slot])
    return found


def _add(waiting: _Waiting, adapter: Adapter, view: TaskView, key: Any, nr: int, grad: Any) -> None:
    specs = adapter.outputs(view.live_node(key))
    slots = waiting.setdefault(key, [None] * len(specs))
    if not specs:
        raise ValueError(NOT_TOLD)
    grad = _fitted(adapter, grad, specs[nr])
    slots[nr] = grad if slots[nr] is None else slots[nr] + grad


def _fitted(adapter: Adapter, grad: Any, spec: TensorSpec) -> Any:
    """Return a gradient with the shape and dtype its receiver expects, as the engine does on the way."""
    has = adapter.spec(grad)
    if (has.shape, has.dtype) == (spec.shape, spec.dtype):
        return grad
    if has.shape != spec.shape:
        grad = grad.sum_to_size(spec.shape)
    return adapter.tensor_like(grad, spec)


class _Suffix:
    """The backward from a node on."""

    def __init__(self, adapter: Adapter, view: TaskView, index: int, waiting: _Waiting) -> None:
        self._adapter = adapter
        self._view = view
        self._index = index
        self._start = waiting
        self.nodes_run = 0
        self.reached: set[int] = set()

    def run(self, grads: Sequence[Any]) -> dict[int, Any]:
        """Return what reaches the leaves, by their place in the engine's order."""
        adapter, view = self._adapter, self._view
        waiting = {key: list(slots) for key, slots in self._start.items()}
        waiting[view.order[self._index]] = list(grads)
        leaves: dict[int, Any] = {}
        for place in range(self._index, len(view.order)):
            key = view.order[place]
            given = waiting.pop(key, None)
            if given is None or all(g is None for g in given):
                continue
            node = view.live_node(key)
            self.reached.add(place)
            if adapter.variable(node) is not None:
                leaves[place] = given[0]
                continue
            self.nodes_run += 1
            for grad, (target, nr) in zip(self._run(node, given, place), view.edges(key)):
                if grad is not None and target is not None and view.position(target) is not None:
                    _add(waiting, adapter, view, target, nr, grad)
        return leaves

    def hooks(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the hooks of nodes that a backward would have called from here on, by name."""
        found = []
        for place in places:
            node = self._view.live_node(self._view.order[place])
            for hook in self._adapter.hooks(node):
                if place > self._index or not hook.before:  # a hook before a node has run when the node is shown
                    record = self._view.record(place)
                    owner = f" {record.parameter}" if record.parameter else ""
                    found.append(f"{hook.name} of node {place} {record.name}{owner}")
        return tuple(found)

    def _run(self, node: Any, grads: Sequence[Any], place: int) -> Sequence[Any]:
        try:
            return self._adapter.run_node(node, grads)
        except Exception as error:
            name = f"what-if: node {place} {self._adapter.node_name(node)}"
            if any(saved.released for saved in self._adapter.saved(node)):
                raise ValueError(
                    f"{name} has released what it saved, so it cannot be run again\n{HOW_TO_KEEP}"
                ) from error
            first = (str(error).strip() or "no message").splitlines()[0]
            raise ValueError(f"{name} raised {type(error).__name__}: {first}") from error


def _norm(adapter: Adapter, grad: Any) -> float:
    return 0.0 if grad is None else norm_of(adapter.to_host(grad))


def _change(adapter: Adapter, parameter: str, before: Any, after: Any) -> ParameterChange:
    one = None if before is None else adapter.to_host(before)
    two = None if after is None else adapter.to_host(after)
    if one is None or two is None:
        difference = _norm(adapter, before if two is None else after)
    else:
        with numpy.errstate(invalid="ignore", over="ignore"):  # infinity less infinity is NaN, and is shown as that
            difference = norm_of(numpy.subtract(two, one, dtype=None if one.dtype.kind in "fc" else float))
    return ParameterChange(parameter, _norm(adapter, before), _norm(adapter, after), difference)
