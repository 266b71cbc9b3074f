"""The in-place form of an operator, ``name_``: what is common inlined, the rest left to :mod:`writes`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ....graph.accumulate_grad import AccumulateGrad
from ...declaration.annotations import OperatorFunction
from ..inplace_and_out import check_overlap, run_inplace
from ..saving import saved_by
from .calls import function_scope, is_simple, save_lines, unwrap_lines
from .compiling import (
    call_signature,
    call_text,
    compile_function,
    defaults_test,
    indented,
    own_name,
    positional,
    sharing_test,
    signature,
)
from .nodes import may_be_number

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = ["make_inplace"]


def make_inplace(op: Operator) -> OperatorFunction:
    """Return ``name_``, with the operator's signature."""
    name = op.name.replace(".", "_") + "_"
    scope = function_scope(op)
    scope.update(
        Node=op.inplace_node_class,
        Leaf=AccumulateGrad,
        check_overlap=check_overlap,
        run_inplace=run_inplace,
        write=op.write,
    )
    function = compile_function(partial(inplace_source, op, name), name, scope, op)
    function.__doc__ = f"In-place form of :func:`{op.name}`."
    function.__signature__ = call_signature(op, with_out=False)
    return function


def inplace_source(op: Operator, name: str) -> str:
    """Write the in-place form."""
    parameters = signature(op).removesuffix(", *, out=None").removesuffix(", out=None")
    run = f"return run_inplace(op, ({', '.join(p.name for p in op.parameters)},))"
    body = _quick_body(op, run) if _is_quick(op) else []
    older = [f"    if older: return run_older(op, {name!r}, ({positional(op)}, *older))"] if op.older else []
    return "\n".join([f"def {name}({parameters}):", *own_name(op), *older, *body, f"    {run}"]) + "\n"


def _is_quick(op: Operator) -> bool:
    """Whether there is an inlined form: the result is of the dtype of the tensor that is written."""
    return is_simple(op) and not op.draws and op.view is None and op.promote in (None, "numeric", "float")


def _quick_body(op: Operator, run: str) -> list[str]:
    """Write what ends in a return where the call is a common one: dense memory, one dtype, no view to be recorded."""
    first, *others = names = [p.name for p in op.tensors]
    flags = " | ".join(f"f_{name}" for name in (first, *others))
    lines = [
        "if not state.special:",
        "    try:",
        *indented(2, unwrap_lines(op, names, run, flags=names)),
        f"    except AttributeError: {run}",
        f"    f = {flags}",
        f"    if f >= 4 or not x_{first}.flags.forc: {run}",
        *(f"    {_overlap_line(op, first, name)}" for name in others),
        *indented(1, _node_lines(op, first, others, run)),
        f"    c = {first}._vc",
        f"    if c is None: c = {first}._vc = new(VersionCounter); c.version = 0; c.writes = None",
        *indented(1, _write_lines(op, first, run)),
        *indented(1, _history_lines(op, first)),
        f"    return {first}",
    ]
    return indented(1, lines)


def _overlap_line(op: Operator, first: str, name: str) -> str:
    """Write the check that a part of the written memory is not read; arrays that own theirs share none."""
    tensor = "t is not float and t is not int and " if may_be_number(op, name) else ""
    apart = f"x_{name} is not x_{first} and (x_{name}.base is not None or x_{first}.base is not None)"
    return f"if {tensor}{apart}: check_overlap(x_{first}, x_{name})"


def _node_lines(op: Operator, first: str, others: list[str], run: str) -> list[str]:
    """Write the making of the node, before anything is written; leaves, views and old values take the long way.

    So do integers, which are not recorded, where other operands may be of another dtype.
    """
    if not op.differentiable:
        return [f"if f and (not unrecorded or modes._records): {run}"]
    edged = [p.name for p in op.edged]
    same = "".join(f" or {name} is {first}" for name in others)
    lines = [
        "n = None",
        "if f and (not unrecorded or modes._records):",
        f"    e = {first}._edge",
        *([f"    if {first}._dtype.kind not in INEXACT: {run}"] if others and op.promote is None else []),
        f"    if {first}._view is not None or {first}._meta is not None{same}: {run}",
        f"    if f_{first} and (e is None or type(e) is Leaf): {run}",
    ]
    for name in edged:
        if name == first:
            lines.append(f"    e_{name} = e")
        else:
            if not may_be_number(op, name):
                lines.append(f"    e_{name} = {name}._edge")
            lines.append(f"    if e_{name} is None and f_{name}: e_{name} = edge_of({name})")
    old = [f"e_{user} is not None" for user in saved_by(op).get(first, ())]
    if old:
        lines.append(f"    if {' or '.join(old)}: {run}")
    alive = " or ".join(f"e_{name} is not None" for name in edged)
    made = [
        "n = Node()",
        f"n.edges = ({', '.join(f'e_{name}' for name in edged)},)",
        "n.seq = next(sequence); n.extra = None",
        f"n.shape = {first}._shape; n.dtype = {first}._dtype",
        *([f"n.s_{first} = None"] if first in saved_by(op) else []),
    ]
    for name, users in saved_by(op).items():
        if name != first:
            made += save_lines(op, name, users, [first, *others])
    loose = [f"f_{name} & 2" for name in edged if name != first]  # may be a view that leads nowhere
    return [
        *lines,
        f"    if {alive}:",
        *indented(2, made),
        *([f"    elif {' or '.join(loose)}: {run}"] if loose else []),
    ]


def _write_lines(op: Operator, first: str, run: str) -> list[str]:
    """Write the write, with its version. A ufunc's is counted before, so that one that is broken off is counted too."""
    tensors = [p.name for p in op.tensors]
    values = [f"x_{p.name}" if p.name in tensors else p.name for p in op.parameters]
    given = ", ".join(values)
    if op.write is not None:
        return [f"try: write(numpy, {given})", f"except (ValueError, TypeError): {run}", "c.version += 1"]
    if op.ufunc is not None:
        return _straight(_write_call(op, "ufunc", values, first), run)
    computed = [
        f"try: r = forward(numpy, {given})",
        f"except (ValueError, TypeError): {run}",
        f"if type(r) is not ndarray or r.shape != x_{first}.shape or r.dtype is not {first}._dtype: {run}",
        f"x_{first}[...] = r",
        "c.version += 1",
    ]
    if op.plain is None:
        return computed
    straight = _straight(_write_call(op, "plain", values[: len(tensors)], first), run)
    return [f"if {defaults_test(op, tensors)}:", *indented(1, straight), "else:", *indented(1, computed)]


def _write_call(op: Operator, function: str, values: list[str], first: str) -> str:
    """Return the call of a ufunc that writes into the first array."""
    quick = call_text(function, [*values, f"x_{first}"])
    if not op.by_element:
        return quick
    shared = call_text(function, [*values, f"out=x_{first}"], by="in_parts")
    return f"{shared} if {sharing_test(f'x_{first}')} else {quick}"


def _straight(written: str, run: str) -> list[str]:
    return [
        "c.version += 1",
        f"try: {written}",
        f"except (ValueError, TypeError): c.version -= 1; {run}",
    ]


def _history_lines(op: Operator, first: str) -> list[str]:
    if not op.differentiable:
        return []
    lines = [f"{first}._edge = n; {first}._flags |= 1"]
    if "result" in saved_by(op):
        lines += [
            "n.v_result = c.version",
            f"s = n.s_result = new(SavedResult); s.array = x_{first}; s.counter = c; s.nr = 0",
        ]
    return ["if n is not None:", *indented(1, lines)]
