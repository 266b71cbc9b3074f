"""D324: Steps move the weights by more than their own size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS
from ...rule_registry import Found, Rule
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun

__all__ = ["OversizedUpdates"]

# Optimizers that divide by the size of the gradient: a factor in the loss does not change their steps.
_NORMALISING = {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Rprop", "Adafactor"}


class OversizedUpdates(Rule):
    """Steps move the weights by more than their own size."""

    code = "D324"
    title = "steps that move the weights by more than their size"
    severity = "warning"
    needs = (UPDATE_SIZES, LIMITS)
    kind = "updates"
    explains = ("D302", "D315", "D316", "D317")
    what = """
        Each of its first steps moves the weights by more than their own norm, and the steps do not become smaller:
        nothing of how the weights were initialised is left. The learning rate is too large, or the loss is: a sum over
        a batch has as many times the gradient of a mean as the batch has elements.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(4, 32), gs.nn.Tanh(), gs.nn.Linear(32, 1))
        optimizer = gs.optim.Adam(model.parameters(), lr=2.0)
        for _ in range(4):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(4, 32), gs.nn.Tanh(), gs.nn.Linear(32, 1))
        optimizer = gs.optim.Adam(model.parameters(), lr=2e-3)
        for _ in range(4):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, runs: Iterable[OptimizerRun], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for run in runs:
            first = list(
                itertools.takewhile(math.isfinite, (sample.ratio for sample in run.samples[: limits.first_steps]))
            )
            # Weights that start far from where they belong get there by large steps, which become smaller.
            if (
                len(first) < limits.finite_steps
                or min(first) <= limits.large_update
                or first[-1] < first[0] * limits.settling
            ):
                continue
            sums = [] if run.name in _NORMALISING else list(run.sums)
            text = (
                f"each of the first {len(first)} steps of {run.name}{at(run.location)} moved the weights by more than "
                f"{min(first):.2g} times the norm that they had at first (1e-3 is usual)"
            )
            if sums:
                text += (
                    f": the loss{at(sums[0].location)} is a sum over {sums[0].elements} elements, whose gradient is as "
                    'many times that of their mean\n  Use the mean (reduction="mean"), or divide the learning rate.'
                )
                yield Found(text, sums[0].location, run.parameters)
            elif run.added > 1 and run.name not in _NORMALISING:
                text += (
                    f": each uses the gradients of {run.added} backward passes, which add up\n"
                    f"  Divide the loss by {run.added} before backward(), or the learning rate."
                )
                yield Found(text, run.location, run.parameters)
            else:
                smaller = run.rates[0] / first[0] / 100
                text += (
                    f": its learning rate is {run.rates[0]:.2g}\n"
                    f"  Try {smaller:.1g}, for steps of a hundredth of that norm."
                )
                yield Found(text, run.location, run.parameters)
