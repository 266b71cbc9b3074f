"""Why a gradient is zero: the operators that turn a gradient that is not into one that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...adapters import Adapter
from ...output.number_format import count
from ...records.module_tracking import Tracker
from ...records.records import InnerOperator, Location, operator_name
from ..nan.nan_producers import saved_values
from .backward_replay import BackwardReplay
from .reshaping_operators import RESHAPING

__all__ = ["ZeroCause", "ZeroVisitor", "cause_inside", "zero_causes"]

_STEPS = {"Ceil", "Floor", "Round", "Sign", "Trunc", "Heaviside"}
_RECTIFIERS = {"Relu", "Threshold", "Relu6", "Hardtanh", "Clamp", "ClampMin", "ClampMax", "HardtanhBackward"}
_INACTIVE = {"Relu", "Threshold"}
_PRODUCTS = {"Mul", "Mm", "Addmm", "Bmm", "Mv", "Dot", "Linear"}
_SATURATING = {"Sigmoid": 1.0, "Tanh": 1.0}
# These operators change a gradient only by summing it, where an operand was broadcast; a bias always is.
_ADDING = {"Add", "Expand", "Sub"}
_WITH_BIAS = {"Addmm", "Linear"}
_SELECTING = {"Where", "MaskedFill", "Index", "IndexSelect", "Gather", "MaskedSelect", "Select", "Slice", "Narrow"}


@dataclass(frozen=True)
class ZeroCause:
    """An operator whose derivative is zero where it mattered.

    Attributes
    ----------
    node : str
        ``'ReluBackward0'``.
    text : str
        What it did.
    help : str
        What to do; may be empty.
    """

    node: str
    text: str
    location: Location | None
    help: str = ""


# What a loss that compares numbers with targets is made of.
_COMPARING = RESHAPING | {"Abs", "Mean", "Pow", "Sub", "Sum"}
_LAST = "The model ends in it and gives nothing below zero, whatever the targets are: end in a layer without it."


class ZeroVisitor:
    """Follows zero gradients through a backward, from the node that made each.

    Attributes
    ----------
    found : dict of int to tuple of ZeroCause
        By the id of each leaf whose gradient is zero, what made it so: nothing, where contributions cancel.
    inside : dict of int to ZeroCause
        Of compiled nodes, by key: what inside of them makes a gradient zero.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        # By (key, input number): the causes on the way that ends there, for gradients that are zero.
        self._arriving: dict[tuple[int, int], list[ZeroCause] | None] = {}
        # By the same, the node that the gradient has come from last: its key and operator.
        self._senders: dict[tuple[int, int], tuple[int, str]] = {}
        self.found: dict[int, tuple[ZeroCause, ...]] = {}
        self.inside: dict[int, ZeroCause] = {}

    def visit(
        self,
        node: Any,
        grads: Sequence[Any],
        produced: Sequence[Any],
        saved: Mapping[str, Any],
        sizes: Sequence[float] = (),
    ) -> None:
        """Look at a node that has run, and the tensors that it had saved.

        Parameters
        ----------
        grads, produced : sequence of (Tensor or None)
            The gradients that the node received, one an output, and those that it returned, one an edge.
        sizes : sequence of float
            Of those that it returned, where they are known: such a one is not zero.
        """
        adapter, arriving = self._adapter, self._arriving
        key = adapter.key(node)
        leaf = adapter.variable(node)
        if leaf is not None:
            if all(_is_zero(adapter, g) for g in grads):
                self.found[id(leaf)] = tuple(dict.fromkeys(arriving.get((key, 0)) or ()))
            return
        dead = all(_is_zero(adapter, g) for g in grads if g is not None)
        inherited = [c for nr in range(len(grads)) for c in arriving.get((key, nr)) or ()] if dead else []
        for index, (child, nr) in enumerate(adapter.edges(node)):
            if child is None or index >= len(produced) or produced[index] is None:
                continue
            place = (adapter.key(child), nr)
            self._senders[place] = key, operator_name(adapter.node_name(node))
            if (sizes and sizes[index]) or not _is_zero(adapter, produced[index]):
                arriving[place] = None
                continue
            causes = inherited
            if not dead and not self._cancels(node, index, grads, produced[index], saved):
                causes = [self._cause(*(_silent_operand(adapter, node, index, saved) or (node, saved)))]
            if arriving.get(place, []) is not None:
                arriving.setdefault(place, []).extend(causes)  # type: ignore[union-attr]

    def _cause(self, node: Any, saved: Mapping[str, Any]) -> ZeroCause:
        """Say why a node gives a zero gradient to one of its inputs."""
        adapter = self._adapter
        inner = self.inside.get(adapter.key(node))
        if inner is not None:
            return inner
        name = adapter.node_name(node)
        text, way_out = _text(operator_name(name), {key: adapter.to_host(value) for key, value in saved.items()})
        if operator_name(name) in _INACTIVE:
            module = Tracker(adapter).module_of(node)
            text = f"the ReLU{f' in `{module}`' if module else ''} {text}"
            if self._is_last(adapter.key(node)):
                text, way_out = f"{text}, and the loss is computed with its result", _LAST
        return ZeroCause(name, text or f"{name} gives it a zero gradient", adapter.location(node), way_out)

    def _is_last(self, key: int) -> bool:
        """Whether nothing is between a node and the end of the backward's graph but what compares with a target."""
        names = set()
        while (key, 0) in self._senders:
            key, name = self._senders[key, 0]
            names.add(name)
        return bool(names) and all(name in _COMPARING or name.endswith("Loss") for name in names)

    def _cancels(self, node: Any, index: int, grads: Sequence[Any], produced: Any, saved: Mapping[str, Any]) -> bool:
        """Whether a gradient is zero only because what a node sums up for it cancels: nothing is wrong with that."""
        host, operator = self._adapter.to_host, operator_name(self._adapter.node_name(node))
        if operator in _ADDING or (operator in _WITH_BIAS and host(produced).ndim <= 1):
            return True
        other = saved.get(("other", "self")[index]) if operator == "Mul" and len(grads) == 1 and index < 2 else None
        return other is not None and bool(numpy.any(host(grads[0]) * host(other)))


