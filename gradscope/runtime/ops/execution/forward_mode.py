"""Forward mode: tangents that travel with the values.

Inside a dual level a tensor may carry a tangent, and every operator gives its results theirs. No operator declares a
rule for that: its derivative, written for backward, is the linear map from ``u`` to ``u`` times the Jacobian. Recorded
at any ``u`` and differentiated with respect to it, the same line yields the Jacobian times a tangent ("double
backward": J. Townsend, *A new trick for calculating Jacobian vector products*, 2017). Where a result shares memory with
its operand, its tangent is the same view of the operand's tangent, so that writes keep both in step.

:mod:`gradscope.autograd.forward_ad` is what users call. Outside a level nothing here runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import state
from ..graph.graph_node import SavedResult, ends_of, own_edge
from ..memory import device
from ..memory.dtype import BY_NUMPY, INEXACT
from ..memory.storage import bytes_of, element_strides, geometry_of, memory_of, offset_of, strided_view
from ..tensor.views import steps_to, taken

if TYPE_CHECKING:
    from ..ops.declaration.registry import Operator
    from ..tensor.tensor import Tensor

__all__ = [
    "DualLevel",
    "ForwardGrad",
    "active",
    "attach",
    "before_write",
    "enter",
    "leave",
    "primal_of",
    "propagate",
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


def has_tangent(operands: Sequence[Any]) -> bool:
    """Whether one of the tensors among `operands` carries a tangent."""
    from ..ops.execution.general import tensors_among

    return any(tangent_of(tensor) is not None for tensor in tensors_among(list(operands)))


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


# Stands for the edge of an operand whose gradient is wanted.
_WANTED: Any = object()

# --- one operator -----------------------------------------------------------------------------------------------------


def propagate(op: Operator, node: Any, operands: list[Any], outputs: list[Tensor], aux: dict[str, Any]) -> None:
    """Give the outputs of a call their tangents, if its operands have any."""
    if not has_tangent(operands):
        return
    if outputs and outputs[0]._view is not None:
        _propagate_view(op, operands, outputs)
    elif op.node_class is not None:
        tangents = [tangent_of(t) if hasattr(t, "_array") else None for t in edged_operands(op, operands)]
        for output, tangent in zip(outputs, pushforward(op, operands, outputs, aux, tangents), strict=False):
            if tangent is not None:
                attach(output, owned(tangent, output, [*operands, *tangents]))
    keep_with_saved(node, outputs)


def _propagate_view(op: Operator, operands: list[Any], outputs: list[Tensor]) -> None:
    """Views are linear: the tangent of a view is the view of the tangent."""
    from ..ops.execution import general

    source = tangent_of(operands[0])
    if source is None:
        return
    with Deriving(recorded=True):
        views = general.run(op, (source, *operands[1:]))
    for output, view in zip(outputs, views if isinstance(views, tuple) else (views,), strict=True):
        attach(output, view)


def edged_operands(op: Operator, operands: Sequence[Any]) -> list[Any]:
    """Return the operands that the operator's node has edges for, lists flattened."""
    by_name = dict(zip((p.name for p in op.parameters), operands, strict=True))
    found: list[Any] = []
    for parameter in op.edged:
        value = by_name[parameter.name]
        found.extend(value if isinstance(value, (list, tuple)) else [value])
    return found


