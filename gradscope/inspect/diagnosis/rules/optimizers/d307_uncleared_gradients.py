"""D307: A backward adds to gradients with which an optimizer has stepped."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...optimizers.optimizer_updates import Updates
from ...program_facts import UPDATES
from ...rule_registry import Rule

__all__ = ["UnclearedGradients"]


class UnclearedGradients(Rule):
    """A backward adds to gradients with which an optimizer has stepped."""

    code = "D307"
    title = "gradients that were never cleared"
    severity = "silent-wrong"
    needs = (UPDATES,)
    kind = "updates"
    what = """
        backward() adds to .grad, and an optimizer has stepped with what was there: each step takes the gradients of
        all iterations before as well. Nothing raises; the loss swings, or runs away.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(gs.ones(4, 2)).sum().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.ones(4, 2)).sum().backward()
            optimizer.step()
        """
    topic = "accumulation"

    def judge(self, updates: Updates) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for entry in updates.stale:
            yield str(entry), entry.location
