"""The steps of a user's Function around its forward: edges, history, saved tensors, tangents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..runtime import events, state
from ..runtime.graph.edges import own_edge
from ..runtime.graph.graph_node import Node, NodeExtra
from ..runtime.graph.saved_tensors import pack_slot
from ..runtime.memory import device
from ..runtime.memory.dtype import INEXACT
from ..runtime.memory.storage import memory_of
from ..runtime.ops.execution import forward_mode, general
from ..runtime.ops.execution.saving import refuse_inference
from ..runtime.tensor import tangents
from ..runtime.tensor.inplace_checks import check_view
from ..runtime.tensor.tensor import Tensor
from ..runtime.tensor.views import edge_of, rebase, saved_result
from ..runtime.user_warnings import warn
from .function_context import SAVED, FunctionNode

__all__ = ["begin", "finish", "push_tangents"]

modes = state.local
next_sequence = state.next_sequence

_set_edges = Node.__dict__["edges"].__set__
_set_seq = Node.__dict__["seq"].__set__
_set_extra = Node.__dict__["extra"].__set__


def begin(node: FunctionNode, args: Iterable[Any]) -> bool:
    """Give `node` its edges; return whether the call is to be recorded."""
    needs, is_tensor, tensors, flags = [], [], [], 0
    for value in args:
        if isinstance(value, Tensor):
            flags |= value._flags
            needs.append(value.requires_grad)
            is_tensor.append(True)
            tensors.append(value)
        else:
            needs.append(False)
            is_tensor.append(False)
    node.needs_input_grad = tuple(needs)
    node._is_tensor = tuple(is_tensor)
    _set_seq(node, next_sequence())
    _set_extra(node, NodeExtra())
    recorded = modes.grad_enabled and not flags & state.INERT and True in needs
    if recorded:
        _set_edges(
            node, tuple([edge_of(t) if t.requires_grad or t._flags & state.CONNECTED else None for t in tensors])
        )
    else:
        _set_edges(node, (None,) * len(tensors))
    return recorded


def finish(node: FunctionNode, args: tuple[Any, ...], raw: Any, recorded: bool) -> Any:
    """Hang the outputs of forward on `node`, save what it asked to save, and return them."""
    if recorded and type(raw) is Tensor and raw._view is None and _is_common(node, args, raw):
        return _finish_common(node, raw)
    if recorded and type(raw) is tuple and _is_identity(node, args, raw):
        return _finish_identity(node, raw)
    outputs = list(raw) if isinstance(raw, tuple) else [raw]
    specs: list[Any] = []
    for output in outputs:
        if isinstance(output, Tensor):
            array = output._array
            specs.append((array.shape, array.dtype))
            if type(array) is not device.ndarray:
                node._module = device.array_module(array)
        else:
            specs.append(None)
    node._outputs = tuple(specs)
    dirty = _bumped(node)
    for tensor in dirty:
        if not _among(tensor, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                f"are modified inplace must all be outputs of the Function.\n{node.node_name} wrote a tensor of shape "
                f"{list(tensor.shape)}: return it from forward."
            )
    differentiable = 0
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            continue
        is_input, is_dirty = _among(output, args), _among(output, dirty)
        takes_grad = recorded and output._dtype.kind in INEXACT and not _among(output, node.non_differentiable)
        output = outputs[index] = _link(node, output, index, is_input, is_dirty, takes_grad, len(outputs))
        differentiable += takes_grad
        if output._view is not None and not (is_input and is_dirty):
            _mark_view(node, output, index)
    if differentiable > 1:
        for output in outputs:
            if isinstance(output, Tensor) and output._view is not None and not _among(output, dirty):
                output._view.creation = "multi"
    if recorded:
        if node.to_save:
            _save(node, node.to_save)
    elif any(isinstance(value, Tensor) and value._flags & state.INERT for value in args):
        for output in outputs:
            if isinstance(output, Tensor):
                output._flags |= state.INERT
    # What ctx was told to save holds outputs, and those hold the node.
    if node.to_save is not None:
        node.to_save = None
    if dirty:
        node.dirty_tensors = None
    if node.non_differentiable is not None:
        node.non_differentiable = None
    if state.special:
        _instrument(node, args, [o for o in outputs if isinstance(o, Tensor)], recorded)
    return tuple(outputs) if isinstance(raw, tuple) else outputs[0]


def _is_common(node: FunctionNode, args: tuple[Any, ...], output: Tensor) -> bool:
    """Whether forward returned one new tensor on the CPU and marked nothing, and no instrument or mode is on."""
    if state.special or node.dirty_tensors is not None or node.non_differentiable is not None:
        return False
    for value in args:
        if value is output:
            return False
    array = output._array
    return type(array) is device.ndarray and array.dtype.kind in "fc"


def _finish_common(node: FunctionNode, output: Tensor) -> Tensor:
    array = output._array
    node._outputs = ((array.shape, array.dtype),)
    output._set_edge((node, 0))
    if node.to_save is not None:
        _save(node, node.to_save)
        node.to_save = None
    return output


def _is_identity(node: FunctionNode, args: tuple[Any, ...], raw: tuple[Any, ...]) -> bool:
    """Whether forward returned its arguments, all of which require grad, and marked nothing, and nobody listens."""
    if state.special or node.dirty_tensors or node.non_differentiable or node.to_save or len(raw) != len(args):
        return False
    for output, value in zip(raw, args, strict=True):
        if output is not value or type(output) is not Tensor or output._flags & ~state.VIEW != state.GRAD:
            return False
    return True


def _finish_identity(node: FunctionNode, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return views of the arguments, hung on `node`."""
    node._outputs = tuple([(tensor._shape, tensor._dtype) for tensor in tensors])
    node.non_differentiable = node.to_save = None
    outputs = []
    for index, tensor in enumerate(tensors):
        output = _view_as_self(node, tensor)
        view: Any = output._view
        view.edge, view.output_nr = (node, index), index
        if len(tensors) > 1:
            view.creation = "multi"
        output._flags |= state.GRAD
        outputs.append(output)
    return tuple(outputs)


