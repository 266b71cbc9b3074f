"""The function of an operator of one to three tensors and one result: most of them, and the quickest."""

from __future__ import annotations

from collections.abc import Collection
from itertools import repeat, starmap
from typing import TYPE_CHECKING

import numpy

from .... import state
from ....graph.saved_tensors import SavedResult
from ....kernels.arithmetic.broadcast_arithmetic import LEAST
from ....kernels.casts.half_arithmetic import MANY, in_single
from ....kernels.elementwise import LARGE, in_parts, of_two
from ....kernels.threads import sharing
from ....memory import device
from ....memory.bfloat16 import BFloat16Array
from ....memory.dtype import INEXACT
from ....memory.storage import VersionCounter, element_strides, offset_of
from ....tensor.tensor import Tensor
from ....tensor.views import ViewInfo, edge_of, reread
from ...declaration.annotations import Scope
from .. import general, inplace_and_out
from ..bare_functions import CONSTANTS, HALF, constant, in_layout_of
from ..older_overloads import run_older
from ..promotion import SCALES, common_dtype, number_dtype
from ..saving import saved_by
from .compiling import broadcasts, call_text, default_options, defaults_test, indented, sharing_test
from .nodes import may_be_number

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = ["function_scope", "is_simple", "save_lines", "simple_body", "unwrap_lines"]

_new = object.__new__
_FRESH = starmap(_new, repeat((Tensor,)))  # next() of it takes less than a call of __new__


def function_scope(op: Operator) -> Scope:
    """Return the globals of the generated function."""
    scope: Scope = {
        "Tensor": Tensor,
        "fresh": _FRESH,
        "edge_of": edge_of,
        "new": _new,
        "ndarray": device.ndarray,
        "BFloat16Array": BFloat16Array,
        "numpy": numpy,
        "array_module": device.array_module,
        "is_array": device.is_array,
        "VersionCounter": VersionCounter,
        "ViewInfo": ViewInfo,
        "SavedResult": SavedResult,
        "state": state,
        "modes": state.local,
        "sequence": state.sequence,
        "unrecorded": state.unrecorded,
        "element_strides": element_strides,
        "offset_of": offset_of,
        "op": op,
        "reread": reread,
        "general": general,
        "writes": inplace_and_out,
        "run_older": run_older,
        "forward": op.forward.__wrapped__ if follows_layout(op) else op.forward,  # type: ignore[union-attr]
        "in_layout_of": in_layout_of,
        "ufunc": op.ufunc,
        "plain": None if op.plain is None else getattr(numpy, op.plain),
        **({} if op.plain is None else default_options(op)),
        "sharing": sharing,
        "LARGE": LARGE,
        "BROAD": LEAST,
        "small": None,
        "in_parts": in_parts,
        "of_two": of_two,
        "in_single": in_single,
        "Node": op.node_class,
        "FLOATS": "fc",  # computed with as they are
        "INEXACT": INEXACT,
        "SCALABLE": "dFD",  # where a number may be taken in the tensor's own dtype
        "FLOAT32": numpy.dtype(numpy.float32),
        "FLOAT16": HALF,
        "MANY": MANY,
        "CONSTANTS32": CONSTANTS["f"],
        "constant": constant,
        "common_dtype": common_dtype(op),
        "number_dtype": number_dtype(op),
    }
    return scope


def is_simple(op: Operator) -> bool:
    """Whether the fully inlined form applies: one output, one to three plain tensors, no view."""
    return (
        len(op.outputs) == 1
        and not op.output_list
        and not op.aux
        and op.view in (None, "always")
        and 1 <= len(op.tensors) <= (2 if op.promote else 3)
        and all(p.type == "Tensor" for p in op.tensors)
    )


def keeps_shape(op: Operator) -> bool:
    """Whether the result has the shape of its operands where they have one: an array takes long to tell its own."""
    return op.ufunc is not None or op.plain is not None


def simple_body(op: Operator, arguments: str) -> list[str]:
    """Write the inlined body: unwrap, forward, wrap, record. It is for NumPy arrays of one dtype.

    Numbers, subclasses of Tensor and mixed dtypes as second argument of a binary operator, integers where floats come
    out, and other array modules take :func:`general.run`; numbers are common enough to have lines of their own.
    """
    names = [p.name for p in op.tensors]
    first = names[0]
    run = f"return general.run(op, {arguments})"
    lines = ["    global small"] if op.by_element and keeps_shape(op) else []
    lines.append("    try:")
    edged = [p.name for p in op.edged]
    flags = [name for name in names if op.differentiable and name not in edged]
    lines += indented(2, unwrap_lines(op, names, run, flags=flags, shaped=keeps_shape(op), mixed=True))
    lines += [
        *indented(2, _forward_lines(op, names)),
        f"    except AttributeError: {run}",
        f"    except (ValueError, TypeError) as error: return general.retry(op, {arguments}, error)",
        *indented(1, _wrap_lines(op, names)),
    ]
    if op.view:
        lines += indented(1, _view_lines(op, first))
    if op.reads is not None:
        more = "".join(f", {p.name}" for p in op.parameters[1:])
        lines.append(f"    reread({first}, out, op{more})")
    if op.differentiable:
        return [*lines, *indented(1, _record_lines(op, names))]
    return [*lines, "    return out"] if op.view else [*lines, "    out._edge = None; out._flags = 0; return out"]


