"""D325: Steps hardly move the weights."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS
from ...rule_registry import Found, Rule
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun

__all__ = ["UndersizedUpdates"]

_CLIP = "  Clip at a norm that most gradients are below: log what clip_grad_norm_() returns."


class UndersizedUpdates(Rule):
    """Steps hardly move the weights."""

    code = "D325"
    title = "steps that hardly move the weights"
    severity = "warning"
    needs = (UPDATE_SIZES, LIMITS)
    kind = "updates"
    what = """
        Every step moves the weights by less than a millionth of their norm: at that pace nothing is learned in a
        hundred thousand steps. The learning rate is too small for the gradients, or clipping leaves too little of them.
        """
    bad = """
        model = gs.nn.Linear(4, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=1e-9)
        for _ in range(8):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Linear(4, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=1e-2)
        for _ in range(8):
            optimizer.zero_grad()
            (model(gs.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, runs: Iterable[OptimizerRun], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for run in runs:
            ratios = [sample.ratio for sample in run.samples]
            warms_up = any(later > earlier for earlier, later in zip(run.rates, run.rates[1:]))
            if len(ratios) < limits.watched_steps or warms_up:
                continue
            clipped = statistics.median(sample.clipped for sample in run.samples)
            is_clipped = clipped < limits.clipped
            least = limits.small_clipped_update if is_clipped else limits.small_update
            if not max(ratios) < least:
                continue
            why = (
                f"clipping leaves {clipped:.2g} of the gradients' norm\n{_CLIP}"
                if is_clipped
                else _rate_of(run, limits.usual_rate)
            )
            yield Found(
                f"no step of {run.name}{at(run.location)} {_moved(max(ratios))} (1e-3 is usual): {why}",
                run.location,
                run.parameters,
            )


def _moved(ratio: float) -> str:
    return f"moved the weights by more than {ratio:.1e} times their norm" if ratio else "changed a weight at all"


def _rate_of(run: OptimizerRun, usual: float) -> str:
    """Say what its learning rate is, and who has made it so small."""
    if run.planned > run.rates[0]:
        return (
            f"its learning rate is {run.rates[0]:.2g} at all of {len(run.rates)} steps, to which a schedule has "
            f"brought the {run.planned:.2g} it was given\n  Look at the factor that the schedule computes."
        )
    if run.rates[0] >= usual:
        return (
            f"its learning rate is {run.rates[0]:.2g}, so it is the gradients that are next to zero\n"
            "  Look at what the loss compares: a target that the model itself gives has no gradient."
        )
    return f"its learning rate is {run.rates[0]:.2g}\n  Raise it: Adam is mostly given 1e-3, SGD 1e-2 to 1e-1."
