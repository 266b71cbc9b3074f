"""Saving for backward: the operands, results and facts that its derivative names, with their versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

from ... import state
from ...graph.saved_tensors import SavedResult
from ...memory.storage import VersionCounter, element_strides, offset_of
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, GraphNode

if TYPE_CHECKING:
    from ...graph.graph_node import Node
    from ..declaration.registry import Operator

__all__ = [
    "refuse_inference",
    "save_operands",
    "save_result",
    "save_results",
    "save_value",
    "saved_by",
    "tensors_among",
]


def tensors_among(operands: Sequence[Argument]) -> list[Tensor]:
    """Return the tensors among operands, lists flattened."""
    found = []
    for operand in operands:
        if isinstance(operand, Tensor):
            found.append(operand)
        elif isinstance(operand, list):
            found.extend(item for item in operand if isinstance(item, Tensor))
    return found


@cache
def saved_by(op: Operator) -> dict[str, tuple[str, ...]]:
    """Return, for each saved name, the differentiable arguments whose gradient needs it."""
    users: dict[str, list[str]] = {}
    formulas = op.derivatives if op.joint is None else dict.fromkeys((p.name for p in op.edged), op.joint)
    for argument, formula in formulas.items():
        for name in op.needed_by(formula):
            if name not in ("g", "F", "needs"):
                users.setdefault(name, []).append(argument)
    return {name: tuple(arguments) for name, arguments in users.items()}


def save_operands(op: Operator, node: GraphNode, by_name: dict[str, Argument], aux: dict[str, Array]) -> None:
    """Fill the saved slots that a node class declares, for the gradients that are wanted."""
    wanted = wanted_arguments(op, node)
    for name, users in saved_by(op).items():
        if name in op.outputs:
            setattr(node, "s_" + name, None)
        elif name in aux:
            setattr(node, "s_" + name, aux[name])
        elif name in by_name:
            value = by_name[name] if wanted.intersection(users) else None
            save_value(node, name, value)
        else:
            setattr(node, "s_" + name, saved_fact(by_name, name))


def wanted_arguments(op: Operator, node: GraphNode) -> set[str]:
    """Return the tensor arguments whose gradient has somewhere to go."""
    names = [p.name for p in op.edged]
    if any(p.is_tensor_list for p in op.edged):
        return set(names)
    return {name for name, edge in zip(names, node.edges, strict=True) if edge is not None}


def saved_fact(by_name: dict[str, Argument], name: str) -> Argument:
    """Return ``NAME_shape``, ``NAME_dtype``, ``NAME_strides`` or ``NAME_offset`` of an operand."""
    argument, _, fact = name.rpartition("_")
    value = by_name[argument]
    read = {"strides": element_strides, "offset": offset_of}.get(fact, attrgetter(fact))
    if isinstance(value, list):
        return [read(t._memory) for t in value]
    return read(value._memory) if hasattr(value, "_memory") else None


def save_value(node: GraphNode, name: str, value: Argument) -> None:
    """Put a tensor (with its version), a list of them or a plain value into a saved slot."""
    if isinstance(value, list) and value and hasattr(value[0], "_array"):
        for item in value:
            refuse_inference(node, item)
        setattr(node, "s_" + name, list(value))
        setattr(node, "v_" + name, [t._version for t in value])
        return
    if hasattr(value, "_array"):
        refuse_inference(node, value)
        setattr(node, "v_" + name, value._version)
    setattr(node, "s_" + name, value)


def refuse_inference(node: Node, tensor: Tensor) -> None:
    """Raise when a tensor made in inference mode would be saved for backward."""
    if tensor._flags & state.INFERENCE:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            f"it in autograd, or use `gradscope.no_grad()` instead of `gradscope.inference_mode()` "
            f"({node.name()} wants to save a tensor of shape {list(tensor.shape)})."
        )


def save_results(node: GraphNode, outputs: list[Tensor]) -> None:
    """Save the outputs that the node's derivative names."""
    for nr, name in enumerate(type(node).op.outputs):
        if name in type(node).saved_names:
            save_result(node, outputs[nr], name, nr)


def save_result(node: GraphNode, output: Tensor, name: str = "result", nr: int = 0) -> None:
    """Save an output: array and counter, not the tensor (that would be a cycle)."""
    counter = output._vc
    if counter is None:
        counter = output._vc = VersionCounter()
    setattr(node, "s_" + name, SavedResult(output._array, counter, nr))
    setattr(node, "v_" + name, counter.version)