def unwrap_lines(
    op: Operator, names: list[str], run: str, *, flags: Collection[str], shaped: bool = False, mixed: bool = False
) -> list[str]:
    """Write what takes the arrays, some `flags`, and the shapes of those that are `shaped`, out of the tensors.

    `run` is the way out of the common path. Two arrays of different dtypes are brought together where they may be
    `mixed`.
    """
    first = names[0]
    slot = {n: "_memory" if op.view is not None and n == first else "_array" for n in names}
    taken = {n: f"x_{n} = {n}.{slot[n]}" + f"; f_{n} = {n}._flags" * (n in flags) for n in names}
    lines = [taken[first]]
    if shaped:
        lines.append(f"sh = {first}._shape")
    if op.ufunc is None:
        lines.append(f"if type(x_{first}) is not ndarray: {run}")
    if op.promote:
        lines.append(f"dt = {first}._dtype")
    floating = "dt is not FLOAT32 and dt.kind not in FLOATS"  # most are, and kind takes longer to read
    if op.promote == "float" and not (mixed and len(names) == 2):
        lines.append(f"if {floating}: {run}")
    if len(names) == 1:
        return lines
    if not op.promote:
        for name in names[1:]:
            lines += [taken[name], f"if type(x_{name}) is not ndarray: {run}"]
        return lines
    second = names[1]
    if not may_be_number(op, second):
        shape = [f"sh_{second} = {second}._shape"] if shaped else []
        return [*lines, taken[second], *shape, *_mixing_lines(op, names, run, mixed=mixed)]
    no_number = "dt.char not in SCALABLE" if op.name in SCALES else "dt.kind not in FLOATS"
    absent = [f"e_{second}"] if second in op.derivatives else []
    absent += [f"c_{second}"] if op.differentiable and second in saved_by(op) else []  # numbers have no version
    slots = {f"e_{second}": "_edge", f"c_{second}": "_vc"}
    return [
        *lines,
        f"t = type({second})",
        "if t is not Tensor and (t is float or t is int):",  # one look at what it nearly always is
        "    if dt is not FLOAT32:",
        *indented(2, _beside_number_lines(names, no_number, run, mixed=mixed)),
        f"    x_{second} = CONSTANTS32.get({second}) if dt is FLOAT32 else None",
        f"    if x_{second} is None: x_{second} = constant({second}, dt)",
        *([f"    f_{second} = 0"] if second in flags else []),
        *([f"    sh_{second} = sh"] if shaped else []),
        *([f"    {' = '.join(absent)} = None"] if absent else []),
        "else:",
        f"    {taken[second]}",
        *(f"    {name} = {second}.{slots[name]}" for name in absent),
        *([f"    sh_{second} = {second}._shape"] if shaped else []),
        *indented(1, _mixing_lines(op, names, run, mixed=mixed)),
    ]


def _mixing_lines(op: Operator, names: list[str], run: str, *, mixed: bool) -> list[str]:
    """Write what casts two arrays of different dtypes to the one that the operator computes in, ``dt`` from then on."""
    first, second = names
    different = f"dt is not {second}._dtype"
    if not mixed:
        return [f"if {different}: {run}"]
    whole = " or dt is not FLOAT32 and dt.kind not in FLOATS" if op.promote == "float" else ""
    return [
        f"if {different}{whole}:",
        f"    k = common_dtype(dt, {first}._shape, {second}._dtype, {second}._shape)",
        f"    if k is None: {run}",
        f"    if k is not dt: x_{first} = x_{first}.astype(k); dt = k",
        f"    if k is not {second}._dtype: x_{second} = x_{second}.astype(k)",
    ]


def _beside_number_lines(names: list[str], no_number: str, run: str, *, mixed: bool) -> list[str]:
    """Write what casts an array of integers or bools to the dtype that the operator computes in beside a number."""
    first, second = names
    if not mixed:
        return [f"if {no_number}: {run}"]
    return [
        f"if {no_number}:",
        f"    k = number_dtype(dt, {second})",
        f"    if k is None: {run}",
        f"    if k is not dt: x_{first} = x_{first}.astype(k); dt = k",
    ]


