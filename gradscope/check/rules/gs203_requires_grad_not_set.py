"""GS203: A statement that looks as if it set requires_grad does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..static.source_rule import SourceRule
from ..static.statements import Block, SourceText, attribute_call

__all__ = ["RequiresGradNotSet"]

_MISSPELT = {"require_grad", "requires_grads", "require_grads", "requiresgrad", "requiers_grad", "requires_gradient"}


class RequiresGradNotSet(SourceRule):
    """A statement that looks as if it set requires_grad does not."""

    code = "GS203"
    title = "requires_grad that is not set"
    severity = "silent-wrong"
    words = (".requi",)
    patterns = (re.compile(r"\.requires_grad[ \t]*==|\.(?:" + "|".join(sorted(_MISSPELT)) + r")\b"),)
    what = """
        A comparison that is a statement sets nothing, and neither does an attribute of another name, which Python makes
        without a word: what was to be frozen is trained, or the other way round.
        """
    bad = """
        for p in layer.parameters():
            p.require_grad = False
        layer(x).sum().backward()
        """
    good = """
        for p in layer.parameters():
            p.requires_grad = False
        (layer(x) * w).sum().backward()
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield comparisons, and parameters that get an attribute of another name."""
        for block in source.blocks:
            for statement in block.statements:
                message = _compared(statement) if block.plain else ""
                message = message or _misspelt(statement, block)
                if message:
                    yield Finding(
                        code=self.code,
                        message=message,
                        sites=sites(("source", source.at(statement, block), "sets nothing")),
                        help="write `.requires_grad = `, or call requires_grad_()",
                    )


def _compared(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(value, ast.Compare) or not isinstance(value.ops[0], ast.Eq):
        return ""
    left = value.left
    if isinstance(left, ast.Attribute) and left.attr == "requires_grad" and len(value.ops) == 1:
        return f"`{ast.unparse(value)}` compares, and sets nothing"
    return ""


def _misspelt(statement: ast.stmt, block: Block) -> str:
    """Return what is wrong with an assignment to an attribute of a parameter, over which the loop around it goes."""
    if not isinstance(statement, ast.Assign) or not isinstance(block.loop, ast.For):
        return ""
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr not in _MISSPELT or not isinstance(target.value, ast.Name):
        return ""
    names = block.loop.target.elts if isinstance(block.loop.target, ast.Tuple) else [block.loop.target]
    loops_over_parameters = attribute_call(block.loop.iter, "parameters", "named_parameters") is not None
    if loops_over_parameters and isinstance(names[-1], ast.Name) and names[-1].id == target.value.id:
        return f"a parameter has no attribute `{target.attr}`: its name is requires_grad"
    return ""
