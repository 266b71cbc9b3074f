"""GS108: A gradient has been written, and another node gets the same tensor."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import sites
from ..findings.finding_records import Finding
from ..findings.source_fixes import written_at
from ..watching.violation_facts import GradientFacts

__all__ = ["SharedGradientChanged"]


class SharedGradientChanged(Rule):
    """A gradient has been written, and another node gets the same tensor."""

    code = "GS108"
    title = "shared gradient changed in place"
    severity = "silent-wrong"
    needs = (GradientFacts,)
    what = """
        A hook, or the backward of a custom Function, wrote a gradient that it was given, and another node of the
        same backward pass gets that very tensor: an addition, for one, hands its gradient on to both operands.
        The other branch's gradient is wrong, without an error. A hook should return a new gradient, which then
        takes the place of the old one on its own branch only.
        """
    bad = """
        a, b = w * 2, w * 3
        b.register_hook(lambda grad: grad.mul_(0.1))
        ((a + b) ** 2).sum().backward()
        """
    good = """
        a, b = w * 2, w * 3
        b.register_hook(lambda grad: grad * 0.1)
        ((a + b) ** 2).sum().backward()
        """

    def judge(self, facts: GradientFacts) -> Iterator[Finding]:
        """Yield the finding."""
        text, other = written_at(facts.written, facts.operator), facts.other
        looks = f"{facts.dtype} {list(facts.shape)}"
        way_out = f"compute a new gradient, and leave this one as it is: `return {text.name} * ...`"
        yield Finding(
            code=self.code,
            message=f"a gradient ({looks}) was changed in place, and {other} gets the same tensor",
            sites=sites(
                ("written", facts.written, f"written here by {facts.operator}, while backward runs"),
                ("read", facts.recorded, f"{other}, recorded here, computes with the new values"),
            ),
            node=other,
            help=way_out if text.name else "compute a new gradient, and leave the one that is given as it is",
        )
