"""The function of every other operator: with lists of tensors, optional ones, several results, or what comes with them.

Its locals begin with an underscore, so that no argument is called like one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..saving import saved_by
from .calls import layout_lines
from .compiling import indented

if TYPE_CHECKING:
    from ...declaration.registry import Operator, Parameter

__all__ = ["body_with_lists"]

_BLANK = "{0}._vc = {0}._view = {0}._meta = {0}._edge = None; {0}._flags = 0"


def body_with_lists(op: Operator, arguments: str) -> list[str]:
    """Write the inlined body: unwrap, forward, wrap, record. It is for NumPy arrays, where dtypes matter of one float.

    Everything else takes :func:`general.run`, or once the forward has run :func:`general.finish`.
    """
    run = f"return general.run(op, {arguments})"
    operands = ", ".join(f"list({p.name})" if p.is_tensor_list else p.name for p in op.parameters)
    aux = "{" + ", ".join(f"{name!r}: _m_{name}" for name in op.aux) + "}"
    finish = f"return general.finish(op, [{operands}], _r, {aux}, numpy)"
    return [
        "    try:",
        *indented(2, _unwrap_lines(op, run)),
        f"    except (AttributeError, TypeError): {run}",
        f"    _f = {' | '.join(f'_f_{p.name}' for p in op.tensors)}",
        f"    if _f >= 4: {run}",
        "    try:",
        f"        {', '.join(['_r', *(f'_m_{name}' for name in op.aux)])} = {_forward_call(op)}",
        *indented(2, layout_lines(op, "_r", "_x_")),
        f"    except (ValueError, TypeError) as error: return general.retry(op, {arguments}, error)",
        *indented(1, _wrap_lines(op)),
        *indented(1, _record_lines(op, finish)),
        f"    return {_returned(op)}",
    ]


# --- in ---------------------------------------------------------------------------------------------------------------


def _unwrap_lines(op: Operator, run: str) -> list[str]:
    lines = []
    for parameter in op.tensors:
        lines += _unwrap_list(parameter, run) if parameter.is_tensor_list else _unwrap_one(parameter, run)
    if op.promote:
        first, *others = [p.name for p in op.tensors]
        same = [f"_x_{name} is not None and {name}._dtype is not _d" for name in others]
        lines += [f"_d = {first}._dtype", f"if {' or '.join(['_d.kind not in FLOATS', *same])}: {run}"]
    return lines


def _unwrap_one(parameter: Parameter, run: str) -> list[str]:
    name = parameter.name
    lines = [f"_x_{name} = {name}._array; _f_{name} = {name}._flags", f"if type(_x_{name}) is not ndarray: {run}"]
    if parameter.type == "Tensor":
        return lines
    return [f"if {name} is None: _x_{name} = None; _f_{name} = 0", "else:", *indented(1, lines)]


def _unwrap_list(parameter: Parameter, run: str) -> list[str]:
    name = parameter.name
    return [
        f"if type({name}) is not list and type({name}) is not tuple: {run}",
        f"_x_{name} = []; _f_{name} = 0",
        f"for _t in {name}:",
        f"    _x = _t._array; _f_{name} |= _t._flags",
        f"    if type(_x) is not ndarray: {run}",
        f"    _x_{name}.append(_x)",
    ]


def _forward_call(op: Operator) -> str:
    names = {p.name for p in op.tensors}
    values = [f"_x_{p.name}" if p.name in names else p.name for p in op.parameters]
    if op.ufunc is not None:
        return f"ufunc({', '.join(values)})"
    return f"forward({', '.join(['numpy', *values])})"


# --- out --------------------------------------------------------------------------------------------------------------


def _wrap_lines(op: Operator) -> list[str]:
    if op.output_list:
        return _wrap_list(op)
    count = len(op.outputs)
    if count == 1:
        lines = ["_r0 = _r"]
    else:
        lines = [f"{', '.join(f'_r{nr}' for nr in range(count))} = _r"]
    for nr in range(count):
        lines += [
            f"if type(_r{nr}) is not ndarray and not is_array(_r{nr}): _r{nr} = numpy.asarray(_r{nr})",
            f"_o{nr} = next(fresh); _o{nr}._array = _r{nr}; _d{nr} = _o{nr}._dtype = _r{nr}.dtype",
            f"_o{nr}._shape = _r{nr}.shape; {_BLANK.format(f'_o{nr}')}",
        ]
    return lines


def _wrap_list(op: Operator) -> list[str]:
    lines = [
        "_o = []",
        "for _a in _r:",
        "    if type(_a) is not ndarray and not is_array(_a): _a = numpy.asarray(_a)",
        "    _t = next(fresh); _t._array = _a; _t._dtype = _a.dtype; _t._shape = _a.shape",
        f"    {_BLANK.format('_t')}",
        "    _o.append(_t)",
    ]
    if op.view:
        made_by = op.node_name.removesuffix("Backward0")
        lines += [
            "for _nr, _t in enumerate(_o):",
            f"    {op.tensors[0].name}._make_view(_t, {op.view!r}, {made_by!r}); _t._view.output_nr = _nr",
        ]
    return lines


def _returned(op: Operator) -> str:
    if op.output_list:
        return "tuple(_o)"
    if len(op.outputs) == 1:
        return "_o0"
    return f"op.result_type({', '.join(f'_o{nr}' for nr in range(len(op.outputs)))})"


# --- the node ---------------------------------------------------------------------------------------------------------


def _record_lines(op: Operator, finish: str) -> list[str]:
    if not op.differentiable:
        return []
    graded = [f"_o{nr}" for nr in range(min(op.graded, len(op.outputs)))]
    floating = [f"_d{nr} is FLOAT32 or _d{nr}.kind in INEXACT" for nr in range(len(graded))]
    condition = "_o and _o[0]._dtype.kind in INEXACT" if op.output_list else " or ".join(floating)
    alive = " or ".join(f"_e_{p.name} is not None" for p in op.edged)
    operands = ", ".join(f"*{p.name}" if p.is_tensor_list else p.name for p in op.tensors)
    return [
        f"if _f and (not unrecorded or modes._records) and ({condition}):",
        *indented(1, [line for parameter in op.edged for line in _edge_lines(parameter)]),
        f"    if {alive}:",
        *indented(2, _node_lines(op)),
        # A view made under no_grad requires grad, but leads nowhere.
        f"    elif _f & 2 and general.wants_grad([{operands}]): {finish}",
    ]


def _edge_lines(parameter: Parameter) -> list[str]:
    name = parameter.name
    if parameter.is_tensor_list:  # None where no tensor has an edge
        return [
            f"_es_{name} = []; _e_{name} = None",
            f"for _t in {name}:",
            "    _e = _t._edge",
            "    if _e is None and _t._flags: _e = edge_of(_t)",
            f"    if _e is not None: _e_{name} = _e",
            f"    _es_{name}.append(_e)",
        ]
    known = f"{name}._edge" if parameter.type == "Tensor" else f"None if {name} is None else {name}._edge"
    return [f"_e_{name} = {known}", f"if _e_{name} is None and _f_{name}: _e_{name} = edge_of({name})"]


def _node_lines(op: Operator) -> list[str]:
    first = "_o[0]" if op.output_list else "_o0"
    edges = ", ".join(f"*_es_{p.name}" if p.is_tensor_list else f"_e_{p.name}" for p in op.edged)
    lines = [
        "_n = Node()",
        f"_n.edges = ({edges},)",
        "_n.seq = next(sequence); _n.extra = None",
        f"_n.shape = {first}._shape; _n.dtype = {first}._dtype",
    ]
    if op.output_list:
        lines.append("_n.outs = [(_t._shape, _t._dtype) for _t in _o]")
    elif op.multi:
        lines.append(f"_n.outs = [{', '.join(f'(_o{nr}._shape, _o{nr}._dtype)' for nr in range(op.graded))}]")
    for name, users in saved_by(op).items():
        lines += _save_lines(op, name, users)
    return lines + _history_lines(op)


def _save_lines(op: Operator, name: str, users: tuple[str, ...]) -> list[str]:
    if name in op.outputs:
        return _save_result_lines(op, name)
    if name in op.aux:
        return [f"_n.s_{name} = _m_{name}"]
    parameters = {p.name: p for p in op.parameters}
    if name not in parameters:
        return _fact_lines(parameters, name)
    parameter = parameters[name]
    if parameter.is_tensor_list:
        return [f"_n.s_{name} = list({name}); _n.v_{name} = [_t._version for _t in {name}]"]
    if not parameter.is_tensor:
        return [f"_n.s_{name} = {name}"]
    together = op.joint is not None or any(p.is_tensor_list for p in op.edged)
    wanted = [] if together else [" or ".join(f"_e_{user} is not None" for user in users)]
    if parameter.type == "Tensor?":
        wanted = [f"{name} is not None", *(f"({text})" for text in wanted)]
    save = [f"_n.s_{name} = {name}; _c = {name}._vc", f"if _c is not None: _n.v_{name} = _c.version"]
    if not wanted:
        return save
    return [f"if {' and '.join(wanted)}:", *indented(1, save), f"else: _n.s_{name} = None"]


def _fact_lines(parameters: dict[str, Parameter], name: str) -> list[str]:
    """Write what saves ``NAME_shape``, ``NAME_dtype``, ``NAME_strides`` or ``NAME_offset`` of an argument."""
    argument, _, fact = name.rpartition("_")
    function = {"strides": "element_strides", "offset": "offset_of"}.get(fact)
    if parameters[argument].is_tensor_list:  # a comprehension is a call: it takes longer for few
        each, read = (f"_x in _x_{argument}", f"{function}(_x)") if function else (f"_t in {argument}", f"_t._{fact}")
        return [f"_n.s_{name} = []", f"for {each}: _n.s_{name}.append({read})"]
    read = f"{function}(_x_{argument})" if function else f"{argument}._{fact}"
    return [f"_n.s_{name} = " + f"None if {argument} is None else " * (parameters[argument].type == "Tensor?") + read]


def _save_result_lines(op: Operator, name: str) -> list[str]:
    nr = op.outputs.index(name)
    output = f"_o[{nr}]" if op.output_list else f"_o{nr}"
    return [
        f"_c = {output}._vc = new(VersionCounter); _c.version = _n.v_{name} = 0; _c.writes = None",
        f"_s = _n.s_{name} = new(SavedResult); _s.array = {output}._array; _s.counter = _c; _s.nr = {nr}",
    ]


def _history_lines(op: Operator) -> list[str]:
    """Write what hangs the differentiable outputs on the node."""
    if op.output_list:
        edge = "_t._view.edge = _n, _nr" if op.view else "_t._edge = _n, _nr"
        return ["for _nr, _t in enumerate(_o):", f"    {edge}; _t._flags |= 1"]
    if not op.multi:
        return ["_o0._edge = _n; _o0._flags = 1"]
    lines = [f"_o{nr}._edge = _n, {nr}; _o{nr}._flags = 1" for nr in range(op.graded)]
    return [f"if _o{nr}._dtype.kind in INEXACT: {line}" if op.graded > 1 else line for nr, line in enumerate(lines)]
