"""D326: Weight decay takes the weights away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ....records.records import Location
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS
from ...rule_registry import Rule
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun

__all__ = ["ExcessiveDecay"]


class ExcessiveDecay(Rule):
    """Weight decay takes the weights away."""

    code = "D326"
    title = "weight decay that takes the weights away"
    severity = "warning"
    needs = (UPDATE_SIZES, LIMITS)
    kind = "updates"
    what = """
        A step takes a share of every weight away, the learning rate times the weight decay. Where that is more than a
        few hundredths, the weights are gone after some dozens of steps, whatever the gradients say.
        """
    bad = """
        model = gs.nn.Linear(4, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01, weight_decay=30.0)
        for _ in range(8):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(4, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01, weight_decay=0.01)
        for _ in range(8):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, runs: Iterable[OptimizerRun], limits: Limits) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for run in runs:
            taken = max(run.rates, default=0.0) * run.decay
            if taken < limits.decay or len(run.samples) < 2 or run.samples[-1].size > run.samples[0].size / 2:
                continue
            text = (
                f"{run.name}{at(run.location)} takes {taken:.0%} of every weight away in a step (learning rate "
                f"{max(run.rates):.2g}, weight decay {run.decay:.2g}): their norm fell from {run.samples[0].size:.2g} "
                f"to {run.samples[-1].size:.2g} in {count(len(run.rates), 'step')}\n  Lower the weight decay."
            )
            yield text, run.location
