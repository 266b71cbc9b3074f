"""GS111: A part of an expanded tensor has been written, and all of it has changed."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import sites
from ..findings.finding_records import Finding, TensorDescription
from ..watching.violation_facts import PartFacts

__all__ = ["ExpandedPartWritten"]


class ExpandedPartWritten(Rule):
    """A part of an expanded tensor has been written, and all of it has changed."""

    code = "GS111"
    title = "a part of an expanded tensor written"
    severity = "silent-wrong"
    needs = (PartFacts,)
    what = """
        expand() and broadcast_to() give a dimension more places without more memory: all of them lie at one address.
        An assignment to some of them changes them all. One to a row is carried out without a word, since the row by
        itself does not overlap, and values and gradients are then those of another program than the one that stands
        there. clone() gives each place an address of its own.
        """
    bad = """
        rows = gs.zeros(3).expand(4, 3)
        rows[0] = gs.ones(3)       # all four rows are ones now
        """
    good = """
        rows = gs.zeros(3).expand(4, 3).clone()
        rows[0] = gs.ones(3)
        """

    def judge(self, facts: PartFacts) -> Iterator[Finding]:
        """Yield the finding."""
        tensor = TensorDescription(facts.name, facts.shape, facts.dtype)
        size = facts.shape[facts.dim]
        yield Finding(
            code=self.code,
            message=f"{tensor} was expanded along dimension {facts.dim}: {facts.count} of its {size} places were to be "
            "written, and all have changed",
            sites=sites(("written", facts.location, f"written here, in all {size} places")),
            tensor=tensor,
            help=f"clone() {facts.name or 'it'} before this line",
        )
