"""D309: Gradients were cleared before an optimizer used them."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...optimizers.optimizer_updates import Updates
from ...program_facts import UPDATES
from ...rule_registry import Rule

__all__ = ["DiscardedGradients"]


class DiscardedGradients(Rule):
    """Gradients were cleared before an optimizer used them."""

    code = "D309"
    title = "gradients that no optimizer used"
    severity = "warning"
    needs = (UPDATES,)
    kind = "updates"
    what = """
        Gradients were cleared before an optimizer had stepped with them: zero_grad() stands between backward() and
        step(), or in an inner loop that was to add gradients up. The step then has none, or those of the last
        backward alone.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(gs.ones(4, 2)).sum().backward()
            optimizer.zero_grad()              # nothing is left to step with
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
    topic = "not-learning"

    def judge(self, updates: Updates) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for entry in updates.unused:
            yield str(entry), entry.location
