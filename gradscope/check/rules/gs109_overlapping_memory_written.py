"""GS109: A tensor in which several elements lie at one address has been written in place."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import same_line, sites
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..watching.violation_facts import RefusedFacts

__all__ = ["OverlappingMemoryWritten"]


class OverlappingMemoryWritten(Rule):
    """A tensor in which several elements lie at one address has been written in place."""

    code = "GS109"
    title = "memory that overlaps itself written in place"
    needs = (RefusedFacts,)
    what = """
        expand() and broadcast_to() return views in which several elements lie at one address. A write of one would be
        a write of all of them, and the result would depend on the order in which elements are written, so it is
        refused where it stands. clone() gives each element an address of its own.
        """
    bad = """
        rows = gs.zeros(3).expand(2, 3)
        rows.add_(1)
        """
    good = """
        rows = gs.zeros(3).expand(2, 3).clone()
        rows.add_(1)
        """

    def judge(self, facts: RefusedFacts) -> Iterator[Finding]:
        """Yield the finding, where several elements lie at one address."""
        if not facts.overlaps:
            return
        text = written_at(facts.location, "")
        tensor = TensorDescription(text.name, facts.shape, facts.dtype)
        source = f" ({facts.view_operator})" if facts.view_operator else ""
        viewed = None if same_line(facts.viewed, facts.location) else facts.viewed
        out_of_place = f", or write `{text.replacement}`" if text.replacement else ""
        yield Finding(
            code=self.code,
            message=f"{tensor}, in which several elements lie at one address{source}, was written in place",
            sites=sites(("written", facts.location, "written here"), ("viewed", viewed, "the view was made here")),
            tensor=tensor,
            help=f"clone() {text.name or 'it'} before this line{out_of_place}",
        )
