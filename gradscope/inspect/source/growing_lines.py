"""The statements of a program that make a variable longer: where a list that keeps old results grows."""

from __future__ import annotations

import ast

from ..records.records import Location
from .call_sites import line_of
from .source_syntax import last_name, syntax_tree

__all__ = ["growing_line"]


def growing_line(name: str, near: Location) -> Location | None:
    """Return the line near `near` where a variable grows: ``name.append(...)``, ``name[...] = ...``, ``name += ...``.

    Parameters
    ----------
    near : Location
        A line of the same file; the first such line after it wins, then the last before it.
    """
    lines = _growing_lines(near.filename).get(name, ())
    if not lines:
        return None
    after = [line for line in lines if line >= near.lineno]
    return line_of(near.filename, min(after) if after else max(lines), near.function)


def _growing_lines(filename: str) -> dict[str, tuple[int, ...]]:
    tree = syntax_tree(filename)
    if tree is None:
        return {}
    found: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        target = _grown_by(node)
        if target:
            found.setdefault(target, []).append(node.lineno)  # type: ignore[attr-defined]
    return {name: tuple(lines) for name, lines in found.items()}


def _grown_by(node: ast.AST) -> str:
    """Return the variable that a statement or call makes longer."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        growing = node.func.attr in ("add", "append", "appendleft", "extend", "insert", "setdefault", "update")
        return last_name(node.func.value) if growing else ""
    if isinstance(node, ast.AugAssign):
        return last_name(node.target)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return last_name(node.targets[0].value)
    return ""
