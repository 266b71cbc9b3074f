"""D310: An optimizer has never stepped, and its gradients were cleared."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...optimizers.optimizer_updates import Updates
from ...program_facts import UPDATES
from ...rule_registry import Rule

__all__ = ["UnsteppedOptimizer"]


class UnsteppedOptimizer(Rule):
    """An optimizer has never stepped, and its gradients were cleared."""

    code = "D310"
    title = "an optimizer that never steps"
    severity = "warning"
    needs = (UPDATES,)
    certainty = "likely"
    kind = "updates"
    what = """
        Backward passes filled the gradients of what an optimizer holds, they were cleared, and the optimizer has
        never stepped: step() is missing, or stands behind a condition that is never true.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.ones(4, 2)).sum().backward()
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
        for entry in updates.idle:
            yield str(entry), entry.location
