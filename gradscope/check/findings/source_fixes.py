"""Reading the user's source around a finding: the variable written, and the smallest change."""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from ...inspect.records.records import Location
from ...inspect.source.call_sites import line_of
from ...inspect.source.source_syntax import last_name, syntax_tree
from ...program_files import is_installed_file
from .finding_records import Fix

__all__ = ["SourceWrite", "made_in_place", "without_comment", "written_at"]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}

# Methods that hand out the same memory: what is written through them is the tensor they were called on.
_ALIASES = {"detach", "view", "view_as", "t", "unsqueeze", "squeeze", "narrow", "select", "transpose", "permute"}

# Where functions live: what is written by calling one of them is its first argument.
_NAMESPACES = {"gs", "gradscope", "F", "torch", "functional", "init"}


def without_comment(source: str) -> str:
    """Return a line of source without the comment at its end.

    Examples
    --------
    >>> without_comment("x.fill_('#')  # not needed again")
    "x.fill_('#')"
    """
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                return source[: token.start[1]].rstrip()
    except (tokenize.TokenError, SyntaxError):
        # The first line of a statement that goes on below.
        pass
    return source


class SourceWrite:
    """An in-place write as it stands in the source.

    Attributes
    ----------
    name : str
        The variable written (``'out'``, ``'self.hidden'``); empty when the statement does not show it.
    replacement : str
        The statement written out of place; empty when it takes more than that.
    into_part : bool
        Whether an item or slice is written (``x[0] = ...``).
    fix : Fix or None
        The replacement as a change of the source.
    """

    __slots__ = ("fix", "into_part", "name", "replacement")

    def __init__(self, name: str = "", replacement: str = "", into_part: bool = False) -> None:
        self.name = name
        self.replacement = replacement
        self.into_part = into_part
        self.fix: Fix | None = None


def written_at(location: Location | None, operator: str) -> SourceWrite:
    """Read, from the statement at `location`, which variable the in-place `operator` wrote.

    Parameters
    ----------
    operator : str
        The operator's name, such as ``'add_'``.
    """
    if location is None:
        return SourceWrite()
    statement = _statement(location.filename, location.lineno)
    write = _write_in(statement, operator)
    if statement is not None and write.replacement and not is_installed_file(location.filename):
        write.fix = _fix(location.filename, statement, write.replacement)
    return write


def _write_in(statement: ast.stmt | None, operator: str) -> SourceWrite:
    if isinstance(statement, ast.AugAssign):
        return _augmented(statement)
    if isinstance(statement, ast.Assign):
        subscript = next((t for t in statement.targets if isinstance(t, ast.Subscript)), None)
        if subscript is not None:
            return SourceWrite(_root(subscript), into_part=True)
    for call in _calls(statement, operator):
        return _call(call, statement)
    return SourceWrite()


def _fix(filename: str, statement: ast.stmt, replacement: str) -> Fix:
    """Return the change that puts a replacement in the place of a statement."""
    end = statement.end_lineno or statement.lineno

    def column(line: int, offset: int) -> int:
        # ast counts columns in bytes, from 0.
        return 1 + len(linecache.getline(filename, line).encode()[:offset].decode(errors="replace"))

    start = statement.lineno, column(statement.lineno, statement.col_offset)
    return Fix(filename, start, (end, column(end, statement.end_col_offset or 0)), replacement)


def _augmented(statement: ast.AugAssign) -> SourceWrite:
    name = _root(statement.target)
    if isinstance(statement.target, ast.Subscript):
        return SourceWrite(name, into_part=True)
    sign = _OPERATORS[type(statement.op)]
    value = ast.unparse(statement.value)
    loose = isinstance(statement.value, ast.IfExp | ast.BoolOp | ast.Compare)
    if loose or (isinstance(statement.value, ast.BinOp) and sign != "+"):
        value = f"({value})"
    return SourceWrite(name, f"{name} = {name} {sign} {value}")


