"""D323: A schedule has taken the learning rate away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....output.number_format import count
from ....records.records import Location
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS
from ...rule_registry import Rule
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun

__all__ = ["FadedLearningRate"]


class FadedLearningRate(Rule):
    """A schedule has taken the learning rate away."""

    code = "D323"
    title = "a learning rate that a schedule has taken away"
    severity = "warning"
    needs = (UPDATE_SIZES, LIMITS)
    kind = "updates"
    what = """
        For half of the steps or more the learning rate is less than a thousandth of what it was. A schedule that counts
        epochs and is stepped for every batch does that within the first epoch: nothing raises, and the loss stays where
        it is.
        """
    bad = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        scheduler = gs.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
        for epoch in range(3):
            for batch in range(4):
                optimizer.zero_grad()
                model(gs.randn(8, 2)).square().mean().backward()
                optimizer.step()
                scheduler.step()
        """
    good = """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        scheduler = gs.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
        for epoch in range(3):
            for batch in range(4):
                optimizer.zero_grad()
                model(gs.randn(8, 2)).square().mean().backward()
                optimizer.step()
            scheduler.step()
        """
    topic = "not-learning"

    def judge(self, runs: Iterable[OptimizerRun], limits: Limits) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for run in runs:
            faded = [rate for rate in run.rates if rate < limits.faded_rate * max(run.rates)]
            if len(run.rates) < limits.watched_steps or 2 * len(faded) < len(run.rates):
                continue
            by = "".join(
                f"\n  {name} had been stepped {count(times, 'time')} by the last" for name, times in run.schedules
            )
            text = (
                f"the learning rate of {run.name}{at(run.location)} fell from {max(run.rates):.2g} to "
                f"{run.rates[-1]:.2g}: {len(faded)} of {count(len(run.rates), 'step')} had next to none{by}\n"
                "  Step a schedule of epochs once an epoch, or give it the number of steps."
            )
            yield text, run.location