def follows_layout(op: Operator) -> bool:
    """Whether the result is one array that has its channels last where an image among the arguments has them so."""
    return op.images > 0 and not (op.multi or op.aux)


def layout_lines(op: Operator, result: str, array: str) -> list[str]:
    """Write what gives images the layout of the first arguments, whose arrays are called `array` and their name."""
    if not follows_layout(op):
        return []
    images = ", ".join(f"{array}{p.name}" for p in op.parameters[: op.images])
    return [f"if {result}.ndim == 4: {result} = in_layout_of(numpy, {result}, ({images},))"]


def _forward_lines(op: Operator, names: list[str]) -> list[str]:
    quick = f"r = {_forward_call(op, names)}"
    if not op.by_element:
        return [quick, *layout_lines(op, "r", "x_")]
    first, shared = f"x_{names[0]}", f"r = {_forward_call(op, names, by='in_parts')}"
    if not keeps_shape(op):
        return [f"if {sharing_test(first)}: {shared}", f"else: {quick}"]
    # To ask an array for its size takes as long as a fifth of a product of 64 elements.
    lines = [
        "if sharing and sh is not small:",
        f"    if {first}.size >= LARGE: {shared}",
        f"    else: small = sh; {quick}",
        f"else: {quick}",
    ]
    if broadcasts(op):
        lines = [*_broadcast_lines(op, names), f"el{lines[0]}", *lines[1:]]
    if op.promote is not None:
        halves = f"if dt is FLOAT16 and {first}.size >= MANY: r = {_forward_call(op, names, by='in_single')}"
        lines = [halves, f"el{lines[0]}", *lines[1:]]
    return lines


def _broadcast_lines(op: Operator, names: list[str]) -> list[str]:
    """Write the call for arrays of which one broadcasts to the other, and one is large."""
    first, second = names
    return [
        f"if sh is not sh_{second} and sh != sh_{second} and (x_{first}.size >= BROAD or x_{second}.size >= BROAD):",
        f"    r = {_forward_call(op, names, by='of_two')}",
    ]


def _forward_call(op: Operator, names: list[str], *, by: str = "") -> str:
    values = [f"x_{p.name}" if p.name in names else p.name for p in op.parameters]
    if op.ufunc is not None:
        return call_text("ufunc", values, by=by)
    forward = call_text("forward", ["numpy", *values], by=by)
    if op.plain is None:
        return forward
    plain = call_text("plain", values[: len(names)], by=by)
    return f"{plain} if {defaults_test(op, names)} else {forward}"


def _wrap_lines(op: Operator, names: list[str]) -> list[str]:
    """Write the making of the result ``out`` and of its shape; NumPy makes scalars of what has no dimensions."""
    to_array = f"r = array_module(x_{names[0]}).asarray(r)"
    if keeps_shape(op):
        lines = [f"if sh is not sh_{names[1]}: sh = r.shape"] if len(names) == 2 else []
        lines.append(f"if not sh and type(r) is not ndarray and type(r) is not BFloat16Array: {to_array}")
    else:
        lines = [f"if type(r) is not ndarray and not is_array(r): {to_array}", "sh = r.shape"]
    return [
        *lines,
        "out = next(fresh)",
        *([] if _keeps_dtype(op) else ["dt = r.dtype"]),
        "out._array = r; out._shape = sh; out._dtype = dt",
        "out._meta = None" if op.view else "out._vc = None; out._view = None; out._meta = None",
    ]


def _view_lines(op: Operator, first: str) -> list[str]:
    """Write what makes ``out`` a view of the first operand; that of a rarer one is left to its ``_make_view()``."""
    made_by = op.node_name.removesuffix("Backward0")
    return [
        f"c = {first}._vc; p = {first}._view; out._edge = None",
        f"if c is None: c = {first}._vc = new(VersionCounter); c.version = 0; c.writes = None",
        f"if {first}._flags >= 4 or state.special or unrecorded and not modes._records or p is not None and p.steps:",
        f"    out._view = None; out._flags = 0; {first}._make_view(out, 'default', {made_by!r})",
        "else:",
        "    out._vc = c; out._flags = 2; q = out._view = new(ViewInfo)",
        f"    q.edge = q.site = None; q.operator = {made_by!r}; q.version = c.version; q.output_nr = 0",
        f"    if p is None: q.base = {first}; q.creation = 'default'",
        "    else: q.base = p.base; q.creation = p.creation",
    ]


