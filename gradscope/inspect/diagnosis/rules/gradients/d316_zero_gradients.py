"""D316: The gradient of parameters is zero, for a reason that is known."""

from __future__ import annotations

from collections.abc import Iterator

from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Found, Rule

__all__ = ["ZeroGradients"]


class ZeroGradients(Rule):
    """The gradient of parameters is zero, for a reason that is known."""

    code = "D316"
    title = "gradients that are zero"
    severity = "warning"
    needs = (EXAMINATION,)
    kind = "gradient flow"
    explains = ("D325",)
    what = """
        A parameter has a gradient, and all of it is zero: a step function, a clamp outside its range, a ReLU without
        an active input lies on every way to the loss. The finding names the operator whose derivative is zero.
        """
    bad = """
        layer = gs.nn.Linear(3, 4)
        layer(gs.ones(2, 3)).round().sum().backward()
        """
    good = """
        layer = gs.nn.Linear(3, 4)
        y = layer(gs.ones(2, 3))
        (y + (y.round() - y).detach()).sum().backward()        # straight through
        """
    topic = "vanishing"

    def judge(self, examined: Examination) -> Iterator[Found]:
        """Yield what is found, and where."""
        for zero in examined.zeros:
            yield Found(str(zero), zero.causes[0].location, zero.names, zero.since)
