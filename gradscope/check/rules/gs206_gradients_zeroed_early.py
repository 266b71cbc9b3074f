"""GS206: Gradients are set to zero between backward() and step()."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..static.source_rule import SourceRule
from ..static.statements import Block, SourceText, attribute_call

__all__ = ["GradientsZeroedEarly"]


class GradientsZeroedEarly(SourceRule):
    """Gradients are set to zero between backward() and step()."""

    code = "GS206"
    title = "gradients zeroed before they are used"
    severity = "silent-wrong"
    words = (".zero_grad(",)
    what = """
        zero_grad() throws away what backward() has computed. Right before step() it leaves nothing to update the
        parameters with, and nothing is learned.
        """
    bad = """
        model(x).sum().backward()
        optimizer.zero_grad()
        optimizer.step()
        """
    good = """
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield calls of zero_grad() that follow a backward() of the same block, and that step() follows at once."""
        for block in source.blocks:
            if block.plain:
                yield from self._in(source, block)

    def _in(self, source: SourceText, block: Block) -> Iterator[Finding]:
        computed: ast.stmt | None = None
        for statement, following in pairwise(block.statements):
            if _called(statement, "backward"):
                computed = statement
            zeroed = _called(statement, "zero_grad")
            if computed is not None and zeroed and _called(following, "step") == zeroed:
                yield Finding(
                    code=self.code,
                    message=f"`{zeroed}.zero_grad()` throws away the gradients that step() is about to use",
                    sites=sites(
                        ("source", source.at(statement, block), "zeroed here"),
                        ("made", source.at(computed, block), "computed here"),
                    ),
                    help="call zero_grad() before backward(), or after step()",
                )


def _called(statement: ast.stmt, method: str) -> str:
    """Return what a statement calls a method of, as it is written; empty where it is no such call."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    owner = None if value is None else attribute_call(value, method)
    return "" if owner is None else ast.unparse(owner)
