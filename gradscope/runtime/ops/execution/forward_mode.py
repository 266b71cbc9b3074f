"""Forward mode: operators give their results tangents.

Inside a dual level a tensor may carry a tangent (:mod:`gradscope.runtime.tensor.tangents`), and every operator gives
its results theirs. No operator declares a rule for that: its derivative, written for backward, is the linear map from
``u`` to ``u`` times the Jacobian. Recorded at any ``u`` and differentiated with respect to it, the same line yields the
Jacobian times a tangent ("double backward": J. Townsend, *A new trick for calculating Jacobian vector products*, 2017).
Where a result shares memory with its operand, its tangent is the same view of the operand's tangent, so that writes
keep both in step.

:mod:`gradscope.autograd.forward_ad` is what users call. Outside a level nothing here runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ... import state
from ...dispatch import TENSOR_OPERATORS as F
from ...engine.backward import grad
from ...graph.edges import ends_of, own_edge
from ...memory import device
from ...memory.dtype import BY_NUMPY, INEXACT
from ...memory.storage import element_strides, memory_of
from ...tensor.tangents import (
    Deriving,
    active,
    attach,
    carry_written,
    keep_with_saved,
    overwrite,
    primal_of,
    tangent_of,
)
from ..declaration.annotations import Argument, Array, GraphNode
from .saving import save_operands, save_value, tensors_among

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor
    from ..declaration.registry import Operator

__all__ = ["before_write", "has_tangent", "owned", "propagate"]

modes = state.local


def has_tangent(operands: Sequence[Argument]) -> bool:
    """Whether one of the tensors among `operands` carries a tangent."""
    return any(tangent_of(tensor) is not None for tensor in tensors_among(list(operands)))


# --- one operator -----------------------------------------------------------------------------------------------------

# Stands for the edge of an operand whose gradient is wanted.
_WANTED: object = object()


def propagate(
    op: Operator, node: GraphNode, operands: list[Argument], outputs: list[Tensor], aux: dict[str, Array]
) -> None:
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


def _propagate_view(op: Operator, operands: list[Argument], outputs: list[Tensor]) -> None:
    """Views are linear: the tangent of a view is the view of the tangent."""
    source = tangent_of(operands[0])
    if source is None:
        return
    with Deriving(recorded=True):
        views = op.call((source, *operands[1:]))
    for output, view in zip(outputs, views if isinstance(views, tuple) else (views,), strict=True):
        attach(output, view)


def edged_operands(op: Operator, operands: Sequence[Argument]) -> list[Argument]:
    """Return the operands that the operator's node has edges for, lists flattened."""
    by_name = dict(zip((p.name for p in op.parameters), operands, strict=True))
    found: list[Argument] = []
    for parameter in op.edged:
        value = by_name[parameter.name]
        found.extend(value if isinstance(value, (list, tuple)) else [value])
    return found


def pushforward(
    op: Operator,
    operands: Sequence[Argument],
    outputs: list[Tensor],
    aux: dict[str, Array],
    tangents: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Return the Jacobian of a call times `tangents` (one per edge), for each of its differentiable outputs."""
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
    op: Operator,
    operands: Sequence[Argument],
    outputs: list[Tensor],
    aux: dict[str, Array],
    tangents: Sequence[Argument],
) -> GraphNode:
    """Return a node of a call that wants gradients where there are tangents; it is in no graph.

    It saves results as the tensors they are, so that the tangent is recorded as a function of them.
    """
    node: GraphNode = op.node_class()  # type: ignore[misc]
    node.edges = tuple(None if t is None else _WANTED for t in tangents)
    node.seq, node.extra = 0, None
    array = outputs[0]._array
    node.shape, node.dtype, node.kind = array.shape, array.dtype, type(array)
    if op.multi:
        node.outs = [(o._array.shape, o._dtype) for o in outputs]
    by_name = dict(zip((p.name for p in op.parameters), operands, strict=True))
    save_operands(op, node, by_name, aux)
    for name, output in zip(op.outputs, outputs, strict=False):
        if name in node.saved_names:
            save_value(node, name, output)
    return node


def _each(operand: Argument, function: Callable[[Tensor], Tensor]) -> Argument:
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
    want = pulled._array
    if tangent._dtype.kind == "c" and want.dtype.kind != "c":
        tangent = F.real(tangent)
    if tangent._dtype != want.dtype:
        tangent = tangent.to(BY_NUMPY[want.dtype])
    return tangent if tangent._array.shape == want.shape else tangent.expand(want.shape)


def owned(tangent: Tensor, output: Tensor, others: Sequence[Argument]) -> Tensor:
    """Return a new output's tangent with memory of its own, laid out as the output."""
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


def before_write(op: Operator, arguments: tuple[Argument, ...]) -> Callable[[Tensor], None] | None:
    """Note what an in-place call will overwrite; return what is to be called with its target after the write."""
    if not active() or not hasattr(arguments[0], "_array") or not has_tangent(arguments):
        return None
    operands: Sequence[Argument] = arguments
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


def _after_write(op: Operator, operands: Sequence[Argument], tangents: list[Tensor | None], target: Tensor) -> None:
    """Write the tangent of a written tensor, into its base's where it is a view."""
    current = tangent_of(target)
    if op.view is not None:
        if current is not None:
            with Deriving(recorded=True):
                attach(target, op.call((current, *operands[1:])))
        return
    found = pushforward(op, operands, [target], {}, tangents) if op.node_class is not None else []
    new = found[0] if found else None
    if current is not None:
        overwrite(current, _zeros_like(current) if new is None else new)
    elif new is not None:
        carry_written(target, new)
    keep_with_saved(_writing_node(target), [target])


def _writing_node(target: Tensor) -> GraphNode:
    """Return the node of the operator that has just written `target`; for a view it is inside its base's CopySlices."""
    edge = own_edge(target if target._base is None else target._base)
    return None if edge is None else getattr(ends_of(edge)[0], "function", ends_of(edge)[0])
