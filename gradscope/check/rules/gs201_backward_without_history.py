"""GS201: backward() is called on what no operator has computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..static.source_rule import SourceRule
from ..static.statements import SourceText, attribute_call, mentions, stored_names

__all__ = ["BackwardWithoutHistory"]

_CUTTING = ("detach", "item", "tolist", "numpy")


class BackwardWithoutHistory(SourceRule):
    """backward() is called on what no operator has computed."""

    code = "GS201"
    title = "backward of what has no history"
    words = (".backward(",)
    what = """
        detach() and .data return a tensor without history, item(), tolist() and numpy() no tensor at all. backward()
        on what they return has nowhere to go, and raises.
        """
    bad = """
        loss = criterion(model(x), y).detach()
        loss.backward()
        """
    good = """
        loss = criterion(model(x), y)
        loss.backward()
        total = loss.detach()
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield calls of backward() on what has just been cut off."""
        for block in source.blocks:
            cut: dict[str, tuple[ast.stmt, str]] = {}
            for statement in block.statements if block.plain else ():
                called = attribute_call(statement.value, "backward") if isinstance(statement, ast.Expr) else None
                if called is not None:
                    name = called.id if isinstance(called, ast.Name) else ""
                    cause, how = (None, _cutting(called)) if not name else cut.get(name, (None, ""))
                    if how:
                        yield Finding(
                            code=self.code,
                            message=f"backward() of what {how} has cut off from its history",
                            sites=sites(
                                ("source", source.at(statement, block), "nothing leads back from here"),
                                ("made", None if cause is None else source.at(cause, block), f"{how} cuts it off here"),
                            ),
                            help=f"call backward() first, and {how} on its own afterwards",
                        )
                for name in [name for name in cut if mentions(statement, "requires_grad", "requires_grad_")]:
                    del cut[name]
                for name in stored_names(statement) if cut else ():
                    cut.pop(name, None)
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    how = _cutting(statement.value)
                    if how and len(statement.targets) == 1:
                        cut[statement.targets[0].id] = statement, how


def _cutting(value: ast.expr) -> str:
    """Return what an expression cuts history off by, as it is written; empty where it does not."""
    if isinstance(value, ast.Attribute) and value.attr == "data" and isinstance(value.value, ast.Call):
        return ".data"
    if attribute_call(value, *_CUTTING) is not None and isinstance(value, ast.Call) and not value.args:
        return f"{value.func.attr}()"  # type: ignore[attr-defined]
    return ""
