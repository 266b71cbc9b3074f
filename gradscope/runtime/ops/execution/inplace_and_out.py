"""Writing into memory that is already there: in-place and ``out=`` forms of operators.

Nothing is changed when anything raises: the checks and the computation come first, then the write, the version and the
history.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import state
from ...graph.edges import edge_to, hold_edge
from ...memory import device, dtype
from ...memory.dtype import scalar_type
from ...memory.storage import (
    bytes_of,
    contiguous_strides,
    memory_of,
    overlap_error,
    overlaps_itself,
    shared_part,
    strided_view,
)
from ...tensor import overrides, tangents
from ...tensor.inplace_checks import check_inplace
from ...tensor.views import RereadView, saved_result, strided_step
from ...user_warnings import warn
from ..declaration.annotations import Argument, Array, DType, GraphNode, Namespace, Out, Results
from . import forward_mode, general
from .array_errors import forward_error, wrong_argument
from .saving import save_value, tensors_among

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor
    from ..declaration.registry import Operator


def run_inplace(op: Operator, arguments: tuple[Argument, ...]) -> Tensor:
    """Call `op` and write its result into the first argument; its history follows, as PyTorch rebases it.

    Nothing is changed when anything raises: the checks and the computation come first, then the write.
    """
    if state.overriding:
        overridden = overrides.of_operator(op, arguments, "_")
        if overridden is not overrides.NONE:
            return overridden
    finish = forward_mode.before_write(op, arguments) if state.special else None
    target = write_inplace(op, arguments)
    if finish is not None:
        finish(target)
    return target


def write_inplace(op: Operator, arguments: tuple[Argument, ...]) -> Tensor:
    """Do what :func:`run_inplace` does, but for tangents."""
    operands, bare, xp = general.prepare(op, arguments)
    target: Tensor = operands[0]
    recording = target._dtype.kind in dtype.INEXACT and general.wants_grad(operands)  # integers have no gradient
    expanded = op.expanded is not None or op.view is not None
    check_inplace(target, recording, expanded=expanded, differentiable=op.differentiable)
    if op.view is not None:
        return run_relayout(op, operands, bare, xp, recording)
    if op.expanded == "deprecated" and overlaps_itself(target._memory):
        warn_expanded(op)
    for value in bare[1:] if not target._flags & state.MATH_BITS else ():  # a conjugate is computed beside its memory
        if device.is_array(value) and op.name != "fill.Tensor":
            check_overlap(target._array, value)
    if op.write is not None:
        return run_write(op, operands, bare, xp, recording)
    try:
        results = general.forward(op, xp, bare)
    except (ValueError, TypeError) as error:
        raise forward_error(op, arguments, error) from error
    aux: dict[str, Array] = {}
    if op.aux:
        results, *extra = results
        aux = dict(zip(op.aux, extra, strict=True))
    result = results if device.is_array(results) else xp.asarray(results)
    check_result(op, target._memory, result)
    node = inplace_node(op, operands, aux) if recording else None
    return commit_inplace(op, target, result, node, operands)


def warn_expanded(op: Operator) -> None:
    """Warn of a write to a tensor of which several elements lie at one address, in PyTorch's words."""
    warn(
        f"Use of {op.name.partition('.')[0]}_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[indices] = tensor",
    )


def run_relayout(op: Operator, operands: list[Argument], bare: list[Array], xp: Namespace, recording: bool) -> Tensor:
    """Finish the in-place call of a view: the tensor gets its shape and strides; the elements stay where they are."""
    target: Tensor = operands[0]
    result = target._around(general.forward(op, xp, bare))
    result._flags |= target._flags & state.INFERENCE
    node: GraphNode = general.make_node(op, operands, [result], {}, op.inplace_node_class) if recording else None
    if isinstance(target._view, RereadView):
        target._view.steps += (strided_step(result._memory, target._memory),)
    if node is None:
        target.data = result
    else:
        target._hold(result._memory)
    target._bump(op.name.partition(".")[0] + "_")
    if node is not None:
        hang_relaid(target, node)
    if state.special:
        general.instrument(op, node, operands, [target], fresh=False)
    return target


def hang_relaid(target: Tensor, node: GraphNode) -> None:
    """Make `node` the history of a tensor that got another shape.

    What retain_grad() asked for stays with the node before, in the shape of then, as in PyTorch.
    """
    view = target._view
    if view is None:
        hold_edge(target, edge_to(node))
    else:
        view.edge, view.version = edge_to(node), target._counter().version
    target._flags |= state.GRAD


