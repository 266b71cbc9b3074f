"""GS204: A grad mode is made and covers nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..static.source_rule import SourceRule
from ..static.statements import SourceText

__all__ = ["GradModeCoversNothing"]

_MODES = {f"{module}{mode}" for module in ("", "autograd.") for mode in ("no_grad", "enable_grad", "inference_mode")}


class GradModeCoversNothing(SourceRule):
    """A grad mode is made and covers nothing."""

    code = "GS204"
    title = "a grad mode that covers nothing"
    severity = "silent-wrong"
    words = ("no_grad(", "enable_grad(", "inference_mode(")
    patterns = (re.compile(r"^[ \t]*(?:\w+\.)*(?:no_grad|enable_grad|inference_mode)\(", re.MULTILINE),)
    what = """
        no_grad(), enable_grad() and inference_mode() return a context. Called as a statement it is thrown away, and
        what follows is recorded, or not, as before.
        """
    bad = """
        gs.no_grad()
        prediction = model(x)
        """
    good = """
        with gs.no_grad():
            prediction = model(x)
        """

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield statements that are such a call."""
        for block in source.blocks:
            for statement in block.statements:
                value = statement.value if isinstance(statement, ast.Expr) else None
                if not isinstance(value, ast.Call) or source.library_name(value.func) not in _MODES:
                    continue
                yield Finding(
                    code=self.code,
                    message=f"`{ast.unparse(value)}` covers nothing",
                    sites=sites(("source", source.at(statement, block), "the context is thrown away")),
                    help=f"write `with {ast.unparse(value)}:`, or set_grad_enabled() for all that follows",
                )
