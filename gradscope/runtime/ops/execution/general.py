"""The step-by-step form of what :mod:`codegen` writes out, for everything that is not the common case.

Lists of tensors, views, several outputs, numbers and mixed dtypes, event listeners, saved
tensor hooks, inference mode: an operator's call comes through :func:`run`. In-place and ``out=`` forms are in
:mod:`inplace_and_out`.
"""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy

from ... import autocast, call_sites, events, state
from ...dispatch import TENSOR_OPERATORS
from ...graph.edges import Edge, edge_to
from ...graph.saved_tensors import PackedTensor, SavedTensor, pack_slot, unpack
from ...kernels.casts import cast
from ...memory import bfloat16, device, dtype
from ...memory.bfloat16 import CHAR, BFloat16Array, marked, narrows, plain, rounded, widened
from ...memory.dtype import NUMBERS
from ...memory.storage import memory_of
from ...tensor import overrides, tangents
from ...tensor.math_bits import resolve_bits
from ...tensor.tensor import Tensor
from ...tensor.views import edge_of, reread
from ..declaration.annotations import (
    Argument,
    Array,
    Formula,
    Gradient,
    GraphNode,
    Namespace,
    NodeClass,
    Number,
    Operand,
    Results,
)
from . import forward_mode
from .array_errors import forward_error, refuse_bools
from .bare_functions import HALF, HALVES, SINGLE, array_operators
from .promotion import SCALES
from .saving import save_operands, save_results, tensors_among

if TYPE_CHECKING:
    from ...graph.graph_node import Node
    from ..declaration.registry import Operator, Parameter

# For forward_of_bfloat16(): operators and families that refuse half precision themselves, the family that takes weights
# of another float beside it, operators that look at the bits or how many there are, those that round their number too,
# and what a forward writes into beside its result.
_REFUSING_HALF = frozenset(
    {
        "complex",
        "polar",
        "cholesky_and_triangular",
        "ctc_loss",
        "determinant_and_inverse",
        "distances",
        "ldl",
        "lu",
        "pinv_and_lstsq",
        "qr",
        "quantiles",
        "svd_and_eigen",
    }
)
_MIXING_FLOATS = "normalization"
_READING_BITS = frozenset({"nextafter", "random", "view.dtype"})
_ROUNDING_NUMBER = frozenset({"pow.scalar", "pow.base"})
_WRITTEN = {"native_batch_norm": frozenset({"running_mean", "running_var"})}
_PLAIN = {device.ndarray}
_ON_HOST = {device.ndarray, BFloat16Array}

modes = state.local
_new = object.__new__


# --- arguments --------------------------------------------------------------------------------------------------------


class OperandError(TypeError):
    """An argument that should be a tensor is something else."""


def as_operand(op: Operator, parameter: Parameter, value: Argument) -> Argument:
    """Return `value` as a tensor, a number, None or a list of tensors, as its parameter allows."""
    if isinstance(value, Tensor):
        if parameter.is_tensor_list:
            raise TypeError(
                f"{op.name}(): argument '{parameter.name}' must be tuple of Tensors, not Tensor\n"
                f"Put it in a list: {op.name}([tensor], ...)."
            )
        return value
    if parameter.is_tensor_list:
        items = list(value) if isinstance(value, Iterable) else None
        if items is None:
            raise TypeError(
                f"{op.name}(): argument '{parameter.name}' must be tuple of Tensors, not {type(value).__name__}\n"
                f"Put the tensors in a list: {op.name}([tensor, ...], ...)."
            )
        for index, item in enumerate(items):
            if not isinstance(item, Tensor):
                raise OperandError(
                    f"expected Tensor as element {index} in argument '{parameter.name}' of {op.name}(), "
                    f"but got {overrides.type_shown(item)}"
                )
        return items
    if value is None and parameter.type == "Tensor?":
        return None
    if op.promote and op.numbers and isinstance(value, NUMBERS) and parameter is not op.tensors[0]:
        return value
    if op.promote and device.is_array(value):
        return Tensor._wrap(value)
    name, shown = op.name.partition(".")[0], "input" if parameter.name == "self" else parameter.name
    raise OperandError(
        f"{name}(): argument '{shown}' must be Tensor, not {overrides.type_shown(value)}\n"
        f"Wrap it: gradscope.tensor(...). The schema is {op.schema}."
    )