def cause_inside(adapter: Adapter, operator: InnerOperator, saved: Mapping[str, Any]) -> ZeroCause:
    """Say why a call inside of a compiled region gives a zero gradient, by what it has saved."""
    name = operator.operator
    text, way_out = _text(name.capitalize(), {key: adapter.to_host(value) for key, value in saved.items()})
    if name.capitalize() in _INACTIVE:
        text = f"the ReLU{f' in `{operator.module}`' if operator.module else ''} {text}"
    return ZeroCause(name, text or f"{name} gives it a zero gradient", operator.location, way_out)


def zero_causes(adapter: Adapter, loss: Any) -> dict[int, tuple[ZeroCause, ...]]:
    """Run a backward beside the program; return, by the id of each leaf, what made its gradient zero.

    Returns
    -------
    dict of int to tuple of ZeroCause
        A leaf whose gradient is not zero has no entry.
    """
    visitor = ZeroVisitor(adapter)

    def visit(node: Any, grads: list[Any], produced: Sequence[Any]) -> None:
        visitor.visit(node, grads, produced, saved_values(adapter, node))

    BackwardReplay(adapter, loss).run(visit)
    return visitor.found


def _silent_operand(
    adapter: Adapter, node: Any, index: int, saved: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]] | None:
    """Return the rectifier, and what it has saved, whose zeros a product multiplies one of its inputs by."""
    operator = operator_name(adapter.node_name(node))
    if operator not in _PRODUCTS or all(numpy.any(adapter.to_host(value)) for value in saved.values()):
        return None
    for nr, (maker, _) in enumerate(adapter.edges(node)):
        while maker is not None and operator_name(adapter.node_name(maker)) in RESHAPING:
            maker = adapter.edges(maker)[0][0]
        if nr != index and maker is not None and operator_name(adapter.node_name(maker)) in _INACTIVE:
            return maker, saved_values(adapter, maker)
    return None


def _text(operator: str, saved: Mapping[str, Any]) -> tuple[str, str]:
    """Return what an operator did, and what to do about it."""
    if operator in _INACTIVE:
        size = next(iter(saved.values())).size if saved else 0
        what = f"is not active for any of its {count(size, 'input')}" if size else "is not active"
        return what, "Lower the learning rate or the bias before it, or use LeakyReLU: a dead ReLU does not come back."
    if operator in _RECTIFIERS:
        what = f"every input is outside the range of {operator.lower()}, where its derivative is zero"
        return what, "Use a function with a slope everywhere (softplus, sigmoid), or clamp after the loss is computed."
    if operator in _STEPS:
        what = f"{operator.lower()} is a step function, whose derivative is zero everywhere"
        return what, f"Let the gradient pass straight through: x + (x.{operator.lower()}() - x).detach()."
    if operator in _SATURATING:
        what = f"{operator.lower()} is saturated: its derivative is zero at all its outputs"
        return what, "Scale its input down, or normalise it."
    if operator in _PRODUCTS:
        zero = [name for name, value in saved.items() if not numpy.any(value)]
        if zero:
            how = "multiplied by zero" if operator == "Mul" else f"{operator.lower()} multiplies it by zeros"
            return f"{how} (the other operand is zero everywhere)", ""
        return "multiplied by zero wherever a gradient arrives (a mask)", ""
    return (f"{operator.lower()} selects none of its elements", "") if operator in _SELECTING else ("", "")


def _is_zero(adapter: Adapter, grad: Any) -> bool:
    if grad is None:
        return True
    (moments,) = adapter.moments([grad])
    if moments is not None:
        return moments.norm == 0.0
    values = adapter.to_host(grad).reshape(-1)
    # The first number nearly always answers, and the others need not be read.
    return not values.size or (not values[0] and not numpy.any(values))
