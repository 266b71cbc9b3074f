"""GS104: A backward has gone through a graph that an earlier one had freed."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import same_line, sites
from ..findings.finding_records import Finding
from ..watching.violation_facts import FreedFacts

__all__ = ["FreedGraph"]


class FreedGraph(Rule):
    """A backward has gone through a graph that an earlier one had freed."""

    code = "GS104"
    title = "backward through a freed graph"
    needs = (FreedFacts,)
    what = """
        backward() frees what the nodes saved as soon as they have run. A second backward pass arrived at a node
        that an earlier one had freed. Either both passes are wanted (then add the losses, or keep the graph of
        the first with retain_graph=True), or the second was meant to end earlier: a hidden state carried from one
        iteration to the next still hangs on the graph of the iteration before.
        """
    bad = """
        for x in sequence:
            hidden = cell(x, hidden)           # hangs on the iteration before
            hidden.sum().backward()
        """
    good = """
        for x in sequence:
            hidden = cell(x, hidden.detach())  # starts a graph of its own
            hidden.sum().backward()
        """

    def judge(self, facts: FreedFacts) -> Iterator[Finding]:
        """Yield the finding."""
        again = facts.first is not None and same_line(facts.first, facts.read)
        yield Finding(
            code=self.code,
            message=f"backward went through {facts.node} a second time, after the first one had freed what it saved",
            sites=sites(
                ("read", facts.read, "second backward here"),
                ("freed", facts.first, "first backward, in an earlier iteration" if again else "first backward here"),
                ("saved", facts.saved, f"{facts.node} was recorded here"),
            ),
            node=facts.node,
            help=(
                "detach() what is carried from one iteration to the next, or pass retain_graph=True if both are wanted"
                if again
                else "add the losses and call backward() once, or pass retain_graph=True to the first"
            ),
        )
