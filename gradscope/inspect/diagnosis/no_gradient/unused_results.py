"""Results that never reach the loss, as the lines of source below the one that made them tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...records.records import Location
from ...source.call_sites import line_of
from ...source.source_syntax import FUNCTIONS, last_name, syntax_tree
from ..explanation import at
from .lost_history import Answer
from .no_grad_reasons import Reason

__all__ = ["unread"]


def unread(operator: str, location: Location | None) -> Answer | None:
    """Return what the program does instead of reading a result.

    Parameters
    ----------
    operator : str
        What computed it.
    location : Location or None
        The line on which it was computed.

    Returns
    -------
    Answer or None
        None where the source does not tell for certain: the result is read, or in a branch, or the line is part of a
        larger statement.
    """
    tree = None if location is None else syntax_tree(location.filename)
    if location is None or tree is None:
        return None
    for scope, body in _bodies(tree):
        for place, statement in enumerate(body):
            if statement.lineno <= location.lineno <= (statement.end_lineno or statement.lineno):
                found = _kept_by(scope, statement, body[place + 1 :], operator, location)
                if found is not None:
                    return found
    return None


def _bodies(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield every run of statements, with the function (or the module) that it is in."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while waiting:
        scope, node = waiting.pop()
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield scope, body
        for child in ast.iter_child_nodes(node):
            waiting.append((child if isinstance(child, FUNCTIONS) else scope, child))


def _kept_by(
    scope: ast.AST, statement: ast.stmt, after: list[ast.stmt], operator: str, location: Location
) -> Answer | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _dropped(statement.value, operator, location)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return None
    name = target.id
    if _read_inside(scope, name):
        return None
    for later in after:
        if _mentions(later, name):
            return _replaced(later, name, operator, location)
    # A module's variable may be read by other code, and an earlier turn of a loop may read a function's.
    if not isinstance(scope, FUNCTIONS) or any(_reads(node, name) for node in ast.walk(scope)):
        return None
    text = f"not reached: {operator} has used it{at(location)}, and nothing reads `{name}`"
    return Answer(Reason.NOT_IN_LOSS, text, (location,), f"Use `{name}` in what becomes the loss.")


def _replaced(later: ast.stmt, name: str, operator: str, location: Location) -> Answer | None:
    """Return the answer where the next statement with a name gives it another value, whatever it had."""
    plain = isinstance(later, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in later.targets)
    if not plain or any(_reads(node, name) for node in ast.walk(later)):
        return None
    line = line_of(location.filename, later.lineno, location.function)
    text = f"not reached: {operator} has used it{at(location)}, but `{name}` is replaced{at(line)} before it is read"
    return Answer(Reason.REBOUND, text, (line, location), "Give one of the two another name, or add them up.")


def _dropped(call: ast.Call, operator: str, location: Location) -> Answer | None:
    """Return the answer where what a statement calls is the operator: ``x.relu()``."""
    if last_name(call.func) != operator:
        return None
    text = f"not reached: {operator} has used it{at(location)}, and the result is not kept"
    return Answer(Reason.NOT_IN_LOSS, text, (location,), "It does not write the tensor: assign what it returns.")


def _read_inside(scope: ast.AST, name: str) -> bool:
    """Whether a function inside reads the name, at a time that the source does not tell."""
    inner = (node for node in ast.walk(scope) if node is not scope and isinstance(node, (*FUNCTIONS, ast.Lambda)))
    return any(_reads(node, name) for function in inner for node in ast.walk(function))


def _mentions(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