def run_write(op: Operator, operands: list[Argument], bare: list[Array], xp: Namespace, recording: bool) -> Tensor:
    """Finish the in-place call of an operator that writes into the first array itself."""
    try:
        node = inplace_node(op, operands, {}) if recording else None
    except AttributeError as error:  # a tensor where none is taken has no place among what a node saves
        raise wrong_argument(op, tuple(operands)) or error from None
    result = None
    if operands[0]._flags & state.MATH_BITS:
        result = bare[0] = bare[0].copy()
    try:
        general.write(op, xp, bare)
    except (ValueError, TypeError) as error:
        raise forward_error(op, tuple(operands), error) from error
    return commit_inplace(op, operands[0], result, node, operands)


def inplace_node(op: Operator, operands: list[Argument], aux: dict[str, Array]) -> GraphNode:
    """Return the node of an in-place call, made before the write; a needed ``self`` is cloned, as PyTorch does."""
    if op.node_class is None:
        return None
    node = general.make_node(op, operands, [operands[0]], aux, op.inplace_node_class)
    name = op.parameters[0].name
    saves_target: bool = node is not None and getattr(node, "s_" + name, None) is operands[0]
    if saves_target:
        save_value(node, name, operands[0].clone())
    if node is not None and state.special and state.local.saved_hooks:
        general.pack_all(node)  # an operand may be the target itself: it is packed before it is written
    return node


def commit_inplace(
    op: Operator, target: Tensor, result: Array | None, node: GraphNode, operands: list[Argument]
) -> Tensor:
    """Write `result` (None if it is written already), bump the version, rebase the history onto `node`."""
    if result is not None:
        target._write(result)
    target._bump(op.name.partition(".")[0] + "_")
    if general.flags_of(operands) & state.INERT:
        target._make_inert()
    if node is not None:
        target._rebase(node)
        if "result" in type(node).saved_names:
            node.s_result = saved_result(target)
            node.v_result = target._counter().version
    if state.special:
        general.instrument(op, node, operands, [target], fresh=False)
    return target


def check_result(op: Operator, target: Array, result: Array) -> None:
    """Raise where a result does not fit the tensor it is to be written into."""
    name = op.name.partition(".")[0]
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)} "
            f"in {name}_()\nUse the out-of-place form {name}()."
        )
    check_castable(name + "_", target, result)


def check_castable(name: str, target: Array, result: Array) -> None:
    """Raise where the dtype of a result is of a higher category than that of the tensor it is to be written into."""
    if dtype.CATEGORY[result.dtype.kind] > dtype.CATEGORY[target.dtype.kind]:
        kinds = [scalar_type(d) for d in (result.dtype, target.dtype)]
        raise RuntimeError(
            f"result type {kinds[0]} can't be cast to the desired output type {kinds[1]} in {name}()\n"
            f"Use {name.removesuffix('_')}() without a target, or convert the tensor first."
        )


def run_out(op: Operator, arguments: tuple[Argument, ...], out: Out) -> Results:
    """Call `op` with ``out=``: the result is written into `out`, which is resized if its shape differs.

    Of an operator with several results `out` is a tuple of as many tensors.
    """
    if state.overriding:
        function = functools.partial(op.function, out=out)
        overridden = overrides.dispatch(functools.update_wrapper(function, op.function), arguments, {})
        if overridden is not overrides.NONE:
            return overridden
    operands, bare, xp = general.prepare(op, in_dtype_of(out, op, arguments))
    targets = several_out(op, out) if op.multi else (out,)
    for target in targets:
        refuse_out(op.name.partition(".")[0], operands, target, op.differentiable)
        for tensor in tensors_among(operands):
            check_overlap(target._array, tensor._array, "none" if op.out in ("apart", "exact") else "all")
    try:
        results = general.forward(op, xp, bare)
    except (ValueError, TypeError) as error:
        raise forward_error(op, arguments, error) from error
    results = list(results) if op.output_list else results[: len(targets)] if op.aux or op.multi else (results,)
    if len(results) != len(targets):
        raise RuntimeError(
            f"{op.name}_out() expected an out= argument of size {len(results)}, got size {len(targets)}\n"
            "Give one tensor for each result."
        )
    results = [r if device.is_array(r) else xp.asarray(r) for r in results]
    for target, result in zip(targets, results, strict=True):
        check_castable(op.name.partition(".")[0], target._memory, result)
        if op.multi or not (op.casts_into_out or _is_part(result, target, bare)):
            check_same(target._memory, result)
    for target, result in zip(targets, results, strict=True):
        store_out(op.name.partition(".")[0], result, operands, target, op.differentiable)
    return op.result_type(*targets) if len(op.outputs) > 1 else out