def array_of(value: Argument) -> Array:
    """Return the bare array(s) of an operand; numbers and None as they are."""
    if isinstance(value, list):
        return [item._array for item in value]
    return getattr(value, "_array", value)


def prepare(op: Operator, arguments: tuple[Argument, ...]) -> tuple[list[Argument], list[Argument], Namespace]:
    """Return (operands, bare arguments for the forward, array module), after promotion and the device check."""
    if op.numbers == "either" and isinstance(arguments[0], NUMBERS) and isinstance(arguments[1], Tensor):
        arguments = (as_tensor_like(arguments[0], arguments[1]), *arguments[1:])
    operands, bare = list(arguments), list(arguments)
    kinds: set[type] = set()
    for i, parameter in op.tensor_places:
        value = arguments[i]
        if type(value) is not Tensor or parameter.type == "Tensor[]":
            value = operands[i] = as_operand(op, parameter, value)
        array = bare[i] = array_of(value)
        if type(array) is list:
            kinds.update(map(type, array))
        elif array is not value:  # neither a number nor None
            kinds.add(type(array))
    xp = numpy if kinds == _PLAIN or kinds <= _ON_HOST else check_devices(op, bare)
    if op.promote:
        promote(op, bare, operands)
    if op.view is not None:
        bare[0] = operands[0]._memory
    return operands, bare, xp


def check_devices(op: Operator, bare: list[Array]) -> Namespace:
    """Bring 0-d CPU arrays to the device of the others; return the array module."""
    positions = [i for i, _ in op.tensor_places]
    arrays = [a for i in positions for a in (bare[i] if isinstance(bare[i], list) else [bare[i]]) if device.is_array(a)]
    if not arrays:
        return numpy
    if len({device.backend_of(a) for a in arrays}) == 1:
        return device.array_module(arrays[0])
    main = next((a for a in arrays if a.ndim or type(a) not in _ON_HOST), arrays[0])
    for i in positions:
        array = bare[i]
        if not device.is_array(array) or device.backend_of(array) is device.backend_of(main):
            continue
        if array.ndim:
            name = op.name.partition(".")[0]
            places = " and ".join(str(device.device_of(a)) for a in (main, array))
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {name}() found at least two devices, {places}!"
                "\n"
                "Move one of them with .to(device)."
            )
        bare[i] = device.to_device(array, device.device_of(main))
    return device.array_module(main)


def promote(op: Operator, bare: list[Array], operands: list[Argument]) -> None:
    """Cast the arrays among `bare` to the dtype the operation runs in, by PyTorch's rules.

    A factor or divisor of half precision that is a number stays what it is, also among the `operands` that are saved:
    it may be more or less than half precision holds.
    """
    positions = [i for i, _ in op.tensor_places]
    values = [bare[i] for i in positions if bare[i] is not None]
    if is_of_one_float(values):
        return
    if op.name.startswith(("sub", "rsub.")):
        refuse_bools(op.name.partition(".")[0], values)
    target = dtype.result_numpy(values)
    if op.promote == "float" and target.kind not in dtype.INEXACT:
        target = dtype.default_dtype.numpy
    wide = target.char in HALVES and op.name in SCALES
    for i in positions:
        array = bare[i]
        if device.is_array(array):
            if array.dtype != target:
                bare[i] = cast(array, SINGLE if wide and not array.ndim else target)
        elif isinstance(array, NUMBERS):
            bare[i] = number_in(SINGLE if wide else target, array)
            operands[i] = numpy.asarray(array, "float64")[()] if wide else array


