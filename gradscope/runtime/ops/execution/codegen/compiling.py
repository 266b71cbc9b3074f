"""Functions that are written as source and compiled at their first call, and how they are called."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy

from ....kernels.arithmetic.broadcast_arithmetic import OPERATIONS
from ...declaration.annotations import Argument, OperatorFunction, Scope

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = [
    "broadcasts",
    "call_signature",
    "call_text",
    "compile_function",
    "indented",
    "own_name",
    "positional",
    "sharing_test",
    "signature",
]


def compile_function(make_source: Callable[[], str], name: str, scope: Scope, op: Operator) -> OperatorFunction:
    """Return the function `name` of the source that `make_source` writes.

    It is written and compiled at its first call: until then its code is a stub that does so. Importing gradscope would
    otherwise compile hundreds of functions of which a program uses twenty. The source is kept for tracebacks.
    """
    filename = f"<gradscope operator {op.name}: {name}>"
    function = FunctionType(_STUB, scope, name)

    def compile_now(*args: Any, **kwargs: Any) -> Any:
        source = make_source()
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        local_scope: Scope = {}
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
def literal(text: str) -> Argument:
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


def keyword_of(op: Operator, name: str) -> str:
    """Return the keyword that stands for a parameter in a call: PyTorch's ``input`` for the schema's ``self``."""
    return "input" if name == "self" and op.parameters[0].name == name else name


def signature(op: Operator, *, dunder: bool = False) -> str:
    """Return the text between the parentheses of the function's ``def``; that of a Python operator has no ``out=``."""
    parts, starred = [], False
    for p in op.parameters:
        if p.keyword_only and not starred:
            parts.append("*older" if op.older and not dunder else "*")
            starred = True
        name = p.name if dunder else keyword_of(op, p.name)
        parts.append(name if p.default is None else f"{name}={p.default}")
    if op.out and not dunder:
        parts += ([] if starred else ["*"]) + ["out=None"]
    return ", ".join(parts)


def positional(op: Operator) -> str:
    """Return the names of the arguments that may be given by position."""
    return ", ".join(p.name for p in op.parameters if not p.keyword_only)


def own_name(op: Operator) -> list[str]:
    """Return the line that gives the first argument the name which the schema and the formulas know it by."""
    return ["    self = input"] if op.parameters and op.parameters[0].name == "self" else []


def indented(depth: int, lines: list[str]) -> list[str]:
    """Return lines of source, further in."""
    return ["    " * depth + line for line in lines]


def default_options(op: Operator) -> dict[str, Argument]:
    """Return the defaults of what is not a tensor, by the names that :func:`defaults_test` compares them under."""
    return {f"default_{p.name}": literal(p.default) for p in op.parameters if p.default is not None}


def defaults_test(op: Operator, tensors: list[str]) -> str:
    """Return the test whether all options are the defaults themselves: 1.0 and True are equal to 1, and no integers."""
    return " and ".join(f"{p.name} is default_{p.name}" for p in op.parameters if p.name not in tensors)


def broadcasts(op: Operator) -> bool:
    """Whether the operator is arithmetic that has compiled loops for an array that broadcasts to the other."""
    return (op.ufunc if op.plain is None else getattr(numpy, op.plain)) in OPERATIONS


def sharing_test(array: str) -> str:
    """Return the test whether several threads share the work on an array."""
    return f"sharing and {array}.size >= LARGE"


def call_text(function: str, values: list[str], *, by: str = "") -> str:
    """Return the call of a function of arrays, or that of the one `by` which it is called, as by `in_parts`."""
    return f"{by}({', '.join([function, *values])})" if by else f"{function}({', '.join(values)})"
