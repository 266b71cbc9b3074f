"""D315: Gradients explode on their way."""

from __future__ import annotations

from collections.abc import Iterator

from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Found, Rule

__all__ = ["ExplodingGradients"]


class ExplodingGradients(Rule):
    """Gradients explode on their way."""

    code = "D315"
    title = "gradients that explode"
    severity = "warning"
    needs = (EXAMINATION,)
    certainty = "likely"
    kind = "gradient flow"
    what = """
        Gradients become larger from layer to layer, or are so large beside the weights that one step of the optimizer
        throws those away. The finding names the operators that do most of it.
        """
    bad = """
        layer = gs.nn.Linear(8, 8, bias=False)
        with gs.no_grad():
            layer.weight.fill_(1.0)            # each time multiplies by 8
        hidden = gs.ones(1, 8)
        for _ in range(10):
            hidden = layer(hidden)
        hidden.sum().backward()
        """
    good = """
        layer = gs.nn.Linear(8, 8, bias=False)
        with gs.no_grad():
            layer.weight.fill_(1.0 / 8)
        hidden = gs.ones(1, 8)
        for _ in range(10):
            hidden = layer(hidden)
        hidden.sum().backward()
        """
    topic = "vanishing"

    def judge(self, examined: Examination) -> Iterator[Found]:
        """Yield what is found, and where."""
        for trouble in examined.trouble:
            if trouble.verdict == "exploding":
                yield Found(str(trouble), trouble.location, trouble.parameters, trouble.since)
