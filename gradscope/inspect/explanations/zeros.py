"""Why a gradient is zero: the operators that turn a gradient that is not into one that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ..adapters import Adapter
from ..records import Location, operator_name
from ..wording import count
from .replay import Replay

__all__ = ["ZeroCause", "zero_cause", "zero_causes"]

_STEPS = {"Ceil", "Floor", "Round", "Sign", "Trunc", "Heaviside"}
_RECTIFIERS = {"Relu", "Threshold", "Relu6", "Hardtanh", "Clamp", "ClampMin", "ClampMax", "HardtanhBackward"}
_SATURATING = {"Sigmoid": 1.0, "Tanh": 1.0}
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
    location : Location or None
    """

    node: str
    text: str
    location: Location | None


def zero_causes(adapter: Adapter, loss: Any) -> dict[int, tuple[ZeroCause, ...]]:
    """Run a backward beside the program; return, by the id of each leaf, what made its gradient zero.

    Parameters
    ----------
    adapter : Adapter
    loss : Tensor

    Returns
    -------
    dict of int to tuple of ZeroCause
        A leaf whose gradient is not zero has no entry.
    """
    replay = Replay(adapter, loss)
    # By (key, input number): the causes on the way that ends there, for gradients that are zero.
    arriving: dict[tuple[int, int], list[ZeroCause] | None] = {}
    found: dict[int, tuple[ZeroCause, ...]] = {}

    def visit(node: Any, grads: list[Any], produced: Sequence[Any]) -> None:
        key = adapter.key(node)
        leaf = adapter.variable(node)
        if leaf is not None:
            if all(_is_zero(adapter, g) for g in grads):
                found[id(leaf)] = tuple(dict.fromkeys(arriving.get((key, 0)) or ()))
            return
        dead = all(_is_zero(adapter, g) for g in grads if g is not None)
        inherited = [c for nr in range(len(grads)) for c in arriving.get((key, nr)) or ()] if dead else []
        own = None
        for index, (child, nr) in enumerate(adapter.edges(node)):
            if child is None or index >= len(produced) or produced[index] is None:
                continue
            place = (adapter.key(child), nr)
            if not _is_zero(adapter, produced[index]):
                arriving[place] = None
                continue
            if not dead and own is None:
                own = zero_cause(adapter, node, index)
            if arriving.get(place, []) is not None:
                arriving.setdefault(place, []).extend(inherited if dead else [own])  # type: ignore[union-attr,list-item]

    replay.run(visit)
    return found


def zero_cause(adapter: Adapter, node: Any, index: int) -> ZeroCause:
    """Say why a node gives a zero gradient to one of its inputs.

    Parameters
    ----------
    adapter : Adapter
    node : object
    index : int
        Which of the gradients it produces.

    Returns
    -------
    ZeroCause
    """
    name = adapter.node_name(node)
    operator = operator_name(name)
    return ZeroCause(name, _text(adapter, node, operator, index), adapter.location(node))


def _text(adapter: Adapter, node: Any, operator: str, index: int) -> str:
    saved = {
        view.name: adapter.to_host(view.data)
        for view in adapter.saved(node)
        if not view.released and view.saved_version is not None
    }
    if operator in ("Relu", "Threshold"):
        size = next(iter(saved.values())).size if saved else 0
        return f"the ReLU is not active for any of its {count(size, 'input')}" if size else "the ReLU is not active"
    if operator in _RECTIFIERS:
        return f"every input is outside the range of {operator.lower()}, where its derivative is zero"
    if operator in _STEPS:
        return f"{operator.lower()} is a step function, whose derivative is zero everywhere"
    if operator in _SATURATING:
        return f"{operator.lower()} is saturated: its derivative is zero at all its outputs"
    if operator in ("Mul", "Mm", "Addmm", "Bmm", "Mv", "Dot", "Linear"):
        zero = [name for name, value in saved.items() if not numpy.any(value)]
        if zero:
            how = "multiplied by zero" if operator == "Mul" else f"{operator.lower()} multiplies it by zeros"
            return f"{how} (the other operand is zero everywhere)"
        return "multiplied by zero wherever a gradient arrives (a mask)"
    if operator in _SELECTING:
        return f"{operator.lower()} selects none of its elements"
    return f"{adapter.node_name(node)} gives it a zero gradient"


def _is_zero(adapter: Adapter, grad: Any) -> bool:
    return grad is None or not numpy.any(adapter.to_host(grad))
