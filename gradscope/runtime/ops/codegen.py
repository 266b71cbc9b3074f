"""Compiles an operator's declaration into straight-line code.

For each operator two functions are written out as source, much as ``dataclasses`` does, and compiled at their first
call: the function that a user calls, and the node's ``apply`` on bare arrays. What they would otherwise decide per call
(how many tensors, what is saved, whether dtypes are brought together) is decided here. Their source is in
``linecache``, so tracebacks and debuggers show it. Everything rare goes to :mod:`gradscope.runtime.ops.general`, which
does the same step by step.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy

from .. import device, state
from ..graph import RELEASED, Node, SavedResult
from ..storage import VersionCounter, element_strides
from . import general, writes
from .arrays import CONSTANTS, array_operators, constant

if TYPE_CHECKING:
    from .registry import Operator

__all__ = ["build"]


def build(op: Operator) -> None:
    """Derive the node class, the function and the in-place function of `op`."""
    if op.differentiable:
        op.node_class = op.inplace_node_class = build_node_class(op)
    if isinstance(op.forward, str):
        op.ufunc = getattr(numpy, op.forward)
    op.function = compile_function(partial(function_source, op), op.name.replace(".", "_"), function_scope(op), op)
    op.function.__doc__ = docstring(op)
    op.function.__signature__ = call_signature(op, with_out=op.out)  # type: ignore[attr-defined]
    op.function.operator = op  # type: ignore[attr-defined]
    if is_simple(op):
        op.observed = compile_function(partial(observed_source, op), "observed", function_scope(op), op)
    if op.inplace_node is not None:
        body = {"__slots__": (), "__module__": op.family, "__doc__": f"Backward of ``{op.name}_``."}
        base: Any = op.node_class
        op.inplace_node_class = type(op.inplace_node, (base,), {**body, "node_name": op.inplace_node})
    if op.inplace:
        op.inplace_function = writes.make_inplace(op)


def operator_form(op: Operator) -> Callable[..., Any]:
    """Return the function of `op` for Python's operators: NotImplemented where the other operand is no tensor."""
    scope = function_scope(op)
    scope["general"] = general.OperatorForm()
    function = compile_function(partial(function_source, op, dunder=True), op.name.replace(".", "_"), scope, op)
    function.__doc__, function.operator = op.function.__doc__, op
    function.__signature__ = call_signature(op, with_out=False)
    return function


def compile_function(make_source: Callable[[], str], name: str, scope: dict[str, Any], op: Operator) -> Any:
    """Return the function `name` of the source that `make_source` writes.

    It is written and compiled at its first call: until then its code is a stub that does so. Importing gradscope would
    otherwise compile hundreds of functions of which a program uses twenty. The source is kept for tracebacks.
    """
    filename = f"<gradscope operator {op.name}: {name}>"
    function = FunctionType(_STUB, scope, name)

    def compile_now(*args: Any, **kwargs: Any) -> Any:
        source = make_source()
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        local_scope: dict[str, Any] = {}
        exec(compile(source, filename, "exec"), scope, local_scope)
        real = local_scope[name]
        function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
        function.__code__ = real.__code__
        return function(*args, **kwargs)

    function.__qualname__ = name  # a wrong call is told by this name
    scope["__name__"] = function.__module__ = op.family
    scope["compile_now"] = compile_now
    return function


