"""GS112: A result has been changed, which no version tells, before another operator read it."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import later_writes, same_line, sites, uncounted
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..watching.violation_facts import ResultFacts

__all__ = ["ResultChangedEarly"]


class ResultChangedEarly(Rule):
    """A result has been changed, which no version tells, before another operator read it."""

    code = "GS112"
    title = "a result changed before it is read"
    severity = "silent-wrong"
    opt_in = True
    explains = ("GS106",)  # where the same write has spoilt what a node has saved as well
    needs = (ResultFacts,)
    what = """
        What an operator computed was written through .data, or through a NumPy array of its memory, before another
        operator read it. Forward goes on with the new values; backward hands the gradient to the operator as if it had
        computed them, so that it is that of a function which is not the one that ran. Nothing that was saved is spoilt,
        and no version tells.

        Programs do it on purpose: a straight-through estimator is such a write. So this is looked for only where
        --select names it: --select GS112, or --select GS,GS112 for everything. Where the gradient is meant to pass by
        the change, h + (new - h).detach() says so, and is no finding.
        """
    bad = """
        h = layer(x)
        h.data.clamp_(-1, 1)       # the gradient of h passes as if nothing had been clamped
        loss = h.sum()
        """
    good = """
        h = layer(x).clamp(-1, 1)
        loss = h.sum()
        """

    def judge(self, facts: ResultFacts) -> Iterator[Finding]:
        """Yield the finding."""
        write = facts.writes[0] if facts.writes else None
        share = facts.shares[-1] if facts.shares else None
        where = None if write is None else write.location
        name = "" if write is None else written_at(where, write.operator).name
        tensor = TensorDescription(name, facts.shape, facts.dtype, facts.producer)
        handed = share.location if share is not None and not same_line(share.location, where) else None
        called = name or "it"
        yield Finding(
            code=self.code,
            message=f"{tensor} changed unnoticed, and {facts.reader} reads the new values: backward takes them for "
            "those that were computed",
            sites=sites(
                ("written", where, uncounted(write)),
                ("shared", handed, "" if share is None else f"its memory was handed out here by {share.how}"),
                ("made", facts.made, f"computed here by {facts.producer}"),
                ("read", facts.read, f"read here by {facts.reader}, with the new values"),
                *later_writes(facts.writes),
            ),
            tensor=tensor,
            node=facts.reader,
            help="compute the new values by an operator, without .data; if the gradient is to pass by the change, "
            f"write {called} + (new - {called}).detach()",
        )