def forward(op: Operator, xp: Namespace, bare: list[Array]) -> Results:
    """Run the forward of prepared arguments; what was scaled in single precision is rounded to half."""
    if bfloat16.known and _holds_bfloat16(bare):
        return forward_of_bfloat16(op, xp, bare)
    results = op.run_forward(xp, *bare)
    if op.name in SCALES and results.dtype == SINGLE and HALF in [array.dtype for array in bare]:
        return results.astype(HALF)
    return results


def _holds_bfloat16(bare: list[Array]) -> bool:
    """Whether an array among prepared arguments, or in a list of them, is one of bfloat16."""
    return BFloat16Array in map(type, bare) or any(type(a) is list and BFloat16Array in map(type, a) for a in bare)


def forward_of_bfloat16(op: Operator, xp: Namespace, bare: list[Array]) -> Results:
    """Run the forward of arguments some of which are bfloat16: in float32, rounded once.

    A view's only moves elements, and some ask for the bits. The arrays go in as they are where the forward may refuse
    them: it belongs to a family that asks for single precision, or other floats stand beside bfloat16 and nothing
    brought the dtypes together.
    """
    if op.view is not None or op.name in _READING_BITS:
        return marked(op.run_forward(xp, *map(_on_each(plain), bare)))
    family = op.family.rpartition(".")[2]
    if {op.name, family} & _REFUSING_HALF or not (op.promote or narrows(bare) or family == _MIXING_FLOATS):
        return marked(op.run_forward(xp, *bare))
    if op.name in _ROUNDING_NUMBER:
        bare = [rounded(value).item() if isinstance(value, float) else value for value in bare]
    written = _WRITTEN.get(op.name, ())
    given = zip(op.parameters, bare, strict=True)
    results = op.run_forward(xp, *(a if p.name in written else _on_each(widened)(a) for p, a in given))
    asked = next((value for p, value in zip(op.parameters, bare, strict=True) if p.name == "dtype"), None)
    if asked is not None and asked is not dtype.bfloat16:
        return results
    if op.aux:
        result, *extra = results
        return _rounded_float(result), *extra
    return _on_each(_rounded_float)(results)


def write(op: Operator, xp: Namespace, bare: list[Array]) -> None:
    """Have an operator write into the first of its arguments; into bfloat16 what has been computed in float32."""
    target = bare[0]
    if type(target) is not BFloat16Array or not narrows(bare):
        op.write(xp, *bare)  # type: ignore[misc]
        return
    wide, *rest = map(_on_each(widened), bare)
    op.write(xp, wide, *rest)  # type: ignore[misc]
    device.copy_to(target, wide)


