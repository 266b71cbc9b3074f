"""D358: The targets lie where the last function of the model does not come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy

from ....records.records import Location
from ...explanation import at
from ...finding_limits import Limits
from ...nan.nan_producers import saved_values
from ...program_facts import LIMITS, Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...training.graph_calls import GraphCall, GraphCalls
from ...watch import Watch

__all__ = ["UnreachableTargets"]

_LOSSES = {"MseLoss": "mse_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss"}
_ENDS = {"Sigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0)}


class OutOfReach(NamedTuple):
    """Targets of a loss that the function before it does not come to.

    Attributes
    ----------
    share : float
        Of the targets those that lie beyond an end by more than half of what is between the two.
    low, high : float
        The least and the largest target.
    """

    loss: str
    function: str
    share: float
    low: float
    high: float
    made: Location | None
    location: Location | None
    sighting: Sighting


class TargetWatch(Watch):
    """Compares the targets of losses with what the function before it can give."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, OutOfReach] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        calls = GraphCalls(self._adapter, links)
        for loss in calls:
            # What a loss inside of a compiled region has saved is not known before it runs.
            source = calls.source_of(loss) if loss.inner is None and loss.name in _LOSSES else None
            if source is None or source.name not in _ENDS or calls.location(loss) in self.found:
                continue
            target = saved_values(self._adapter, loss.link.node).get("target")
            if target is not None and target.numel():
                leaves = leaves_behind(self._adapter, links, self._adapter.key(loss.link.node))
                values = numpy.asarray(self._adapter.to_host(target), dtype=numpy.float64)
                self._compare(calls, loss, source, values, leaves)

    def _compare(self, calls: GraphCalls, loss: GraphCall, source: GraphCall, targets: Any, leaves: list[Any]) -> None:
        low, high = _ENDS[source.name]
        beyond = (high - low) / 2
        share = float(numpy.mean((targets < low - beyond) | (targets > high + beyond)))
        if share <= self._program.limits.out_of_reach:
            return
        lines = calls.location(source), calls.location(loss)
        ends = float(targets.min()), float(targets.max())
        found = OutOfReach(_LOSSES[loss.name], source.name, share, *ends, *lines, self._program.sighting(leaves))
        self.found[found.location] = found


UNREACHABLE = Fact("unreachable targets", TargetWatch, lambda watch: tuple(watch.found.values()), backward=True)


class UnreachableTargets(Rule):
    """The targets lie where the last function of the model does not come to."""

    code = "D358"
    title = "targets that the last function cannot reach"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (UNREACHABLE, LIMITS)
    kind = "loss"
    explains = ("D314", "D316", "D325", "D331")
    what = """
        A sigmoid and a softmax give numbers between 0 and 1, tanh between -1 and 1. Where the targets of a regression
        lie outside, the model goes to the end of the function and stays there: its derivative is 0, and the loss stays
        what it is.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 1), gs.nn.Sigmoid())
        prices = 20 + gs.randn(8, 1)
        gs.nn.functional.mse_loss(model(gs.randn(8, 3)), prices).backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 1), gs.nn.Sigmoid())
        shares = gs.rand(8, 1)
        gs.nn.functional.mse_loss(model(gs.randn(8, 3)), shares).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[OutOfReach], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            low, high = _ENDS[one.function]
            text = (
                f"{one.loss}{at(one.location)} compares the result of the {one.function.lower()}"
                f"{at(one.made, one.location)}, which lies between {low:g} and {high:g}, with targets between "
                f"{one.low:.4g} and {one.high:.4g}: {one.share:.0%} of them are far beyond\n"
                "  Leave the last layer linear, or scale the targets."
            )
            yield Found(text, one.made, *one.sighting)