def _among(tensor: Any, tensors: Iterable[Any] | None) -> bool:
    for other in tensors or ():  # noqa: SIM110 - any() of a generator takes three times as long
        if other is tensor:
            return True
    return False


def _bumped(node: FunctionNode) -> tuple[Any, ...]:
    """Return the tensors that forward marked as written, each counted as written once more."""
    marked: tuple[tuple[str, Any], ...] = (
        ("mark_dirty", node.dirty_tensors),
        ("mark_non_differentiable", node.non_differentiable),
    )
    for kind, tensors in marked:
        for index, tensor in enumerate(tensors or ()):
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    f"{kind} can only accept variables, but argument {index} is of type {type(tensor).__name__}"
                )
    dirty = node.dirty_tensors or ()
    for tensor in dirty:
        tensor._bump(node._forward_cls.__name__)
    return dirty


def _link(
    node: FunctionNode, output: Tensor, index: int, is_input: bool, is_dirty: bool, takes_grad: bool, count: int
) -> Tensor:
    """Return the output as the caller gets it, with its history."""
    if not takes_grad:
        if is_input and not is_dirty and not output.requires_grad:
            return _view_as_self(node, output)
        if output.requires_grad and is_input:
            return output.detach()
        if output.requires_grad and output._view is None:
            output.detach_()
        return output
    if is_dirty:
        _take_over(node, output, index, is_input, count)
        return output
    if is_input:
        output = _view_as_self(node, output)
    output._set_edge((node, index))
    return output


def _take_over(node: FunctionNode, output: Tensor, index: int, is_input: bool, count: int) -> None:
    """Rebase the history of an input that forward wrote in place."""
    view = output._view
    if output.requires_grad and view is None and output.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation.\n"
            f"{node.node_name} wrote it (shape {list(output.shape)}); give it a clone()."
        )
    if not is_input:
        warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty().",
        )
    if view is None:
        output._set_edge((node, index))
        return
    if count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
            "the input is not a view (using .clone() for example) or make your Function only return one Tensor."
        )
    check_view(output, view)
    rebase(output, node)


def _view_as_self(node: FunctionNode, tensor: Tensor) -> Tensor:
    view = Tensor._wrap(tensor._memory.view(), tensor._shape)
    tensor._make_view(view, "custom", node._forward_cls.__name__)
    return view


def _mark_view(node: FunctionNode, output: Tensor, index: int) -> None:
    view = output._view
    assert view is not None
    view.creation, view.operator, view.output_nr = "custom", node._forward_cls.__name__, index


def _save(node: FunctionNode, tensors: tuple[Any, ...]) -> None:
    """Fill the saved slot: outputs without their tensor, which would be a cycle; the rest with their version."""
    values: list[Any] = []
    versions: list[int] = []
    for index, tensor in enumerate(tensors):
        if tensor is None:
            values.append(None)
            versions.append(0)
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is of type {type(tensor).__name__}\n"
                "Store it as an attribute of ctx."
            )
        if tensor._flags & state.INFERENCE:
            refuse_inference(node, tensor)
        nr = _output_of(node, tensor)
        if nr is not None:
            values.append(saved_result(tensor, nr))
            versions.append(tensor._counter().version)
        else:
            values.append(tensor)
            versions.append(0 if tensor._vc is None else tensor._vc.version)
    if state.special and modes.saved_hooks:
        hooks = modes.saved_hooks[-1]
        values = [pack_slot(node, SAVED, value, hooks) for value in values]
    node.s_saved_tensors = values
    node.v_saved_tensors = versions


