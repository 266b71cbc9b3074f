"""GS202: A method stands there without the parentheses that call it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding, Fix
from ..static.source_rule import SourceRule
from ..static.statements import SourceText

__all__ = ["UncalledMethod"]

_METHODS = ("backward", "zero_grad", "zero_")


class UncalledMethod(SourceRule):
    """A method stands there without the parentheses that call it."""

    code = "GS202"
    title = "a method that is not called"
    severity = "silent-wrong"
    words = (".backward", ".zero_", ".step")
    patterns = (re.compile(r"\.(?:backward|zero_grad|zero_|step)[ \t]*(?:#.*)?$", re.MULTILINE),)
    what = """
        A statement that names a method and has no parentheses does nothing, without a word: no gradient is computed,
        none is set to zero, no parameter moves.
        """
    bad = """
        optimizer.zero_grad
        model(x).sum().backward()
        """
    good = """
        optimizer.zero_grad()
        model(x).sum().backward()
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield statements that are such a name."""
        for block in source.blocks:
            for statement in block.statements if block.plain else ():
                value = statement.value if isinstance(statement, ast.Expr) else None
                if not isinstance(value, ast.Attribute) or not _does_something(value):
                    continue
                end = value.end_lineno or value.lineno, (value.end_col_offset or 0) + 1
                yield Finding(
                    code=self.code,
                    message=f"`{ast.unparse(value)}` is not called",
                    sites=sites(("source", source.at(statement, block), "does nothing")),
                    help=f"write `{ast.unparse(value)}()`",
                    fix=Fix(source.filename, end, end, "()"),
                )


def _does_something(value: ast.Attribute) -> bool:
    if value.attr in _METHODS:
        return True
    owner = ast.unparse(value.value).rpartition(".")[2]
    return value.attr == "step" and ("optim" in owner or "scheduler" in owner)
