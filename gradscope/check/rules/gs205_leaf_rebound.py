"""GS205: A loop rebinds a leaf to what it computes from its gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..static.source_rule import SourceRule
from ..static.statements import SourceText, attribute_call, mentions, stored_names

__all__ = ["LeafRebound"]

_KEEPS_A_GRADIENT = ("requires_grad", "requires_grad_", "retain_grad", "Variable", "Parameter")


class LeafRebound(SourceRule):
    """A loop rebinds a leaf to what it computes from its gradient."""

    code = "GS205"
    title = "a leaf that its own update replaces"
    words = (".grad",)
    patterns = re.compile(r"\.grad\b"), re.compile(r"backward\b")
    what = """
        The result of `w - lr * w.grad` is another tensor than w: one that an operator has computed, whose .grad stays
        None, or under no_grad() one that does not require grad. In the next round of the loop there is no gradient to
        update it with, and the program raises.
        """
    bad = """
        for _ in range(2):
            ((w - 1) ** 2).sum().backward()
            w = w - lr * w.grad
        """
    good = """
        for _ in range(2):
            ((w - 1) ** 2).sum().backward()
            with gs.no_grad():
                w -= lr * w.grad
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield such assignments in loops that call backward()."""
        for block in source.blocks:
            loop = block.loop
            if loop is None or not block.plain or not any(map(_calls_backward, block.statements)):
                continue
            if mentions(loop, *_KEEPS_A_GRADIENT):
                continue
            stored = list(stored_names(loop))
            for statement in _with_covered(block.statements):
                name = _updated(statement)
                if name and stored.count(name) == 1:
                    yield Finding(
                        code=self.code,
                        message=f"`{name}` is replaced by its own update, and has no gradient in the next round",
                        sites=sites(("source", source.at(statement, block), "another tensor takes its name")),
                        help=f"write into it, under no_grad(): `{name} -= ...`",
                    )


def _calls_backward(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and attribute_call(statement.value, "backward") is not None


def _with_covered(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        yield from statement.body if isinstance(statement, ast.With) else (statement,)


def _updated(statement: ast.stmt) -> str:
    """Return the name that a statement binds to the result of an operator on it and on its gradient; empty for none."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return ""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return ""
    reads = (node for node in ast.walk(statement.value) if isinstance(node, ast.Attribute) and node.attr == "grad")
    own = any(isinstance(node.value, ast.Name) and node.value.id == target.id for node in reads)
    return target.id if own else ""