def _output_of(node: FunctionNode, tensor: Tensor) -> int | None:
    """Return as which output `node` computed a tensor: a view that it has written is its only one."""
    view = tensor._view
    edge = own_edge(tensor) if view is None else view.edge
    if type(edge) is tuple and edge[0] is node:
        return edge[1]
    return 0 if view is not None and _among(tensor, node.dirty_tensors) else None


def _instrument(node: FunctionNode, args: tuple[Any, ...], outputs: list[Tensor], recorded: bool) -> None:
    """Do what listeners, anomaly mode and inference mode ask of a call."""
    if modes.inference:
        given = [memory_of(value._array) for value in args if isinstance(value, Tensor)]
        for output in outputs:
            if not _among(memory_of(output._array), given):  # an argument, or a part of one, stays what it was
                output._mark_inference()
    if recorded:
        general.annotate(node)
        general.tell_recorded(node)
    if events.wanted(events.OperatorRecorded):
        site = node.call_site if recorded else events.call_site_if_wanted()
        inputs = tuple(value for value in args if isinstance(value, Tensor))
        name = node._forward_cls.__name__
        events.emit(events.OperatorRecorded(node if recorded else None, name, inputs, tuple(outputs), site))


# --- tangents ---------------------------------------------------------------------------------------------------------


def push_tangents(
    node: FunctionNode, args: Sequence[Any], raw: Any, outputs: Any, dirty: Any = (), constant: Any = ()
) -> None:
    """In forward mode give the outputs of a call the tangents that its ``jvp`` returns.

    `raw` is what forward returned, `outputs` what the caller gets for it; `dirty` and `constant` are the tensors that
    forward marked as written and as non-differentiable.
    """
    if not (tangents.active() and forward_mode.has_tangent(args)):
        return
    given = [_tangent_for(node, value) for value in args]
    raw, outputs = (raw, outputs) if isinstance(raw, tuple) else ((raw,), (outputs,))
    found = _call_jvp(node, given)
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(found)})\nIt is {node.node_name}: return one for each output of forward, None for those without."
        )
    for index, (before, output, tangent) in enumerate(zip(raw, outputs, found, strict=True)):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad output {index}.\n"
                f"It is what the jvp of {node.node_name} returned; return a tensor."
            )
        differentiable = isinstance(output, Tensor) and output._dtype.kind in INEXACT
        if not differentiable or _among(before, constant):
            _check_none(node, index, tangent)
            continue
        _check_tangent(node, index, output, tangent)
        if any(before is value for value in args) and _among(before, dirty):
            _check_written(output, tangent)
        else:
            _carry(output, tangent, given)
    tangents.keep_with_saved(node, outputs)


def _tangent_for(node: FunctionNode, value: Any) -> Tensor | None:
    """Return the tangent that ``jvp`` is given for an argument."""
    if not isinstance(value, Tensor):
        return None
    tangent = tangents.tangent_of(value)
    if tangent is not None or not node.materialize_grads:
        return tangent
    array = value._array
    return Tensor._wrap(device.array_module(array).zeros(array.shape, dtype=array.dtype))


def _call_jvp(node: FunctionNode, given: list[Tensor | None]) -> tuple[Any, ...]:
    """Run the user's jvp, in which no tensor has a tangent."""
    node.saved_for_forward = node.saved_for_forward or ()
    modes.forward_grad = False
    try:
        found = node._forward_cls.jvp(node, *given)
    finally:
        modes.forward_grad = True
        node.saved_for_forward = None
    return found if isinstance(found, tuple) else (found,)


def _check_none(node: FunctionNode, index: int, tangent: Any) -> None:
    if tangent is not None:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {index}, but the corresponding forward output is not a "
            f"differentiable Tensor. You should return None at that position instead.\nIt is {node.node_name}."
        )


def _check_tangent(node: FunctionNode, index: int, output: Tensor, tangent: Tensor | None) -> None:
    if tangent is None:
        raise RuntimeError(
            f"Function's jvp returned None at position {index}, but the corresponding forward output is "
            f"differentiable.\nIt is {node.node_name}: return zeros, or mark the output with mark_non_differentiable."
        )
    if tangent.shape != output.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(output.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}.\nIt is output {index} of {node.node_name}."
        )


def _check_written(output: Tensor, tangent: Any) -> None:
    """Take the tangent of an argument that forward has written: it must have been written too."""
    current = tangents.tangent_of(output)
    if current is None:
        tangents.carry_written(output, tangent)
    elif current is not tangent:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )


def _carry(output: Tensor, tangent: Any, given: Sequence[Any]) -> None:
    """Take the tangent of an output that is new, or a view."""
    if output._view is None:
        tangents.attach(output, forward_mode.owned(tangent, output, given))
    elif tangent._view is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.\n"
            "Apply the same view to the tangent, e.g. tangent.view_as(tangent)."
        )
    else:
        tangents.attach(output, tangents.fitted(tangent, output))