def _stub(*args: Any, **kwargs: Any) -> Any:
    return compile_now(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821 - in the function's own scope


_STUB = _stub.__code__


@cache
def literal(text: str) -> Any:
    """Return the value that the text of a schema's default stands for."""
    return ast.literal_eval(text)


def call_signature(op: Operator, *, with_out: bool) -> inspect.Signature:
    """Return the signature of the operator's function, for help() and editors."""
    kinds = {False: inspect.Parameter.POSITIONAL_OR_KEYWORD, True: inspect.Parameter.KEYWORD_ONLY}
    parameters = [
        inspect.Parameter(
            keyword_of(op, p.name),
            kinds[p.keyword_only],
            default=inspect.Parameter.empty if p.default is None else literal(p.default),
        )
        for p in op.parameters
    ]
    if with_out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def docstring(op: Operator) -> str:
    """Return the operator's docstring with its schema as the first line."""
    return f"{op.schema}\n\n{op.doc}".rstrip() + "\n"


# --- the node class ---------------------------------------------------------------------------------------------------


@cache
def saved_by(op: Operator) -> dict[str, tuple[str, ...]]:
    """Return, for each saved name, the differentiable arguments whose gradient needs it."""
    users: dict[str, list[str]] = {}
    formulas = op.derivatives if op.joint is None else dict.fromkeys((p.name for p in op.tensors), op.joint)
    for argument, formula in formulas.items():
        for name in op.needed_by(formula):
            if name not in ("g", "F", "needs"):
                users.setdefault(name, []).append(argument)
    return {name: tuple(arguments) for name, arguments in users.items()}


def build_node_class(op: Operator) -> type[Node]:
    """Return the Node class of `op`, with a slot for each saved name."""
    saved = saved_by(op)
    tensors = {p.name for p in op.tensors}
    versioned = [n for n in saved if n in tensors or n in op.outputs]
    slots = [f"s_{n}" for n in saved] + [f"v_{n}" for n in versioned] + (["outs"] if op.multi else [])
    releasable = [n for n in saved if n in tensors or n in op.outputs or n in op.aux]
    scope = apply_scope(op)
    body: dict[str, Any] = {
        "__slots__": tuple(slots),
        "__module__": op.family,
        "__doc__": f"Backward of ``{op.name}``.",
        "node_name": op.node_name,
        "op": op,
        "multi": op.multi,
        "saved_names": tuple(saved),
        "versioned_names": tuple(versioned),
        "apply": compile_function(partial(apply_source, op), "apply", scope, op),
        "apply_graph": general.apply_graph,
    }
    if releasable:
        spend = partial(apply_source, op, releasable)
        body["spend"] = compile_function(spend, "apply", apply_scope(op), op)
        body["release"] = compile_function(partial(release_source, releasable), "release", {"RELEASED": RELEASED}, op)
    if op.multi:
        body["output_specs"] = lambda n: n.outs
    for name in saved:
        body[f"_saved_{general.shown_name(op, name)}"] = property(general.saved_getter(name))
        if name in releasable:
            body[f"_raw_saved_{name}"] = property(general.raw_saved_getter(name))
    return type(op.node_name, (Node,), body)


def release_source(names: list[str]) -> str:
    """Write ``release(n)``: let go of the saved tensors."""
    return f"def release(n):\n    {_release(names)}\n"


def _release(names: Sequence[str]) -> str:
    return " = ".join(f"n.s_{name}" for name in names) + " = RELEASED"


def apply_scope(op: Operator) -> dict[str, Any]:
    """Return the globals of the generated ``apply``."""
    scope: dict[str, Any] = {
        "Tensor": None,
        "ndarray": device.ndarray,
        "SavedResult": SavedResult,
        "unpack_array": general.unpack_array,
        "array_operators": array_operators,
        "NUMPY": array_operators(numpy),
        "array_module": device.array_module,
        "RELEASED": RELEASED,
        "joint": op.joint,
    }
    scope.update({f"d_{name}": formula for name, formula in op.derivatives.items()})
    general.scopes_wanting_tensor.append(scope)
    return scope


def apply_source(op: Operator, releasable: Sequence[str] = ()) -> str:
    """Write ``apply(n, g)``: unpack with the version check, then the formulas, on bare arrays.

    With names that are `releasable` it is ``spend(n, g)``, which lets go of these saved tensors afterwards.
    """
    lines = ["def apply(n, g):"]
    nothing = "(None,) * len(n.edges)"
    let_go = f"{_release(releasable)}; " if releasable else ""
    missing = "not any(x is not None for x in g)" if op.multi else "g is None"
    lines.append(f"    if {missing}: {let_go}return {nothing}")
    lines.append("    e = n.edges")
    tensors = {p.name: p for p in op.tensors}
    for name in saved_by(op):
        lines.append(f"    {local(name)} = n.s_{name}")
        if name in tensors and tensors[name].is_tensor:
            lines += [
                f"    if isinstance({local(name)}, Tensor):",
                f"        c = {local(name)}._vc",
                f"        if c is None or c.version == n.v_{name}: {local(name)} = {local(name)}._array",
                f"        else: {local(name)} = unpack_array(n, {name!r})",
                f"    elif {_packed_test(op, name)}: {local(name)} = unpack_array(n, {name!r})",
            ]
        elif name in op.outputs:
            lines += [
                f"    if type({local(name)}) is SavedResult and {local(name)}.counter.version == n.v_{name}:",
                f"        {local(name)} = {local(name)}.array",
                f"    elif {local(name)} is not None: {local(name)} = unpack_array(n, {name!r})",
            ]
        elif name in tensors or name in op.aux:
            lines.append(f"    if {local(name)} is not None: {local(name)} = unpack_array(n, {name!r})")
    formulas = list(op.derivatives.values()) + ([op.joint] if op.joint else [])
    if any("F" in op.needed_by(f) for f in formulas):
        first = "next(x for x in g if x is not None)" if op.multi else "g"
        lines.append(f"    F = NUMPY if type({first}) is ndarray else array_operators(array_module({first}))")
    lines.append(f"    return {results_expression(op)}")
    if releasable:
        lines[-1:] = [f"    results = {results_expression(op)}", f"    {_release(releasable)}", "    return results"]
    return "\n".join(lines) + "\n"


def _packed_test(op: Operator, name: str) -> str:
    value = local(name)
    if _may_be_number(op, name):
        return f"{value} is not None and type({value}) is not float and type({value}) is not int"
    return f"{value} is not None"


def results_expression(op: Operator) -> str:
    """Return the expression for the tuple of produced gradients."""
    if op.joint is not None:
        return call_expression(op, "joint", op.joint)
    if any(p.is_tensor_list for p in op.edged):
        (argument,) = op.derivatives
        return f"tuple({call_expression(op, f'd_{argument}', op.derivatives[argument])})"
    parts = []
    for index, parameter in enumerate(op.edged):
        call = call_expression(op, f"d_{parameter.name}", op.derivatives[parameter.name])
        parts.append(f"{call} if e[{index}] is not None else None")
    return "(" + ", ".join(parts) + ",)"


def call_expression(op: Operator, function: str, formula: Any) -> str:
    """Return the call of a formula with the locals it names."""
    needs = "tuple(x is not None for x in e)"
    special = {"g": "g", "F": "F", "needs": needs}
    return f"{function}({', '.join(special.get(n, local(n)) for n in op.needed_by(formula))})"


def local(name: str) -> str:
    """Return the local variable for a saved name."""
    return f"a_{name}"


# --- the function -----------------------------------------------------------------------------------------------------


def function_scope(op: Operator) -> dict[str, Any]:
    """Return the globals of the generated function."""
    scope: dict[str, Any] = {
        "Tensor": None,
        "edge_of": None,
        "new": object.__new__,
        "ndarray": device.ndarray,
        "numpy": numpy,
        "array_module": device.array_module,
        "is_array": device.is_array,
        "VersionCounter": VersionCounter,
        "SavedResult": SavedResult,
        "state": state,
        "modes": state.local,
        "sequence": state.sequence,
        "unrecorded": state.unrecorded,
        "element_strides": element_strides,
        "op": op,
        "general": general,
        "writes": writes,
        "forward": op.forward,
        "ufunc": op.ufunc,
        "plain": None if op.plain is None else getattr(numpy, op.plain),
        "Node": op.node_class,
        "FLOATS": "fc",
        "FLOAT32": numpy.dtype(numpy.float32),
        "CONSTANTS32": CONSTANTS["f"],
        "constant": constant,
    }
    general.scopes_wanting_tensor.append(scope)
    return scope


def keyword_of(op: Operator, name: str) -> str:
    """Return the keyword that stands for a parameter in a call: PyTorch's ``input`` for the schema's ``self``."""
    return "input" if name == "self" and op.parameters[0].name == name else name


def signature(op: Operator, *, dunder: bool = False) -> str:
    """Return the text between the parentheses of the function's ``def``; that of a Python operator has no ``out=``."""
    parts, starred = [], False
    for p in op.parameters:
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        name = p.name if dunder else keyword_of(op, p.name)
        parts.append(name if p.default is None else f"{name}={p.default}")
    if op.out and not dunder:
        parts += ([] if starred else ["*"]) + ["out=None"]
    return ", ".join(parts)


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


def function_source(op: Operator, *, dunder: bool = False) -> str:
    """Write the function that users call, or that of a Python operator."""
    name = op.name.replace(".", "_")
    head = [f"def {name}({signature(op, dunder=dunder)}):", *([] if dunder else own_name(op))]
    arguments = ", ".join(p.name for p in op.parameters)
    if op.out and not dunder:
        head.append(f"    if out is not None: return writes.run_out(op, ({arguments},), out)")
    if not is_simple(op):
        return "\n".join([*head, f"    return general.run(op, ({arguments},))"]) + "\n"
    return "\n".join([*head, *simple_body(op, f"({arguments},)")]) + "\n"


def own_name(op: Operator) -> list[str]:
    """Return the line that gives the first argument the name which the schema and the formulas know it by."""
    return ["    self = input"] if op.parameters and op.parameters[0].name == "self" else []


def simple_body(op: Operator, arguments: str) -> list[str]:
    """Write the inlined body: unwrap, forward, wrap, record. It is for NumPy arrays of one dtype.

    Numbers, subclasses of Tensor and mixed dtypes as second argument of a binary operator, integers where floats come
    out, and other array modules take :func:`general.run`; numbers are common enough to have lines of their own.
    """
    names = [p.name for p in op.tensors]
    first = names[0]
    run = f"return general.run(op, {arguments})"
    lines = [f"    if state.special: return general.watched(op, {arguments})", "    try:"]
    lines += [f"        {line}" for line in _unwrap_lines(op, names, run)]
    lines += [f"    except AttributeError: {run}", "    try:"]
    values = [f"x_{p.name}" if p.name in names else p.name for p in op.parameters]
    call = ", ".join(values) if op.ufunc is not None else ", ".join(["numpy", *values])
    forward = f"{'ufunc' if op.ufunc is not None else 'forward'}({call})"
    if op.plain is not None:
        defaults = " and ".join(f"{p.name} == {p.default}" for p in op.parameters if p.name not in names)
        forward = f"plain({', '.join(values[: len(names)])}) if {defaults} else {forward}"
    lines.append(f"        r = {forward}")
    lines.append(f"    except (ValueError, TypeError) as error: return general.retry(op, {arguments}, error)")
    if op.ufunc is not None:  # its result is an array or a scalar of NumPy: both have a shape
        missed = "not sh and type(r) is not ndarray"
        lines.append("    sh = r.shape")
    else:
        missed = "type(r) is not ndarray and not is_array(r)"
    lines += [
        f"    if {missed}: r = array_module(x_{first}).asarray(r)",
        "    out = new(Tensor)",
        "    out._array = r; out._vc = out._view = out._meta = None",
    ]
    if op.view:
        made_by = op.node_name.removesuffix("Backward0")
        lines.append(f"    out._edge = None; out._flags = 0; {first}._make_view(out, 'default', {made_by!r})")
    if op.differentiable:
        lines += _record_lines(op, names)
    lines += ["    return out"] if op.view else ["    out._edge = None; out._flags = 0", "    return out"]
    return lines


def observed_source(op: Operator) -> str:
    """Write the inlined form for :func:`general.watched`: it returns None where it would leave the common path."""
    names = ", ".join(p.name for p in op.parameters)
    _, *body = simple_body(op, f"({names},)")
    ways_out = re.compile(r"return general\..*")
    return "\n".join([f"def observed({names}):", *(ways_out.sub("return None", line) for line in body)]) + "\n"


def _unwrap_lines(op: Operator, names: list[str], run: str) -> list[str]:
    first = names[0]
    lines = [f"x_{first} = {first}._array; f_{first} = {first}._flags"]
    if op.ufunc is None:
        lines.append(f"if type(x_{first}) is not ndarray: {run}")
    if op.promote:
        lines.append(f"dt = x_{first}.dtype")
    floating = "dt is not FLOAT32 and dt.kind not in FLOATS"  # most are, and kind takes longer to read
    if op.promote == "float":
        lines.append(f"if {floating}: {run}")
    if len(names) == 1:
        return lines
    if not op.promote:
        for name in names[1:]:
            lines += [f"x_{name} = {name}._array; f_{name} = {name}._flags", f"if type(x_{name}) is not ndarray: {run}"]
        return lines
    second = names[1]
    saves = op.differentiable and second in saved_by(op)
    return [
        *lines,
        f"t = type({second})",
        "if t is not Tensor and (t is float or t is int):",  # one look at what it nearly always is
        f"    if {floating}: {run}",
        f"    x_{second} = CONSTANTS32.get({second}) if dt is FLOAT32 else None; f_{second} = 0",
        f"    if x_{second} is None: x_{second} = constant({second}, dt)",
        *([f"    c_{second} = None"] if saves else []),  # numbers have no version
        "else:",
        f"    x_{second} = {second}._array; f_{second} = {second}._flags",
        *([f"    c_{second} = {second}._vc"] if saves else []),
        f"    if dt is not x_{second}.dtype: {run}",
    ]


def _record_lines(op: Operator, names: list[str]) -> list[str]:
    flags = " | ".join(f"f_{n}" for n in names)
    reset = "" if op.view else "out._edge = None; out._flags = 0; "
    lines = [
        f"    f = {flags}",
        "    if f and (not unrecorded or modes._records):",
        f"        if f >= 4: {reset}return general.flagged(op, out, f, {_argument_tuple(op)})",
    ]
    if op.promote is None:
        lines.append(f"        if r.dtype.kind not in FLOATS: {reset}return out")
    edged = [p.name for p in op.edged]
    for n in edged:
        known = f"{n}._edge if f_{n} else None" if _may_be_number(op, n) else f"{n}._edge"
        lines += [f"        e_{n} = {known}", f"        if e_{n} is None and f_{n}: e_{n} = edge_of({n})"]
    shape = "sh" if op.ufunc is not None else "r.shape"
    dtype = "dt" if op.ufunc is not None and op.promote and len(names) == 2 else "r.dtype"
    alive = " or ".join(f"e_{n} is not None" for n in edged)
    lines.append(f"        if {alive}:")
    body = [
        "n = Node()",
        f"n.edges = ({', '.join(f'e_{n}' for n in edged)},)",
        "n.seq = next(sequence); n.extra = None",
        f"n.shape = {shape}; n.dtype = {dtype}",
    ]
    for name, users in saved_by(op).items():
        body += _save_lines(op, name, users, names)
    body += ["out._view.edge = n; out._flags |= 1" if op.view else "out._edge = n; out._flags = 1"]
    if "result" in saved_by(op):
        body += [
            "c = out._vc = new(VersionCounter); c.version = n.v_result = 0; c.writes = None",
            "s = n.s_result = new(SavedResult); s.array = r; s.counter = c; s.nr = 0",
        ]
    body.append("return out")
    lines += [f"            {line}" for line in body]
    # A view made under no_grad requires grad, but leads nowhere.
    loose = " or ".join(f"f_{n} & 2 and {n}.requires_grad" for n in edged)
    lines.append(f"        elif {loose}: {reset}return general.flagged(op, out, f, {_argument_tuple(op)})")
    return [*lines, f"    elif f >= 4: {reset}return general.flagged(op, out, f, {_argument_tuple(op)})"]


def _save_lines(op: Operator, name: str, users: tuple[str, ...], names: list[str]) -> list[str]:
    if name == "result":
        return []
    if name in names:
        condition = " or ".join(f"e_{u} is not None" for u in users)
        known = _may_be_number(op, name)
        save = [f"    n.s_{name} = {name}", *([] if known else [f"    c_{name} = {name}._vc"])]
        save += [f"    n.v_{name} = 0 if c_{name} is None else c_{name}.version"]
        if len(users) == len(op.edged):
            return [line[4:] for line in save]
        return [f"if {condition}:", *save, f"else: n.s_{name} = None"]
    for suffix in ("_shape", "_dtype", "_strides"):
        argument = name.removesuffix(suffix)
        if argument in names and name.endswith(suffix):
            if _may_be_number(op, argument):
                return [f"n.s_{name} = None if t is float or t is int else x_{argument}.{suffix[1:]}"]
            fact = f"element_strides(x_{argument})" if suffix == "_strides" else f"x_{argument}.{suffix[1:]}"
            return [f"n.s_{name} = {fact}"]
    return [f"n.s_{name} = {name}"]


def _may_be_number(op: Operator, name: str) -> bool:
    tensors = [p.name for p in op.tensors]
    return bool(op.promote) and len(tensors) == 2 and name == tensors[1]


def _argument_tuple(op: Operator) -> str:
    return "(" + ", ".join(p.name for p in op.parameters) + ",)"