def _is_part(result: Array, target: Tensor, bare: list[Array]) -> bool:
    """Whether a real result of complex numbers goes into a tensor of their dtype, as PyTorch lets abs() do."""
    return result.dtype.kind == "f" and target._dtype.kind == "c" and target._dtype == getattr(bare[0], "dtype", None)


def in_dtype_of(out: Out, op: Operator, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return the arguments of a call that may be told a dtype, with that of `out` where it was told none."""
    last = len(arguments) - 1
    if op.parameters[last].name != "dtype":
        return arguments
    return (*arguments[:last], dtype_of(out, arguments[last]))


def dtype_of(out: Out, told: DType) -> DType:
    """Return the dtype in which a reduction is made: the one it was told, else that of its ``out=``."""
    return getattr(out, "dtype", None) if told is None else told


def check_same(target: Array, result: Array) -> None:
    """Raise where a result has another dtype than the tensor that it is to be written into."""
    if target.dtype != result.dtype:
        names = [dtype.BY_NUMPY[array.dtype].name for array in (result, target)]
        raise RuntimeError(
            f"Expected out tensor to have dtype {names[0]}, but got {names[1]} instead\n"
            f"Give a tensor of dtype {names[0]}, or convert the result."
        )


def several_out(op: Operator, out: Out) -> tuple[Tensor, ...]:
    """Return the tensors given as ``out=`` to an operator with several results."""
    if not isinstance(out, (tuple, list)) or (len(out) != len(op.outputs) and not op.output_list):
        name = op.name.partition(".")[0]
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of {len(op.outputs)} Tensors, not {type(out).__name__}\n"
            f"Give one tensor for each of {', '.join(op.outputs)}."
        )
    return tuple(out)


def into(
    out: Tensor, name: str, operands: list[Argument], compute: Callable[[], Tensor], *, exact: bool = False
) -> Tensor:
    """Give a composite function its ``out=``: write what `compute` returns into `out`, if `exact` of the same dtype."""
    refuse_out(name, operands, out)
    result = compute()._array
    if exact:
        check_same(out._memory, result)
    return store_out(name, result, operands, out)


def refuse_out(name: str, operands: list[Argument], out: Out, differentiable: bool = True) -> None:
    """Raise when `out` is no tensor, or when it or an operand of what is `differentiable` requires grad."""
    if not hasattr(out, "_array"):
        raise TypeError(
            f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}\n"
            "Give the tensor that the result is to be written into."
        )
    tensors = [*tensors_among(operands), out]
    if differentiable and state.local.grad_enabled and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.\nDrop out=, or compute it under gradscope.no_grad()."
        )
    if state.special and tangents.active() and forward_mode.has_tangent([*operands, out]):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function\n"
            "Drop out=: the result is a tensor with a tangent then."
        )


def store_out(name: str, result: Array, operands: list[Argument], out: Tensor, differentiable: bool = True) -> Tensor:
    """Write the array `result` into `out`, resized where its shape differs; nothing is changed when it does not fit."""
    check_castable(name, out._memory, result)
    check_inplace(out, False, differentiable=differentiable)
    if result.shape != out._shape:
        if any(tensor is out for tensor in tensors_among(operands)):
            raise RuntimeError(
                f"output with shape {list(out._shape)} doesn't match the broadcast shape {list(result.shape)} in "
                f"{name}()\nAn operand that is overwritten cannot be resized: give another tensor as out=."
            )
        if out._memory.size:
            warn(
                f"An output with one or more elements was resized since it had shape {list(out._shape)}, which "
                f"does not match the required output shape {list(result.shape)}. This behavior is deprecated, and in "
                "a future PyTorch release outputs will not be resized unless they have zero elements.",
            )
        out._replace(_resized(out, result))
    out._write(result)
    out._bump(name)
    if general.flags_of(operands) & state.INERT:
        out._make_inert()
    return out


def _resized(out: Tensor, result: Array) -> Array:
    """Return memory for `out` in the shape of a result, in its storage where there is room; an offset stays."""
    empty, start = device.array_module(result).empty, out.storage_offset()
    if (start + result.size) * out._dtype.itemsize <= bytes_of(memory_of(out._memory)):
        return strided_view(out._memory, (result.shape, contiguous_strides(result.shape), start))
    if not start:
        return empty(result.shape, dtype=out._dtype)
    return empty(start + result.size, dtype=out._dtype)[start:].reshape(result.shape)


def check_overlap(target: Array, source: Array, allowed: str = "all") -> None:
    """Raise when `target` is to be written while `source`, a part of the same memory, is read."""
    if shared_part(target, source) not in ("none", "", allowed):
        raise overlap_error("some elements of the input tensor and the written-to tensor refer")
