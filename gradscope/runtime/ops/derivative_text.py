"""The derivatives of an operator as they are declared, in words that a person can read."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .declaration.registry import OPERATORS, Operator

__all__ = ["derivative_text"]


@functools.cache
def derivative_text(node_name: str) -> tuple[tuple[str, str], ...]:
    """Return the derivative of the operator that a node belongs to, by argument, as the source has it.

    Parameters
    ----------
    node_name : str
        Such as ``'MulBackward0'``.

    Returns
    -------
    tuple of (str, str)
        For each argument the expression of its gradient, in which ``g`` is the gradient that arrives; for a longer
        derivative where it stands. Empty where no operator has such a node.

    Examples
    --------
    >>> derivative_text("MulBackward0")
    (('self', 'g * conj(other)'), ('other', 'g * conj(self)'))
    """
    op = next((op for op in OPERATORS.values() if op.differentiable and op.node_name == node_name), None)
    if op is None:
        return ()
    return tuple((name, _formula(function)) for name, function in _functions(op).items())


def _functions(op: Operator) -> dict[str, Callable[..., Any]]:
    found = dict(op.derivatives)
    if op.joint is not None:
        found[", ".join(parameter.name for parameter in op.edged)] = op.joint
    return found


def _formula(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return str(getattr(function, "__name__", function))
    body = _body(Path(code.co_filename), code.co_firstlineno, code.co_varnames[: code.co_argcount])
    if body is not None:
        return " ".join(ast.unparse(body).split())
    where = Path(code.co_filename).relative_to(Path(__file__).parents[3]).as_posix()
    name, arguments = code.co_name.replace("<lambda>", "derivative"), ", ".join(inspect.signature(function).parameters)
    return f"{name}({arguments}), {where}:{code.co_firstlineno}"


def _body(path: Path, line: int, names: tuple[str, ...]) -> ast.expr | None:
    """Return what a function returns, if that is all it does and no other on its line has its arguments."""
    found = [function for function in _functions_of(path).get(line, ()) if _arguments(function) == names]
    if len(found) != 1:
        return None
    if isinstance(found[0], ast.Lambda):
        return found[0].body
    last = found[0].body[-1]
    documented = isinstance(found[0].body[0], ast.Expr)
    return last.value if len(found[0].body) == 1 + documented and isinstance(last, ast.Return) else None


def _arguments(function: ast.Lambda | ast.FunctionDef) -> tuple[str, ...]:
    return tuple(argument.arg for argument in (*function.args.posonlyargs, *function.args.args))


@functools.cache
def _functions_of(path: Path) -> dict[int, list[ast.Lambda | ast.FunctionDef]]:
    """Return the functions of a source file by the lines where they begin."""
    found: dict[int, list[ast.Lambda | ast.FunctionDef]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            found.setdefault(node.lineno, []).append(node)
    return found