def _on_each(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `function` for a value, or for each of a list or tuple of them."""

    def call(value: Array) -> Array:
        return type(value)(map(function, value)) if type(value) in (list, tuple) else function(value)

    return call


def _rounded_float(value: Number) -> Number:
    return rounded(value) if getattr(value, "dtype", None) is not None and value.dtype.kind == "f" else value


def is_of_one_float(values: list[Operand]) -> bool:
    """Whether operands are arrays of one floating dtype: nothing to bring together."""
    kind = values[0].dtype
    return kind.kind in dtype.INEXACT and all(device.is_array(value) and value.dtype is kind for value in values)


def number_in(kind: numpy.dtype, number: Number) -> Number:
    """Return a number as a NumPy scalar; an integer wraps around where the dtype is too small for it, as in PyTorch."""
    return numpy.array(number).astype(kind)[()] if kind.kind in "iu" else kind.type(number)


class OperatorForm:
    """The module, as the functions behind ``+`` and the like see it: a foreign operand gets its turn first."""

    def __getattr__(self, name: str) -> object:
        return globals()[name]

    @staticmethod
    def run(op: Operator, arguments: tuple[Argument, ...]) -> Results:
        """Call `op`; return NotImplemented where an operand is no tensor, so that Python asks the other one."""
        try:
            return run(op, arguments)
        except OperandError:
            return NotImplemented

    @staticmethod
    def watched(op: Operator, arguments: tuple[Argument, ...]) -> Array:
        """Do the same while something special is on."""
        try:
            return watched(op, arguments, 4)
        except OperandError:
            return NotImplemented


# --- running ----------------------------------------------------------------------------------------------------------


def run(op: Operator, arguments: tuple[Argument, ...]) -> Results:
    """Call `op`: unwrap, promote, forward, wrap, record, instrument."""
    try:
        operands, bare, xp = prepare(op, arguments)
    except OperandError:
        overridden = overrides.of_operator(op, arguments)
        if overridden is overrides.NONE:
            raise
        return overridden
    checkpoint = modes.selective_checkpoint if state.modes_on else None
    kept = None if checkpoint is None else checkpoint.take(op, arguments)
    try:
        computed = forward(op, xp, bare) if kept is None else kept
    except (ValueError, TypeError) as error:
        raise forward_error(op, arguments, error) from error
    results, aux = computed, {}
    if op.aux:
        results, *extra = computed
        aux = dict(zip(op.aux, extra, strict=True))
    output = finish(op, operands, results, aux, xp)
    if checkpoint is not None:
        checkpoint.keep(op, arguments, computed, output)
    return output


def watched(op: Operator, arguments: tuple[Argument, ...], depth: int = 3) -> Results:
    """Call `op` while something special is on: where that is only listeners, or autocast, by its compiled form.

    The user's frame is `depth` frames up at least.
    """
    if state.overriding:
        overridden = overrides.of_operator(op, arguments)
        if overridden is not overrides.NONE:
            return overridden
    if state.casting and modes.autocast is not None:
        arguments = autocast.arguments(op, arguments)
    if state.modes_on:
        return run(op, arguments)
    output = op.observed(*arguments)
    if output is None:
        return run(op, arguments)
    heard = events.heard
    node: GraphNode = None
    first = next(iter(output), None) if op.multi else output
    if first is not None:
        node = first._edge if first._view is None else first._view.edge
        if type(node) is tuple:
            node = node[0]
    if node is not None:
        # Anomaly mode, which asks for more, is a mode: it does not come here.
        site = call_sites.user_site(depth) if events.frames_wanted == 1 else events.call_site_if_wanted(depth)
        if site is not None:
            node._site, node._notes = site, None  # to ask a slot that is not set takes seven times as long
        if events.NodeRecorded in heard or events.TensorSaved in heard:
            tell_recorded(node)
    if events.OperatorRecorded in heard:
        tell_ran(op, node, arguments, tuple(output) if op.multi else (output,))
    return output


def finish(op: Operator, operands: list[Argument], results: Results, aux: dict[str, Array], xp: Namespace) -> Results:
    """Wrap the forward's arrays as tensors, record the node, tell the listeners."""
    several = op.multi
    arrays = list(results) if several else [results]
    outputs = [Tensor._wrap(a if device.is_array(a) else xp.asarray(a)) for a in arrays]
    if op.view is not None:
        for nr, output in enumerate(outputs):
            link_view(op, operands, output, nr)
    node = record(op, operands, outputs, aux)
    if state.special:
        if tangents.active():
            forward_mode.propagate(op, node, operands, outputs, aux)
        instrument(op, node, operands, outputs)
    if not several:
        return outputs[0]
    return tuple(outputs) if op.output_list else op.result_type(*outputs)


_return_types: dict[str, Callable[..., Results]] = {}


def return_type(op: Operator) -> Callable[..., Results]:
    """Return the named tuple for an operator with several outputs."""
    name = op.name.partition(".")[0]
    key = f"{name}:{','.join(op.outputs)}"
    if key not in _return_types:
        _return_types[key] = namedtuple(name, op.outputs)
    return _return_types[key]


def link_view(op: Operator, operands: list[Argument], output: Tensor, nr: int = 0) -> None:
    """Make `output` a view of the first operand (of its base) when they share memory."""
    source: Tensor = operands[0]
    if op.view == "maybe" and memory_of(output._memory) is not memory_of(source._memory):
        output._hold(resolve_bits(output._memory, source._conjugated, source._negated))
        return
    creation = "multi" if op.view == "multi" else "default"
    source._make_view(output, creation, op.node_name.removesuffix("Backward0"))
    if op.reads is not None:
        reread(source, output, op, *operands[1:])
    if output._view is not None:
        output._view.output_nr = nr


def wants_grad(operands: list[Argument]) -> bool:
    """Whether recording is on, an operand requires grad, and none is inert."""
    return modes._records and wanted_by(flags_of(operands), operands)


def wanted_by(flags: int, operands: list[Argument]) -> bool:
    """Whether operands with these flags are to be recorded: one requires grad, and none is inert."""
    if flags & state.INERT:
        return False
    if flags & state.VIEW and not flags & state.GRAD:  # a view made under no_grad may require grad by its base
        return any(tensor.requires_grad for tensor in tensors_among(operands))
    return bool(flags & state.GRAD)


def flags_of(operands: list[Argument]) -> int:
    """Return the union of the operands' flags."""
    flags = 0
    for tensor in tensors_among(operands):
        flags |= tensor._flags
    return flags


def record(op: Operator, operands: list[Argument], outputs: list[Tensor], aux: dict[str, Array]) -> Node | None:
    """Make the node of this call and hang the outputs on it; None when nothing is to be recorded."""
    flags = flags_of(operands)
    if flags & state.INERT:
        for output in outputs:
            output._flags |= state.INERT
        return None
    if op.node_class is None or not flags or not modes._records or not wanted_by(flags, operands):
        return None
    if not any(o._dtype.kind in dtype.INEXACT for o in outputs):
        return None
    if op.view is not None and outputs[0]._flags & state.INFERENCE:
        return None  # a view of an inference tensor is one, wherever it is made
    node = make_node(op, operands, outputs, aux)
    if node is not None:
        for nr, output in enumerate(op.graded_outputs(outputs)):
            if output._dtype.kind in dtype.INEXACT:
                output._set_edge(edge_to(node, nr))
        save_results(node, outputs)
    return node


def make_node(
    op: Operator, operands: list[Argument], outputs: list[Tensor], aux: dict[str, Array], node_class: NodeClass = None
) -> Node | None:
    """Return a node with its edges and saved values; None if no operand takes part.

    A view made under no_grad takes part, as in PyTorch, but its edge is None. The class is the operator's unless given.
    """
    by_name = dict(zip((p.name for p in op.parameters), operands, strict=True))
    edges: list[Edge | None] = []
    wanted = False
    for parameter in op.edged:
        value = by_name[parameter.name]
        for tensor in value if isinstance(value, list) else [value]:
            is_tensor = isinstance(tensor, Tensor)
            takes_part = is_tensor and (tensor.requires_grad or tensor._flags & state.CONNECTED)
            edges.append(edge_of(tensor) if takes_part else None)
            wanted = wanted or takes_part
    if not wanted:
        return None
    node_class = node_class or op.node_class
    if bfloat16.known and BFloat16Array in (type(t._array) for t in tensors_among([*operands, outputs[0]])):
        node_class = rounding(node_class)
    node: GraphNode = node_class()
    node.edges = tuple(edges)
    node.seq = state.next_sequence()
    node.extra = None
    array = outputs[0]._memory
    node.shape, node.dtype, node.kind = array.shape, array.dtype, type(array)
    if op.multi:
        node.outs = [(o._shape, o._dtype) for o in op.graded_outputs(outputs)]
    save_operands(op, node, by_name, aux)
    return node


def flagged(op: Operator, output: Tensor, flags: int, operands: tuple[Argument, ...]) -> Tensor:
    """Finish an inlined call whose operands are rare: inert, of inference mode, views that lead nowhere."""
    if flags & state.INERT:
        output._flags |= state.INERT
        return output
    record(op, list(operands), [output], {})
    return output


# --- instruments ------------------------------------------------------------------------------------------------------


def instrument(
    op: Operator, node: GraphNode, operands: list[Argument], outputs: list[Tensor], *, fresh: bool = True
) -> None:
    """Do what listeners, anomaly mode, saved-tensor hooks and inference mode ask of a recorded call.

    Outputs that are not `fresh` share memory with a tensor from before, and are what it is in inference mode.
    """
    if modes.inference and fresh:
        for output in outputs:
            output._mark_inference()
    if node is not None:
        annotate(node)
        if modes.saved_hooks:
            pack_all(node)
        tell_recorded(node)
    if events.wanted(events.OperatorRecorded):
        tell_ran(op, node, operands, tuple(outputs))


def annotate(node: Node) -> None:
    """Note the call site on a node, and in anomaly mode the node whose backward made it."""
    site = events.call_site_if_wanted()
    if site is not None:
        node._site = site
    if state.anomaly:
        node.metadata["traceback_"] = site
        if modes.current_node is not None:
            node.metadata["parent_"] = modes.current_node


def tell_recorded(node: Node) -> None:
    """Tell the listeners of a node that has been added to the graph."""
    heard = events.heard
    if events.TensorSaved in heard:
        announce_saved(node)
    listeners = heard.get(events.NodeRecorded)
    if listeners is not None and not modes.in_tangent:
        event = _new(events.NodeRecorded)  # its __init__() and emit(), without the calls
        event.node = node
        for listener, thread in listeners:
            if thread is None or thread == threading.get_ident():
                listener(event)


def tell_ran(op: Operator, node: GraphNode, operands: Sequence[Argument], outputs: tuple[Tensor, ...]) -> None:
    """Tell the listeners of an operator's call."""
    if modes.in_tangent:
        return
    event = _new(events.OperatorRecorded)  # its __init__() and emit(), without the calls
    event.node, event.name, event.outputs = node, op.name, outputs
    event.inputs = tuple(tensors_among(operands))
    event.call_site = node.call_site if node is not None else events.call_site_if_wanted()
    for listener, thread in events.heard.get(events.OperatorRecorded, ()):
        if thread is None or thread == threading.get_ident():
            listener(event)


def announce_saved(node: Node) -> None:
    """Emit a TensorSaved for everything a node has saved."""
    for saved in node.saved_tensors_info():
        value = saved._value()
        tensor = value if hasattr(value, "_vc") else saved.data if not isinstance(value, PackedTensor) else None
        events.emit(events.TensorSaved(node, saved.name, tensor, saved.saved_version))


def pack_all(node: GraphNode) -> None:
    """Run the innermost pack hook of this thread over everything a node has saved, but for what is packed already."""
    hooks = modes.saved_hooks[-1]
    for name in type(node).saved_names:
        value = getattr(node, "s_" + name, None)
        if isinstance(value, list) and value and hasattr(value[0], "_array"):
            setattr(node, "s_" + name, [pack_slot(node, name, item, hooks) for item in value])
        elif name in type(node).versioned_names or name in getattr(type(node).op, "aux", ()):
            setattr(node, "s_" + name, pack_slot(node, name, value, hooks))


# --- derivatives, step by step ----------------------------------------------------------------------------------------


def unpack_array(node: Node, name: str) -> Operand:
    """Return what `node` saved as `name` as a bare array (or number), checked."""
    return unpack(node, name, as_tensor=False)


def unpack_tensor(node: Node, name: str) -> Operand:
    """Return what `node` saved as `name` as a tensor (or number), checked."""
    return unpack(node, name, as_tensor=True)


def derive(node: GraphNode, given: dict[str, Argument], saved: Callable[[str], Operand]) -> tuple[Gradient, ...]:
    """Run a node's formulas on what is `given` to them by name, and on what it has saved, which `saved` returns."""
    op: Operator = type(node).op
    g = given["g"]
    needs = tuple(edge is not None for edge in node.edges)
    # All of it is unpacked, whichever formulas run: a write to any is found, as on bare arrays and in PyTorch.
    known = {name: saved(name) for name in type(node).saved_names} | given | {"needs": needs}
    missing = g is None or (op.multi and all(x is None for x in g))
    if missing:
        return (None,) * len(node.edges)

    def call(formula: Formula) -> Array:
        return formula(*(known[name] for name in op.needed_by(formula)))

    if op.joint is not None:
        return call(op.joint)
    if any(p.is_tensor_list for p in op.edged):
        return tuple(call(next(iter(op.derivatives.values()))))
    return tuple(call(op.derivatives[p.name]) if needs[i] else None for i, p in enumerate(op.edged))


@cache
def rounding(node_class: NodeClass) -> NodeClass:
    """Return the class of a node of bfloat16: its formulas run in float32, and the engine rounds what they return."""
    if node_class.op.view is not None:
        return node_class
    body = {"apply": apply_rounding, "spend": spend_rounding, "apply_graph": apply_graph_rounding, "__slots__": ()}
    return type(node_class.__name__, (node_class,), {**body, "__module__": node_class.__module__})


def _wide_saved(value: Operand) -> Array:
    """Return what a formula needs in float32; a dtype that was saved is the one that it computes in."""
    if isinstance(value, numpy.dtype):
        return SINGLE if value.char == CHAR else value
    if hasattr(value, "_array"):
        return value.float() if value._dtype.char == CHAR else value
    return widened(value)


def apply_rounding(node: GraphNode, g: Gradient) -> tuple[Gradient]:
    """Run the derivative of a node of bfloat16 on bare arrays."""
    wide = _on_each(_wide_saved)
    given = {"g": wide(g), "F": array_operators(numpy)}
    return derive(node, given, lambda name: wide(unpack_array(node, name)))


def spend_rounding(node: GraphNode, g: Gradient) -> tuple[Gradient]:
    """The same as apply_rounding(), and release what the node has saved."""
    results = apply_rounding(node, g)
    node.release()
    return results


def apply_graph_rounding(node: GraphNode, g: Gradient) -> Gradient:
    """Run the derivative of a node of bfloat16 on tensors: the same formulas, recorded."""
    wide = _on_each(_wide_saved)
    given = {"g": wide(g), "F": TENSOR_OPERATORS}
    return derive(node, given, lambda name: wide(unpack_tensor(node, name)))


def shown_name(op: Operator, name: str) -> str:
    """Return what follows ``_saved_`` for a saved name: PyTorch's word for sizes and strides of an argument."""
    if any(p.name == name for p in op.parameters):
        return name
    argument, _, fact = name.rpartition("_")
    words = {"shape": "sym_sizes", "strides": "sym_strides", "offset": "sym_storage_offset"}
    return f"{argument}_{words[fact]}" if fact in words else name


def saved_getter(name: str) -> Callable[[GraphNode], Operand]:
    """Return the getter of ``node._saved_NAME``."""

    def get(node: GraphNode) -> Operand:
        value = unpack_tensor(node, name)
        return tuple(value) if isinstance(value, list) else value

    return get


def raw_saved_getter(name: str) -> Callable[[GraphNode], SavedTensor | tuple[SavedTensor, ...]]:
    """Return the getter of ``node._raw_saved_NAME``."""

    def get(node: GraphNode) -> SavedTensor | tuple[SavedTensor, ...]:
        value = getattr(node, "s_" + name)
        if isinstance(value, list):
            return tuple(SavedTensor(node, name, i) for i in range(len(value)))
        return SavedTensor(node, name)

    return get


# --- failures and numbers ---------------------------------------------------------------------------------------------


def retry(op: Operator, arguments: tuple[Argument, ...], error: Exception) -> Array:
    """Finish an inlined call whose forward failed: other array modules go step by step, the rest is a wrong call."""
    if any(type(getattr(a, "_array", None)) not in (device.ndarray, type(None)) for a in arguments):
        return run(op, arguments)
    raise forward_error(op, arguments, error) from error


def as_tensor_like(number: Number, like: Tensor) -> Tensor:
    """Return a Python number as a 0-d tensor, of a dtype that leaves that of `like` to decide where it may.

    A tensor is returned as it is.
    """
    if hasattr(number, "_array"):
        return number
    kind = like._dtype
    if kind.char not in "fd" or (type(number) is not float and type(number) is not int):
        kind = dtype.result_numpy([like._array, number])
    module = device.array_module(like._array)
    return Tensor._wrap(module.asarray(number_in(kind, number), dtype=kind))
