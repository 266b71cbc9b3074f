"""D317: Many units of a rectifier are zero for the whole batch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...examination import Examination
from ...finding_limits import Limits
from ...flow.dead_units import DeadUnits
from ...program_facts import EXAMINATION, LIMITS
from ...rule_registry import Found, Rule

__all__ = ["DeadRectifier"]


class DeadRectifier(Rule):
    """Many units of a rectifier are zero for the whole batch."""

    code = "D317"
    title = "units that are dead"
    severity = "warning"
    needs = (EXAMINATION, LIMITS)
    kind = "gradient flow"
    what = """
        More than half of the units of a ReLU are zero for every example of the latest batches. They get no gradient,
        and nothing can bring them back; a large learning rate or a bias far below zero does that.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 8), gs.nn.ReLU(), gs.nn.Linear(8, 1))
        with gs.no_grad():
            model[0].bias.copy_(gs.tensor([-100.0] * 7 + [2.0]))
        model(gs.ones(2, 3)).sum().backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 8), gs.nn.ReLU(), gs.nn.Linear(8, 1))
        with gs.no_grad():
            model[0].bias.fill_(2.0)
        model(gs.ones(2, 3)).sum().backward()
        """
    topic = "vanishing"

    def judge(self, examined: Examination, limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        told = {cause.location for zero in examined.zeros for cause in zero.causes}
        for unit in examined.rectifiers:
            spread = limits.dead_beyond_chance * math.sqrt(unit.units) / 2
            enough = min(unit.units, unit.units * limits.dead + spread)
            if unit.dead >= enough and unit.location not in told:
                module = unit.after or unit.module
                yield Found(f"{unit}{_why(unit)}", unit.location, (module,) if module else ())


def _why(unit: DeadUnits) -> str:
    biases = f"; their biases{f' in `{unit.after}`' if unit.after else ''} are {unit.bias:.3g} on average"
    help = "Lower the learning rate, start with biases of 0, or use LeakyReLU or GELU, which pass a gradient below 0."
    return f"{biases if unit.bias is not None else ''}\n  {help}"
