"""The statements of a source file, block by block, and the names in them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...inspect.records.records import Location

__all__ = ["Block", "SourceText", "attribute_call", "mentions", "stored_names"]

_LIBRARIES = ("torch", "gradscope", "gs")
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that run one after the other.

    Attributes
    ----------
    function : str
        The innermost function that they are in; empty outside of functions.
    plain : bool
        Whether nothing around them, up to the function or file, may catch what they raise, or change the mode of
        recording: no ``with`` or ``try``, and no decorator of the function.
    loop : ast.For, ast.While or None
        The loop of which they are the body.
    """

    statements: Sequence[ast.stmt]
    function: str = ""
    plain: bool = True
    loop: ast.AST | None = None


class SourceText:
    r"""A source file, for the rules that look at it.

    Parameters
    ----------
    filename : str
        As it is called in findings.
    text : str
        What stands in it.

    Attributes
    ----------
    blocks : list of Block
        All blocks of statements, outer ones first.

    Raises
    ------
    SyntaxError, ValueError, RecursionError
        If it is no Python.

    Examples
    --------
    >>> source = SourceText("net.py", "from torch import nn as layers\nlayers.ReLU(True)")
    >>> call = source.blocks[0].statements[1].value
    >>> source.library_name(call.func)
    'nn.ReLU'
    """

    def __init__(self, filename: str, text: str) -> None:
        self.filename, self.text = filename, text
        self.tree = ast.parse(text)
        self.blocks = list(_blocks(Block(self.tree.body)))
        self._lines = text.splitlines()

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {library: library for library in _LIBRARIES}
        for block in self.blocks:
            for statement in block.statements:
                names.update(_imported(statement))
        return names

    def library_name(self, node: ast.AST) -> str:
        """Return what PyTorch or gradscope call what an expression names, without their own name; empty for others."""
        dotted = _dotted(node)
        first, _, rest = dotted.partition(".")
        library, _, path = self._names.get(first, "").partition(".")
        if library not in _LIBRARIES:
            return ""
        return ".".join(part for part in (path, rest) if part)

    def at(self, node: ast.expr | ast.stmt, block: Block) -> Location:
        """Return the place of an expression or a statement."""
        return Location(self.filename, node.lineno, block.function, self._lines[node.lineno - 1].strip())


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for statement in block.statements:
        yield from _inside(statement, block)


def _inside(statement: ast.stmt, block: Block) -> Iterator[Block]:
    if isinstance(statement, _FUNCTIONS):
        yield from _blocks(Block(statement.body, statement.name, plain=not statement.decorator_list))
        return
    if not isinstance(statement, _COMPOUND):
        return
    covers = isinstance(statement, (ast.With, ast.AsyncWith, ast.Try))
    loop = statement if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)) else None
    inner = replace(block, plain=block.plain and not covers, loop=loop)
    handlers = [handler.body for handler in getattr(statement, "handlers", ())]
    bodies = (getattr(statement, name, ()) for name in ("body", "orelse", "finalbody"))
    for body in (*bodies, *handlers):
        yield from _blocks(replace(inner, statements=body))


def _imported(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement imports, with what they are."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
    elif isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            yield alias.asname or alias.name, f"{module}.{alias.name}"


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def attribute_call(node: ast.AST, *names: str) -> ast.expr | None:
    """Return what a method is called of, where a node is a call of one of some names; else None.

    Examples
    --------
    >>> call = ast.parse("loss.mean().backward()", mode="eval").body
    >>> ast.unparse(attribute_call(call, "backward"))
    'loss.mean()'
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        return node.func.value
    return None


def stored_names(statement: ast.AST) -> tuple[str, ...]:
    """Return the names that a statement, or one inside of it, binds or deletes."""
    return _names_in(statement)[0]


def mentions(node: ast.AST, *words: str) -> bool:
    """Whether an attribute, a name or a keyword inside of a node is one of some words."""
    return not _names_in(node)[1].isdisjoint(words)


@functools.lru_cache(maxsize=1 << 12)  # several rules ask of the same statements
def _names_in(node: ast.AST) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return what is bound or deleted inside of a node, and all attributes, names and keywords there."""
    stored, words = [], set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            words.add(inner.id)
            if not isinstance(inner.ctx, ast.Load):
                stored.append(inner.id)
        elif isinstance(inner, ast.Attribute):
            words.add(inner.attr)
        elif isinstance(inner, ast.keyword | ast.arg) and inner.arg is not None:
            words.add(inner.arg)
    return tuple(stored), frozenset(words)
