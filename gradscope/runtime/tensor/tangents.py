"""Tangents: which tensor carries one in the open dual level, how it lies in memory, what a node keeps of it.

A tangent belongs to one level and goes with it. How operators give their results tangents is in
:mod:`gradscope.runtime.ops.execution.forward_mode`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import state
from ..graph.saved_tensors import SavedResult
from ..memory import device
from ..memory.storage import bytes_of, element_strides, geometry_of, memory_of, offset_of, strided_view
from .views import steps_to, taken

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "Deriving",
    "DualLevel",
    "ForwardGrad",
    "active",
    "attach",
    "carry_written",
    "enter",
    "fitted",
    "keep_with_saved",
    "leave",
    "overwrite",
    "primal_of",
    "tangent_of",
]

modes = state.local


class ForwardGrad:
    """The tangent of one tensor in one level; None in place of it for a tensor that is cut from its base's."""

    __slots__ = ("__weakref__", "level", "tangent")

    def __init__(self, level: DualLevel, tangent: Tensor | None) -> None:
        self.level = level
        self.tangent = tangent


class DualLevel:
    """An open level: it knows the tangents that live in it, and drops them when it is left."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: weakref.WeakSet[ForwardGrad] = weakref.WeakSet()

    def close(self) -> None:
        """Drop all tangents; with them go the graphs that computed them."""
        for held in list(self.held):
            held.tangent = None


# The open level of the process, if there is one: as in PyTorch, levels do not nest.
level: DualLevel | None = None


def enter() -> None:
    """Open the level."""
    global level
    level = DualLevel()
    state.add_modes(1)


def leave() -> None:
    """Close the level and drop its tangents."""
    global level
    assert level is not None
    closed, level = level, None
    closed.close()
    state.add_modes(-1)


def active() -> bool:
    """Whether operators on this thread are to compute tangents."""
    return level is not None and modes.forward_grad and not modes.in_tangent and not modes.inference


class Deriving:
    """Context manager: compute tangents, which have none themselves and are no business of listeners.

    Parameters
    ----------
    recorded : bool
        Whether what is computed is recorded.
    """

    __slots__ = ("_before", "recorded")

    def __init__(self, recorded: bool) -> None:
        self.recorded = recorded

    def __enter__(self) -> None:
        self._before = (modes.in_tangent, modes.grad_enabled, modes.inference, modes.saved_hooks)
        modes.in_tangent, modes.grad_enabled, modes.inference, modes.saved_hooks = True, self.recorded, False, ()

    def __exit__(self, *exc_info: object) -> None:
        modes.in_tangent, modes.grad_enabled, modes.inference, modes.saved_hooks = self._before


# --- who has a tangent ------------------------------------------------------------------------------------------------


def tangent_of(tensor: Tensor) -> Tensor | None:
    """Return the tangent that `tensor` carries in the open level, or None.

    A view made before its base got a tangent takes its part of it now.
    """
    if level is None or not modes.forward_grad:
        return None
    held = tensor._meta.forward if tensor._meta is not None else None
    if held is not None and held.level is level:
        return held.tangent
    base = tensor._base
    whole = None if base is None else tangent_of(base)
    if base is None or whole is None:
        return None
    part = _part_of(whole, tensor)
    attach(tensor, part)
    return part


def _part_of(whole: Tensor, view: Tensor) -> Tensor:
    """Return the part of a base's tangent that belongs to `view`, sharing memory."""
    assert view._view is not None
    with Deriving(recorded=True):
        return taken(whole, steps_to(view, view._view))


def attach(tensor: Tensor, tangent: Tensor | None) -> None:
    """Let `tensor` carry `tangent` as it is."""
    assert level is not None
    held = tensor._extras().forward = ForwardGrad(level, tangent)
    level.held.add(held)


def primal_of(tensor: Tensor) -> Tensor:
    """Return a view of all of `tensor` that is cut from its tangent."""
    with Deriving(modes.grad_enabled):
        primal = tensor.view_as(tensor)
    attach(primal, None)
    return primal


# --- layouts ----------------------------------------------------------------------------------------------------------


def same_layout(tangent: Any, primal: Any) -> bool:
    """Whether two arrays lie alike in memory of the same size, so that every view of one can be taken of the other."""
    mine, other = memory_of(tangent), memory_of(primal)
    return (
        element_strides(tangent) == element_strides(primal)
        and bytes_of(mine) * primal.dtype.itemsize == bytes_of(other) * tangent.dtype.itemsize
        and offset_of(tangent) == offset_of(primal)
    )


def laid_out_like(primal: Any, dtype: Any) -> Any:
    """Return zeros of `dtype` that lie in memory as `primal` does."""
    xp = device.array_module(primal)
    memory = memory_of(primal)
    if primal is memory or memory.dtype != primal.dtype:
        return xp.zeros_like(primal, dtype=dtype)
    return strided_view(xp.zeros(bytes_of(memory) // memory.itemsize, dtype=dtype), geometry_of(primal, memory))


def fitted(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return `tangent` in the layout of `primal`: itself if it has it, else a recorded copy."""
    alike = (tangent._conjugated, tangent._negated) == (primal._conjugated, primal._negated)
    if alike and same_layout(tangent._memory, primal._memory):
        return tangent
    with Deriving(modes.grad_enabled):
        return primal._around(laid_out_like(primal._memory, tangent._dtype)).copy_(tangent)


# --- writes -----------------------------------------------------------------------------------------------------------


def overwrite(current: Tensor, new: Tensor) -> None:
    """Write `new` into the tangent `current`, in whose views it shows."""
    with Deriving(modes.grad_enabled):
        current.copy_(new)


def carry_written(target: Tensor, tangent: Tensor) -> None:
    """Let `target`, which has been written and had no tangent, carry `tangent`; so does its part of its base."""
    held = target._meta.forward if target._meta is not None else None
    cut = held is not None and held.level is level
    base = target if target._base is None or cut else target._base
    attach(base, base._around(laid_out_like(base._memory, base._dtype)))
    current = tangent_of(target)
    assert current is not None
    overwrite(current, tangent)


# --- saved results ----------------------------------------------------------------------------------------------------


class DualResult(SavedResult):
    """A saved output that had a tangent: the derivative that uses it is itself differentiated along it."""

    __slots__ = ("forward", "history")

    def __init__(self, saved: SavedResult, forward: ForwardGrad) -> None:
        super().__init__(saved.array, saved.counter, saved.nr)
        self.history = saved.history
        self.forward = forward

    def restore(self, tensor: Tensor) -> None:
        """Give the tensor made of it the tangent."""
        tensor._extras().forward = self.forward


def keep_with_saved(node: Any, outputs: Sequence[Tensor]) -> None:
    """Keep the tangents of outputs with what `node` saved of them."""
    for name in () if node is None else type(node).saved_names:
        value = getattr(node, "s_" + name, None)
        if isinstance(value, list):
            setattr(node, "s_" + name, [_with_tangent(item, outputs) for item in value])
        else:
            setattr(node, "s_" + name, _with_tangent(value, outputs))


def _with_tangent(value: Any, outputs: Sequence[Any]) -> Any:
    if not isinstance(value, SavedResult) or isinstance(value, DualResult) or value.nr >= len(outputs):
        return value
    meta = getattr(outputs[value.nr], "_meta", None)
    return value if meta is None or meta.forward is None else DualResult(value, meta.forward)
