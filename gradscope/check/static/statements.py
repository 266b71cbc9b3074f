"""The statements of a source file, block by block, and the names in them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...inspect.records.records import Location

__all__ = ["Block", "SourceText", "attribute_call", "mentions", "stored_names"]

_LIBRARIES = ("torch", "gradscope", "gs")
_FUNCTIONS = {ast.FunctionDef, ast.AsyncFunctionDef}
_LOOPS = {ast.For, ast.AsyncFor, ast.While}
_COVERS = {ast.With, ast.AsyncWith, ast.Try}
_COMPOUND = _LOOPS | _COVERS | {ast.If, ast.ClassDef}


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
        self.blocks: list[Block] = []
        _add_blocks(Block(self.tree.body), self.blocks)
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


def _add_blocks(block: Block, blocks: list[Block]) -> None:
    """Add a block, and then those inside of it."""
    blocks.append(block)
    for statement in block.statements:
        kind = type(statement)
        if kind in _FUNCTIONS:
            plain = not statement.decorator_list  # type: ignore[attr-defined]
            _add_blocks(Block(statement.body, statement.name, plain), blocks)  # type: ignore[attr-defined]
        elif kind in _COMPOUND:
            plain, loop = block.plain and kind not in _COVERS, statement if kind in _LOOPS else None
            for body in _bodies(statement):
                _add_blocks(Block(body, block.function, plain, loop), blocks)


def _bodies(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    yield from filter(None, (getattr(statement, name, ()) for name in ("body", "orelse", "finalbody")))
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


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


@functools.lru_cache(maxsize=4)  # a rule asks several things of one statement; more would keep the trees of files
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
