"""D308: Parameters get gradients, and no optimizer holds them."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...optimizers.optimizer_updates import Updates
from ...program_facts import UPDATES
from ...rule_registry import Rule

__all__ = ["ParametersWithoutOptimizer"]


class ParametersWithoutOptimizer(Rule):
    """Parameters get gradients, and no optimizer holds them."""

    code = "D308"
    title = "parameters that no optimizer holds"
    severity = "warning"
    needs = (UPDATES,)
    kind = "updates"
    what = """
        A backward fills the gradient of a parameter, optimizers step, and none of them holds it. Typical are layers
        in a plain list, which parameters() does not give, and a layer that was replaced after the optimizer had been
        made.
        """
    bad = """
        body, head = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
        optimizer = gs.optim.SGD(body.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            head.zero_grad()
            head(body(gs.ones(4, 2))).sum().backward()
            optimizer.step()
        """
    good = """
        body, head = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
        optimizer = gs.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            head(body(gs.ones(4, 2))).sum().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, updates: Updates) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for entry in updates.unheld:
            yield str(entry), entry.location
