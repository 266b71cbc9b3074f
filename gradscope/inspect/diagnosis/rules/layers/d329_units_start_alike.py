"""D329: The units of a layer start alike, and stay so."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...examination import named
from ...explanation import at
from ...rule_registry import Found, Rule
from ...training.initial_weights import INITIAL_WEIGHTS, InitialWeights

__all__ = ["UnitsStartAlike"]


class UnitsStartAlike(Rule):
    """The units of a layer start alike, and stay so."""

    code = "D329"
    title = "units that start alike"
    severity = "silent-wrong"
    needs = (INITIAL_WEIGHTS,)
    certainty = "likely"
    kind = "initialisation"
    explains = ("D316", "D317")
    what = """
        All units of a layer have the same weights, and their gradients are the same: each step changes them alike, and
        the layer is as good as one unit, whatever its width. Weights that were filled with one number, zero among them,
        do that, where the layer after them does not tell the units apart either.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 8, bias=False), gs.nn.Tanh(), gs.nn.Linear(8, 1))
        for layer in (model[0], model[2]):
            gs.nn.init.constant_(layer.weight, 0.1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (model(gs.randn(8, 3)) - 1).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 8, bias=False), gs.nn.Tanh(), gs.nn.Linear(8, 1))
        for layer in (model[0], model[2]):
            gs.nn.init.xavier_uniform_(layer.weight)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (model(gs.randn(8, 3)) - 1).square().mean().backward()
            optimizer.step()
        """
    topic = "not-learning"

    def judge(self, weights: InitialWeights) -> Iterator[Found]:
        """Yield what is found, and where."""
        by_line: dict[Location | None, list[tuple[str, int]]] = {}
        for alike in weights.alike:
            by_line.setdefault(alike.written, []).append((alike.name, alike.units))
        for line, found in by_line.items():
            units = " and ".join(str(units) for _, units in found)
            text = (
                f"the rows of {named([name for name, _ in found])} ({units} units) are the same{at(line)}, and so are "
                "those of the gradient: the units stay alike for ever\n"
                "  Initialise with random numbers: kaiming_uniform_(), xavier_uniform_()."
            )
            yield Found(text, line, tuple(name for name, _ in found))
