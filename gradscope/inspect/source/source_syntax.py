"""The syntax of the user's program: of a file, of a function, and the line on which a function is defined."""

from __future__ import annotations

import ast
import linecache
import re
from functools import lru_cache
from types import CodeType
from typing import Any

from ...program_files import is_library_file

__all__ = ["FUNCTIONS", "definition_line", "last_name", "syntax_of", "syntax_tree"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def syntax_tree(filename: str, mention: re.Pattern[str] | None = None) -> ast.Module | None:
    """Return the syntax of a file; None where there is no source, or it cannot be parsed.

    Parameters
    ----------
    filename : str
        Or the name under which a notebook's cell is known.
    mention : Pattern, optional
        None is returned as well for a file in which this is not found: that takes a hundredth of the time.
    """
    source = "".join(linecache.getlines(filename))
    if not source or (mention is not None and mention.search(source) is None):
        return None
    return _parsed(source)


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    # The cache goes by a file's text, not by its name: a file is edited, and a notebook's cell is run again.
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def syntax_of(code: CodeType) -> Any:
    """Return the syntax of a function, or of a file outside of its functions.

    Returns
    -------
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Module or None
        None where there is no source, and of a library's.
    """
    if is_library_file(code.co_filename):
        return None
    tree = syntax_tree(code.co_filename)
    if tree is None or code.co_name == "<module>":
        return tree
    named = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and node.name == code.co_name)
    return next((node for node in named if _first_line(node) == code.co_firstlineno), None)


def _first_line(function: Any) -> int:
    """Return the line where a function's code begins, for Python: that of its first decorator."""
    first: int = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return first


def definition_line(code: CodeType) -> int:
    """Return the line of a function's ``def``, below its decorators.

    Returns
    -------
    int
        Where there is no source, the line that the code begins with.
    """
    found = syntax_of(code)
    return found.lineno if isinstance(found, FUNCTIONS) else code.co_firstlineno


def last_name(expression: ast.AST) -> str:
    """Return ``'argmax'`` for ``torch.argmax``; an empty string for what is no name."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""