def pushforward(
    op: Operator, operands: Sequence[Any], outputs: list[Tensor], aux: dict[str, Any], tangents: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the Jacobian of a call times `tangents` (one per edge), for each of its differentiable outputs."""
    from ..ops.execution.general import tensors_among
    from .backward import grad

    if op.node_name == "NotImplemented":
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it.\n"
            "It has no derivative: give it a tensor without tangent, e.g. x.detach()."
        )
    results, outputs = outputs, op.graded_outputs(outputs)
    if outputs[0]._dtype.kind not in INEXACT:
        return []
    taking_part = [*tensors_among(list(operands)), *(t for t in tangents if t is not None)]
    recorded = modes.grad_enabled and any(t.requires_grad for t in taking_part)
    with Deriving(recorded=True):
        strip = _primal_of_dual if recorded else _bare
        operands, results = [_each(o, strip) for o in operands], [_each(o, strip) for o in results]
        node = _derivative_node(op, operands, results, aux, tangents)
        seeds = [_seed_like(o) for o in outputs]
        pulled = node.apply_graph(seeds if op.multi else seeds[0])
        pairs = [
            (p, _as_gradient_of(v, p))
            for p, v in zip(pulled, tangents, strict=True)
            if p is not None and v is not None and p.requires_grad
        ]
        if not pairs:
            return [_zeros_like(o) for o in outputs]
        ends, vectors = zip(*pairs, strict=True)
        found = grad(ends, seeds, vectors, create_graph=recorded, allow_unused=True)
    return [_zeros_like(o) if t is None else t for t, o in zip(found, outputs, strict=True)]


def _derivative_node(
    op: Operator, operands: Sequence[Any], outputs: list[Tensor], aux: dict[str, Any], tangents: Sequence[Any]
) -> Any:
    """Return a node of a call that wants gradients where there are tangents; it is in no graph.

    It saves results as the tensors they are, so that the tangent is recorded as a function of them.
    """
    from ..ops.execution import general

    node: Any = op.node_class()  # type: ignore[misc]
    node.edges = tuple(None if t is None else _WANTED for t in tangents)
    node.seq, node.extra = 0, None
    array = outputs[0]._array
    node.shape, node.dtype, node.kind = array.shape, array.dtype, type(array)
    if op.multi:
        node.outs = [(o._array.shape, o._dtype) for o in outputs]
    by_name = dict(zip((p.name for p in op.parameters), operands, strict=True))
    general.save_operands(op, node, by_name, aux)
    for name, output in zip(op.outputs, outputs, strict=False):
        if name in node.saved_names:
            general.save_value(node, name, output)
    return node


def _each(operand: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return what `function` makes of a tensor, or of each of a list; other operands as they are."""
    if isinstance(operand, (list, tuple)):
        return [_each(item, function) for item in operand]
    return function(operand) if hasattr(operand, "_array") else operand


def _bare(tensor: Tensor) -> Tensor:
    """Return a tensor of the same memory without history, views and flags."""
    return type(tensor)._wrap(tensor._array)


def _primal_of_dual(tensor: Tensor) -> Tensor:
    return tensor if tangent_of(tensor) is None else primal_of(tensor)


def _zeros_like(tensor: Tensor) -> Tensor:
    array = tensor._array
    return type(tensor)._wrap(device.array_module(array).zeros(array.shape, dtype=array.dtype))


def _seed_like(output: Tensor) -> Tensor:
    return _zeros_like(output).requires_grad_()


def _as_gradient_of(tangent: Tensor, pulled: Tensor) -> Tensor:
    """Return a tangent as the gradient of a pulled-back vector, which may be broadcast or of a wider dtype.

    The engine would sum and cast that vector to the operand's shape and dtype; this is the transpose of doing so.
    """
    from ..ops.execution.bare_functions import TENSOR_OPERATORS as F

    want = pulled._array
    if tangent._dtype.kind == "c" and want.dtype.kind != "c":
        tangent = F.real(tangent)
    if tangent._dtype != want.dtype:
        tangent = tangent.to(BY_NUMPY[want.dtype])
    return tangent if tangent._array.shape == want.shape else tangent.expand(want.shape)


def owned(tangent: Tensor, output: Tensor, others: Sequence[Any]) -> Tensor:
    """Return a new output's tangent with memory of its own, laid out as the output."""
    from ..ops.execution.general import tensors_among

    memory = memory_of(tangent._memory)
    shared = any(memory_of(o._memory) is memory for o in tensors_among(list(others)))
    if not shared and element_strides(tangent._memory) == element_strides(output._memory):
        return tangent
    with Deriving(modes.grad_enabled):
        if output._array.flags.c_contiguous:
            return tangent.clone(memory_format="contiguous")
        xp = device.array_module(output._array)
        return type(tangent)._wrap(xp.empty_like(output._array, dtype=tangent._dtype)).copy_(tangent)


# --- writes -----------------------------------------------------------------------------------------------------------


def before_write(op: Operator, arguments: tuple[Any, ...]) -> Callable[[Tensor], None] | None:
    """Note what an in-place call will overwrite; return what is to be called with its target after the write."""
    if not active() or not hasattr(arguments[0], "_array") or not has_tangent(arguments):
        return None
    operands: Sequence[Any] = arguments
    if op.view is None:
        memory = memory_of(arguments[0]._memory)
        operands = [_each(a, lambda t: _copied(t) if memory_of(t._memory) is memory else t) for a in arguments]
    tangents = [tangent_of(t) if hasattr(t, "_array") else None for t in edged_operands(op, operands)]
    return partial(_after_write, op, operands, tangents)


def _copied(tensor: Tensor) -> Tensor:
    """Return a recorded copy of a tensor and of its tangent."""
    tangent = tangent_of(tensor)
    with Deriving(modes.grad_enabled):
        copy = tensor.clone()
        if tangent is not None:
            attach(copy, tangent.clone())
    return copy


def _after_write(op: Operator, operands: Sequence[Any], tangents: list[Tensor | None], target: Tensor) -> None:
    """Write the tangent of a written tensor, into its base's where it is a view."""
    from ..ops.execution import general

    current = tangent_of(target)
    if op.view is not None:
        if current is not None:
            with Deriving(recorded=True):
                attach(target, general.run(op, (current, *operands[1:])))
        return
    found = pushforward(op, operands, [target], {}, tangents) if op.node_class is not None else []
    new = found[0] if found else None
    if current is not None:
        _overwrite(current, _zeros_like(current) if new is None else new)
    elif new is not None:
        carry_written(target, new)
    keep_with_saved(_writing_node(target), [target])


def _overwrite(current: Tensor, new: Tensor) -> None:
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
    _overwrite(current, tangent)


def _writing_node(target: Tensor) -> Any:
    """Return the node of the operator that has just written `target`; for a view it is inside its base's CopySlices."""
    edge = own_edge(target if target._base is None else target._base)
    return None if edge is None else getattr(ends_of(edge)[0], "function", ends_of(edge)[0])


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
