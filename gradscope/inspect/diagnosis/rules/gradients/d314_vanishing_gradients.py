"""D314: Gradients vanish on their way."""

from __future__ import annotations

from collections.abc import Iterator

from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Found, Rule

__all__ = ["VanishingGradients"]


class VanishingGradients(Rule):
    """Gradients vanish on their way."""

    code = "D314"
    title = "gradients that vanish"
    severity = "warning"
    needs = (EXAMINATION,)
    certainty = "likely"
    kind = "gradient flow"
    what = """
        Gradients become smaller from layer to layer, until the first layers get next to none: each derivative
        multiplies them, and those of saturated sigmoid and tanh are small. The finding names the operators that do
        most of it.
        """
    bad = """
        layers = [layer for _ in range(10) for layer in (gs.nn.Linear(8, 8), gs.nn.Sigmoid())]
        model = gs.nn.Sequential(*layers, gs.nn.Linear(8, 1))
        model(gs.ones(2, 8)).sum().backward()
        """
    good = """
        layers = [layer for _ in range(10) for layer in (gs.nn.Linear(32, 32), gs.nn.LayerNorm(32), gs.nn.GELU())]
        model = gs.nn.Sequential(*layers, gs.nn.Linear(32, 1))
        model(gs.ones(2, 32)).sum().backward()
        """
    topic = "vanishing"

    def judge(self, examined: Examination) -> Iterator[Found]:
        """Yield what is found, and where."""
        for trouble in examined.trouble:
            if trouble.verdict == "vanishing":
                yield Found(str(trouble), trouble.location, trouble.parameters, trouble.since)
