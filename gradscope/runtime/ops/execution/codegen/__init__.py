"""Compiles an operator's declaration into straight-line code.

For each operator the functions that a user calls (:mod:`calls`, :mod:`calls_with_lists`, :mod:`inplace`) and the node's
``apply`` on bare arrays (:mod:`nodes`) are written out as source, much as ``dataclasses`` does, and compiled at their
first call.
What they would otherwise decide per call (how many tensors, what is saved, whether dtypes are brought together) is
decided here. Their source is in ``linecache``, so tracebacks and debuggers show it. Everything rare goes to
:mod:`~gradscope.runtime.ops.execution.general` and :mod:`~gradscope.runtime.ops.execution.inplace_and_out`, which do
the same step by step.

- :mod:`~.calls`: the function of an operator of one to three tensors and one result
- :mod:`~.calls_with_lists`: that of every other operator
- :mod:`~.inplace`: ``name_``
- :mod:`~.nodes`: the node's class: slots for what is saved, and ``apply``
- :mod:`~.compiling`: text to function, at the first call
- :mod:`~.docstrings`: what ``help()`` shows: facts, neighbours, an example
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy

from ...declaration.annotations import NodeClass, OperatorFunction
from .. import general
from .calls import function_scope, is_simple, simple_body
from .calls_with_lists import body_with_lists
from .compiling import call_signature, compile_function, own_name, positional, signature
from .docstrings import docstring
from .inplace import make_inplace
from .nodes import build_node_class

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = ["build", "operator_form"]


def build(op: Operator) -> None:
    """Derive the node class, the function and the in-place function of `op`."""
    if op.differentiable:
        op.node_class = op.inplace_node_class = build_node_class(op)
    if isinstance(op.forward, str):
        op.ufunc = getattr(numpy, op.forward)
    op.function = compile_function(partial(function_source, op), op.name.replace(".", "_"), function_scope(op), op)
    op.function.__doc__ = docstring(op)
    op.function.__signature__ = call_signature(op, with_out=bool(op.out))  # type: ignore[attr-defined]
    op.function.operator = op  # type: ignore[attr-defined]
    op.observed = compile_function(partial(observed_source, op), "observed", function_scope(op), op)
    if op.inplace_node is not None:
        body = {"__slots__": (), "__module__": op.family, "__doc__": f"Backward of ``{op.name}_``."}
        base: NodeClass = op.node_class
        op.inplace_node_class = type(op.inplace_node, (base,), {**body, "node_name": op.inplace_node})
    if op.inplace:
        op.inplace_function = make_inplace(op)


def operator_form(op: Operator) -> OperatorFunction:
    """Return the function of `op` for Python's operators: NotImplemented where the other operand is no tensor."""
    scope = function_scope(op)
    scope["general"] = general.OperatorForm()
    function = compile_function(partial(function_source, op, dunder=True), op.name.replace(".", "_"), scope, op)
    function.__doc__, function.operator = op.function.__doc__, op
    function.__signature__ = call_signature(op, with_out=False)
    return function


def function_source(op: Operator, *, dunder: bool = False) -> str:
    """Write the function that users call, or that of a Python operator."""
    name = op.name.replace(".", "_")
    head = [f"def {name}({signature(op, dunder=dunder)}):", *([] if dunder else own_name(op))]
    arguments = ", ".join(p.name for p in op.parameters)
    if op.older and not dunder:
        head.append(f"    if older: return run_older(op, {op.name!r}, ({positional(op)}, *older), out)")
    if op.out and not dunder:
        head.append(f"    if out is not None: return writes.run_out(op, ({arguments},), out)")
    head.append(f"    if state.special: return general.watched(op, ({arguments},))")
    return "\n".join([*head, *body_of(op, f"({arguments},)")]) + "\n"


def observed_source(op: Operator) -> str:
    """Write the inlined form for :func:`general.watched`: it returns None where it would leave the common path."""
    names = ", ".join(p.name for p in op.parameters)
    if op.draws:
        return f"def observed({names}):\n    return None\n"
    ways_out = re.compile(r"return general\..*")
    body = (ways_out.sub("return None", line) for line in body_of(op, f"({names},)"))
    return "\n".join([f"def observed({names}):", *body]) + "\n"


def body_of(op: Operator, arguments: str) -> list[str]:
    """Write the lines of the function after its head: what is not its common path is left to :mod:`general`."""
    return simple_body(op, arguments) if is_simple(op) else body_with_lists(op, arguments)
