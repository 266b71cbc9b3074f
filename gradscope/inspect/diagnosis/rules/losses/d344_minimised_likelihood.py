"""D344: A loss is the likelihood itself, and falls where the model becomes worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....records.records import Location, operator_name
from ...explanation import at
from ...flow.reshaping_operators import RESHAPING
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun
from ...watch import Watch

__all__ = ["MinimisedLikelihood"]

# Whether an operator turns the sign of its input; one that is not here may do either.
_SIGNS = {**dict.fromkeys(RESHAPING | {"Gather", "Index", "Mean", "Sum"}, 1), "Neg": -1, "NllLoss": -1, "NllLoss2d": -1}


class LossSignWatch(Watch):
    """Follows the loss of each backward down to a log_softmax, and the sign that is left of it."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, Sighting] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        roots = self._adapter.task_roots(task) if links else ()
        if len(roots) != 1:
            return
        key: int | None = self._adapter.key(roots[0][0])
        sign = 1
        while key is not None:
            name = operator_name(self._adapter.node_name(links[key].node))
            if name == "LogSoftmax" and sign > 0:
                leaves = leaves_behind(self._adapter, links, key)
                self.found.setdefault(self._adapter.location(roots[0][0]), self._program.sighting(leaves))
            if name not in _SIGNS:
                return
            sign *= _SIGNS[name]
            key = links[key].edges[0][0]


LOSS_SIGNS = Fact("loss signs", LossSignWatch, lambda watch: tuple(watch.found.items()), backward=True)


class MinimisedLikelihood(Rule):
    """A loss is the likelihood itself, and falls where the model becomes worse."""

    code = "D344"
    title = "a likelihood that is minimised"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (LOSS_SIGNS, UPDATE_SIZES)
    kind = "loss"
    explains = ("D324",)
    what = """
        An optimizer makes the loss smaller. A loss that is the mean of log-probabilities, without the minus sign, or a
        cross entropy with one, is smallest where the right class is impossible: the model learns to avoid it.
        """
    bad = """
        model = gs.nn.Linear(3, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        likelihood = gs.log_softmax(model(gs.randn(8, 3)), dim=1)
        likelihood.gather(1, (gs.arange(8) % 4).unsqueeze(1)).mean().backward()
        optimizer.step()
        """
    good = """
        model = gs.nn.Linear(3, 4)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        likelihood = gs.log_softmax(model(gs.randn(8, 3)), dim=1)
        (-likelihood.gather(1, (gs.arange(8) % 4).unsqueeze(1)).mean()).backward()
        optimizer.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[tuple[Location | None, Sighting]], runs: Iterable[OptimizerRun]) -> Iterator[Found]:
        """Yield what is found, and where, if an optimizer steps: without one, as for an input, growth may be meant."""
        stepped = any(run.parameters for run in runs)
        for location, sighting in found if stepped else ():
            text = (
                f"the loss{at(location)} is a mean or sum of log-probabilities with a plus sign: the smaller it gets, "
                "the less likely are the right classes\n  Negate it: -log_probabilities.mean(), or use nll_loss()."
            )
            yield Found(text, location, *sighting)