def _call(call: ast.Call, statement: ast.stmt | None) -> SourceWrite:
    """Read ``x.add_(1)``, ``gs.relu_(x)``, ``relu(x, inplace=True)`` or ``add(a, b, out=x)``."""
    assert isinstance(call.func, ast.Attribute | ast.Name)
    keywords = {k.arg: k.value for k in call.keywords}
    if "out" in keywords:
        return SourceWrite(_root(keywords["out"]))
    method = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    first = call.args[0] if call.args else None
    if "inplace" in keywords:
        return SourceWrite(_root(first) if first is not None else "")
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None or ast.unparse(owner).rpartition(".")[2] in _NAMESPACES:
        return SourceWrite(_root(first) if first is not None else "")
    name = _root(owner)
    plain = name == ast.unparse(owner) and isinstance(statement, ast.Expr) and statement.value is call
    if not plain or method in {"copy_", "fill_", "zero_", "set_"} or not method.endswith("_"):
        return SourceWrite(name)
    arguments = ", ".join([*map(ast.unparse, call.args), *(ast.unparse(k) for k in call.keywords)])
    return SourceWrite(name, f"{name} = {name}.{method[:-1]}({arguments})")


def _calls(statement: ast.stmt | None, operator: str) -> Iterator[ast.Call]:
    """Yield the calls in a statement that write in place, those named like `operator` first."""
    if statement is None:
        return
    found = []
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        keywords = {k.arg for k in node.keywords}
        if (name.endswith("_") and not name.endswith("__")) or keywords & {"out", "inplace"}:
            found.append((name not in (operator, operator.removesuffix("_")), node))
    yield from (call for _, call in sorted(found, key=lambda entry: entry[0]))


def _root(expression: ast.expr) -> str:
    """Return the variable that an expression takes its memory from; empty when that is no variable."""
    while True:
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            if expression.func.attr not in _ALIASES:
                return ""
            expression = expression.func.value
        elif isinstance(expression, ast.Attribute) and expression.attr in {"data", "T", "mT"}:
            expression = expression.value
        else:
            break
    part = expression
    while isinstance(part, ast.Attribute):
        part = part.value
    return ast.unparse(expression) if isinstance(part, ast.Name) else ""


def _statement(filename: str, lineno: int) -> ast.stmt | None:
    """Return the innermost simple statement that covers a line."""
    found: ast.stmt | None = None
    for statement in _statements(filename, "".join(linecache.getlines(filename))):
        if statement.lineno <= lineno <= (statement.end_lineno or statement.lineno):
            found = statement
    return found


@lru_cache(maxsize=32)
def _statements(filename: str, text: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse(text, filename)
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body"))


def made_in_place(owner: type, attribute: str, kind: str) -> Location | None:
    """Return the line of a class that makes a child, or a part of it, which works in place: ``ReLU(inplace=True)``.

    Parameters
    ----------
    owner : type
        The module's class.
    attribute : str
        The child's name.
    kind : str
        The class of the part.

    Returns
    -------
    Location or None
        None where no such line assigns the attribute.
    """
    try:
        filename, (lines, first) = inspect.getfile(owner), inspect.getsourcelines(owner)
    except (OSError, TypeError):
        return None
    tree = syntax_tree(filename)
    for node in () if tree is None else ast.walk(tree):
        inside = isinstance(node, ast.Assign) and first <= node.lineno < first + len(lines)
        if inside and any(last_name(target) == attribute for target in node.targets):  # type: ignore[attr-defined]
            made = next((n for n in ast.walk(node) if _is_made_in_place(n, kind)), None)
            if made is not None:
                return line_of(filename, made.lineno, f"{owner.__qualname__}.__init__")  # type: ignore[attr-defined]
    return None


def _is_made_in_place(node: ast.AST, kind: str) -> bool:
    if not isinstance(node, ast.Call) or last_name(node.func) != kind:
        return False
    flags = [keyword.value for keyword in node.keywords if keyword.arg == "inplace"] or node.args[-1:]
    return any(isinstance(flag, ast.Constant) and flag.value is True for flag in flags)
