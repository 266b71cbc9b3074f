"""The node class of an operator: a slot for each saved name, and the derivative on bare arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy

from ....dispatch import TENSOR_OPERATORS
from ....graph.graph_node import Node
from ....graph.saved_tensors import RELEASED, SavedResult
from ....kernels.arithmetic.broadcast_arithmetic import LEAST
from ....kernels.casts.half_arithmetic import MANY, in_single
from ....kernels.elementwise import LARGE, in_parts, of_two
from ....kernels.threads import sharing
from ....memory import device
from ....tensor.tensor import Tensor
from ...declaration.annotations import Formula, Scope
from .. import general
from ..bare_functions import HALF, array_operators
from ..saving import saved_by
from .compiling import broadcasts, call_text, compile_function, indented, sharing_test

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = ["build_node_class", "may_be_number"]


def build_node_class(op: Operator) -> type[Node]:
    """Return the Node class of `op`, with a slot for each saved name."""
    saved = saved_by(op)
    tensors = {p.name for p in op.tensors}
    versioned = [n for n in saved if n in tensors or n in op.outputs]
    slots = [f"s_{n}" for n in saved] + [f"v_{n}" for n in versioned] + (["outs"] if op.multi else [])
    releasable = [n for n in saved if n in tensors or n in op.outputs or n in op.aux]
    scope = apply_scope(op)
    body: Scope = {
        "__slots__": tuple(slots),
        "__module__": op.family,
        "__doc__": f"Backward of ``{op.name}``.",
        "node_name": op.node_name,
        "op": op,
        "multi": op.multi,
        "saved_names": tuple(saved),
        "versioned_names": tuple(versioned),
        "apply": compile_function(partial(apply_source, op), "apply", scope, op),
        "apply_graph": compile_function(partial(graph_source, op), "apply_graph", graph_scope(op), op),
    }
    if releasable:
        spend = partial(apply_source, op, releasable)
        body["spend"] = compile_function(spend, "apply", apply_scope(op), op)
        body["release"] = compile_function(
            partial(release_source, op, releasable), "release", {"RELEASED": RELEASED}, op
        )
    if op.multi:
        body["output_specs"] = lambda n: n.outs
    for name in saved:
        body[f"_saved_{general.shown_name(op, name)}"] = property(general.saved_getter(name))
        if name in releasable:
            body[f"_raw_saved_{name}"] = property(general.raw_saved_getter(name))
    return type(op.node_name, (Node,), body)


def release_source(op: Operator, names: list[str]) -> str:
    """Write ``release(n)``: let go of the saved tensors."""
    return f"def release(n):\n    {_release(op, names)}\n"


def _release(op: Operator, names: Sequence[str]) -> str:
    """Write what lets go of saved tensors; a node that has saved none of them can run again, and so stays as it is."""
    if op.joint is None and any(not set(names) & set(op.needed_by(f)) for f in op.derivatives.values()):
        return "; ".join(f"n.s_{name} = None if n.s_{name} is None else RELEASED" for name in names)
    return " = ".join(f"n.s_{name}" for name in names) + " = RELEASED"


def apply_scope(op: Operator) -> Scope:
    """Return the globals of the generated ``apply``."""
    scope: Scope = {
        "Tensor": Tensor,
        "ndarray": device.ndarray,
        "SavedResult": SavedResult,
        "unpack_array": general.unpack_array,
        "array_operators": array_operators,
        "NUMPY": array_operators(numpy),
        "array_module": device.array_module,
        "RELEASED": RELEASED,
        "joint": op.joint,
        "sharing": sharing,
        "LARGE": LARGE,
        "BROAD": LEAST,
        "in_parts": in_parts,
        "of_two": of_two,
        "in_single": in_single,
        "FLOAT16": HALF,
        "MANY": MANY,
    }
    scope.update({f"d_{name}": formula for name, formula in op.derivatives.items()})
    return scope


def graph_scope(op: Operator) -> Scope:
    """Return the globals of the generated ``apply_graph``."""
    return {**apply_scope(op), "F": TENSOR_OPERATORS, "unpack_tensor": general.unpack_tensor}


def graph_source(op: Operator) -> str:
    """Write ``apply_graph(n, g)``: the same formulas on tensors, which record themselves.

    All that was saved is unpacked, whichever formulas run: a write to any is found, as on bare arrays and in PyTorch.
    """
    lines = ["def apply_graph(n, g):", "    e = n.edges"]
    tensors = {p.name: p for p in op.tensors}
    for name in saved_by(op):
        value, unpacked = local(name), f"{local(name)} = unpack_tensor(n, {name!r})"
        lines.append(f"    {value} = n.s_{name}")
        if name in tensors and tensors[name].is_tensor:
            # What has never been written or detached in place is at the version of then.
            lines += [
                f"    if type({value}) is Tensor:",
                f"        c = {value}._vc; m = {value}._meta",
                f"        if c is not None and c.version or m is not None and m.detached_at >= 0: {unpacked}",
                f"    elif {value} is not None: {unpacked}",
            ]
        elif name in tensors or name in op.outputs or name in op.aux:
            lines.append(f"    {unpacked}")
    lines += _return_nothing(op)
    lines.append(f"    return {results_expression(op)}")
    return "\n".join(lines) + "\n"


def _return_nothing(op: Operator, let_go: str = "") -> list[str]:
    """Write the return for the case that no gradient has arrived; what has no derivative raises in that case too."""
    if op.node_name == "NotImplemented":
        return []
    missing = "g is None or not any(x is not None for x in g)" if op.multi else "g is None"
    return [f"    if {missing}: {let_go}return (None,) * len(e)"]


def apply_source(op: Operator, releasable: Sequence[str] = ()) -> str:
    """Write ``apply(n, g)``: unpack with the version check, then the formulas, on bare arrays.

    With names that are `releasable` it is ``spend(n, g)``, which lets go of these saved tensors afterwards.
    """
    lines = ["def apply(n, g):", "    e = n.edges"]
    tensors = {p.name: p for p in op.tensors}
    for name in saved_by(op):
        lines.append(f"    {local(name)} = n.s_{name}")
        if name in tensors and tensors[name].is_tensor:
            lines += _unpack_lines(op, name)
        elif name in op.outputs:
            lines += [
                f"    if type({local(name)}) is SavedResult and {local(name)}.counter.version == n.v_{name}:",
                f"        {local(name)} = {local(name)}.array",
                f"    elif {local(name)} is not None: {local(name)} = unpack_array(n, {name!r})",
            ]
        elif name in tensors or name in op.aux:
            lines.append(f"    if {local(name)} is not None: {local(name)} = unpack_array(n, {name!r})")
    lines += _return_nothing(op, f"{_release(op, releasable)}; " if releasable else "")
    formulas = list(op.derivatives.values()) + ([op.joint] if op.joint else [])
    if any("F" in op.needed_by(f) for f in formulas):
        first = "next(x for x in g if x is not None)" if op.multi else "g"
        lines.append(f"    F = NUMPY if type({first}) is ndarray else array_operators(array_module({first}))")
    release = [_release(op, releasable)] if releasable else []
    if any(_is_shared(op, p.name) for p in op.edged):
        large = ("g.size >= BROAD", "of_two") if broadcasts(op) else (sharing_test("g"), "in_parts")
        for condition, by in (("n.dtype is FLOAT16 and g.size >= MANY", "in_single"), large):
            lines += [
                f"    if {condition} and type(g) is ndarray:",
                f"        results = {results_expression(op, by=by)}",
                *indented(2, [*release, "return results"]),
            ]
    results = results_expression(op)
    lines += indented(1, [f"results = {results}", *release, "return results"] if release else [f"return {results}"])
    return "\n".join(lines) + "\n"


def _is_shared(op: Operator, name: str) -> bool:
    """Whether threads share the derivative of an argument: it computes each element alone, and does compute."""
    if not op.by_element or name not in op.derivatives:
        return False
    needed = set(op.needed_by(op.derivatives[name])) - {"g", "F"}
    return bool(needed) and needed <= {p.name for p in op.parameters} | set(op.outputs)


def _unpack_lines(op: Operator, name: str) -> list[str]:
    """Write what makes an array of a saved argument; memory that had no counter when it was saved was at version 0."""
    value, unpack = local(name), f"{local(name)} = unpack_array(n, {name!r})"
    return [
        f"    if isinstance({value}, Tensor):",
        f"        c = {value}._vc",
        f"        if c is None or not c.version: {value} = {value}._array",
        "        else:",
        f"            try: v = n.v_{name}",
        "            except AttributeError: v = 0",
        f"            if c.version == v: {value} = {value}._array",
        f"            else: {unpack}",
        f"    elif {_packed_test(op, name)}: {unpack}",
    ]


def _packed_test(op: Operator, name: str) -> str:
    value = local(name)
    if may_be_number(op, name):
        return f"{value} is not None and type({value}) is not float and type({value}) is not int"
    return f"{value} is not None"


def may_be_number(op: Operator, name: str) -> bool:
    """Whether an argument is a number where it is no tensor: the second of an operator that brings dtypes together."""
    tensors = [p.name for p in op.tensors]
    return bool(op.promote and op.numbers) and len(tensors) == 2 and name == tensors[1]


def results_expression(op: Operator, *, by: str = "") -> str:
    """Return the expression for the tuple of produced gradients, where they may be `by` a function as `in_parts`."""
    if op.joint is not None:
        return call_expression(op, "joint", op.joint)
    if any(p.is_tensor_list for p in op.edged):
        (argument,) = op.derivatives
        return f"tuple({call_expression(op, f'd_{argument}', op.derivatives[argument])})"
    parts = []
    for index, parameter in enumerate(op.edged):
        function, formula = f"d_{parameter.name}", op.derivatives[parameter.name]
        made = call_text(function, arguments_of(op, formula), by=by if _is_shared(op, parameter.name) else "")
        parts.append(f"{made} if e[{index}] is not None else None")
    return "(" + ", ".join(parts) + ",)"


def call_expression(op: Operator, function: str, formula: Formula) -> str:
    """Return the call of a formula with the locals it names."""
    return call_text(function, arguments_of(op, formula))


def arguments_of(op: Operator, formula: Formula) -> list[str]:
    """Return the locals that a formula names."""
    special = {"g": "g", "F": "F", "needs": "tuple(x is not None for x in e)"}
    return [special.get(name, local(name)) for name in op.needed_by(formula)]


def local(name: str) -> str:
    """Return the local variable for a saved name."""
    return f"a_{name}"