def _keeps_dtype(op: Operator) -> bool:
    """Whether the result has the operands' dtype, ``dt``: that of a ufunc of two has, unless it compares them."""
    return op.ufunc is not None and op.promote is not None and len(op.tensors) == 2 and op.differentiable


def _record_lines(op: Operator, names: list[str]) -> list[str]:
    """Write what returns ``out`` with its history, or without.

    A tensor that holds its edge is nothing but one that requires grad: the flags of others alone are looked at.
    """
    edged = [p.name for p in op.edged]
    without = "return out" if op.view else "out._edge = None; out._flags = 0; return out"
    unknown = [f"e_{n} is None{' and t is not float and t is not int' * may_be_number(op, n)}" for n in edged]
    lines = [
        *(f"e_{n} = {n}._edge" for n in edged if not may_be_number(op, n)),
        f"if {' or '.join(unknown + [f'f_{n}' for n in names if n not in edged])}:",
        *indented(1, _edge_lines(op, names, edged, without)),
        f"elif unrecorded and not modes._records: {without}",
        *([f"if dt is not FLOAT32 and dt.kind not in INEXACT: {without}"] if op.promote is None else []),
        "n = Node()",
        f"n.edges = ({', '.join(f'e_{n}' for n in edged)},)",
        "n.seq = next(sequence); n.extra = None",
        "n.shape = sh; n.dtype = dt",
    ]
    for name, users in saved_by(op).items():
        lines += save_lines(op, name, users, names)
    lines.append("out._view.edge = n; out._flags |= 1" if op.view else "out._edge = n; out._flags = 1")
    if "result" in saved_by(op):
        lines += [
            "c = out._vc = new(VersionCounter); c.version = n.v_result = 0; c.writes = None",
            "s = n.s_result = new(SavedResult); s.array = r; s.counter = c; s.nr = 0",
        ]
    return [*lines, "return out"]


def _edge_lines(op: Operator, names: list[str], edged: list[str], without: str) -> list[str]:
    """Write what finds the edges that the tensors do not hold, and returns where there are none."""
    number = {n: "0 if t is float or t is int else " * may_be_number(op, n) for n in edged}
    flagged = f"return general.flagged(op, out, f, ({', '.join(p.name for p in op.parameters)},))"
    if not op.view:
        flagged = f"out._edge = None; out._flags = 0; {flagged}"
    # A view made under no_grad requires grad, but leads nowhere.
    loose = " or ".join(f"f_{n} & 2 and {n}.requires_grad" for n in edged)
    return [
        *(f"f_{n} = {number[n]}{n}._flags" for n in edged),
        f"f = {' | '.join(f'f_{n}' for n in names)}",
        f"if f >= 4: {flagged}",
        "if not f or unrecorded and not modes._records:",
        # A view of integers can never require grad by its base; who uses it need not ask.
        *(["    if dt.kind not in INEXACT: out._flags &= ~2"] if op.view else []),
        f"    {without}",
        *(f"if e_{n} is None and f_{n}: e_{n} = {_edge_found(op, n)}" for n in edged),
        f"if {' and '.join(f'e_{n} is None' for n in edged)}:",
        f"    if {loose}: {flagged}",
        f"    {without}",
    ]


def _edge_found(op: Operator, name: str) -> str:
    """Return the expression for the edge of a tensor that does not hold it; a view of a view has all at hand."""
    found = f"edge_of({name})"
    return (
        f"p.edge if p is not None and p.version == c.version and p.edge is not None else {found}" if op.view else found
    )


def save_lines(op: Operator, name: str, users: tuple[str, ...], names: list[str]) -> list[str]:
    """Write what fills the slot of a saved name of the node ``n``; results are saved later."""
    if name == "result":
        return []
    if name in names:
        condition = " or ".join(f"e_{u} is not None" for u in users)
        known = may_be_number(op, name)
        save = [f"    n.s_{name} = {name}", *([] if known else [f"    c_{name} = {name}._vc"])]
        save += [f"    if c_{name} is not None: n.v_{name} = c_{name}.version"]
        if len(users) == len(op.edged):
            return [line[4:] for line in save]
        return [f"if {condition}:", *save, f"else: n.s_{name} = None"]
    for suffix in ("_shape", "_dtype", "_strides", "_offset"):
        argument = name.removesuffix(suffix)
        if argument in names and name.endswith(suffix):
            if may_be_number(op, argument):
                return [f"n.s_{name} = None if t is float or t is int else {argument}.{suffix}"]
            read = {"_strides": "element_strides", "_offset": "offset_of"}.get(suffix)
            return [f"n.s_{name} = {f'{read}(x_{argument})' if read else f'{argument}.{suffix}'}"]
    return [f"n.s_{name} = {name}"]
