"""D306: A loss compares each prediction with all targets."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Rule

__all__ = ["BroadcastLoss"]


class BroadcastLoss(Rule):
    """A loss compares each prediction with all targets."""

    code = "D306"
    title = "predictions and targets that broadcast"
    severity = "silent-wrong"
    needs = (EXAMINATION,)
    kind = "broadcast"
    what = """
        Predictions in a column, of shape (n, 1), and targets in a row, of shape (n,), broadcast to (n, n): the loss
        compares each prediction with all targets, and its best answer is their mean. Nothing raises, and the loss
        falls for a while.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        targets = gs.ones(8)
        ((model(gs.ones(8, 2)) - targets) ** 2).mean().backward()      # (8, 1) - (8,) is (8, 8)
        """
    good = """
        model = gs.nn.Linear(2, 1)
        targets = gs.ones(8)
        ((model(gs.ones(8, 2)).squeeze(1) - targets) ** 2).mean().backward()
        """
    topic = "not-learning"

    def judge(self, examined: Examination) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for term in examined.terms:
            if term.kind == self.kind:
                yield str(term), term.location
