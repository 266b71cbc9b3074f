"""D311: Graphs grow from one iteration to the next."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...memory.graph_growth import Growth
from ...program_facts import GROWTH
from ...rule_registry import Rule

__all__ = ["GraphGrowth"]


class GraphGrowth(Rule):
    """Graphs grow from one iteration to the next."""

    code = "D311"
    title = "a graph that grows with every iteration"
    severity = "warning"
    needs = (GROWTH,)
    certainty = "likely"
    kind = "growth"
    what = """
        The graph of each iteration is longer than that of the one before, or graphs of earlier iterations are kept: a
        loss that is summed up or put into a list holds the graph that computed it. Memory grows until there is none.
        """
    bad = """
        w = gs.ones(3, requires_grad=True)
        losses = []
        for _ in range(8):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss)                # keeps the graph too
        """
    good = """
        w = gs.ones(3, requires_grad=True)
        losses = []
        for _ in range(8):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss.item())
        """
    topic = "memory"

    def judge(self, growth: Growth) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        if growth:
            yield str(growth), growth.location
