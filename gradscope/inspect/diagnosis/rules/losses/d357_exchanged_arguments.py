"""D357: A loss is given its target first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....records.records import Location, operator_name
from ...explanation import at
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...watch import Watch

__all__ = ["ExchangedArguments"]

# Losses that are another number when their two arguments change places, by their nodes.
_LOSSES = {
    "BinaryCrossEntropy": "binary_cross_entropy",
    "BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits",
}


class ArgumentWatch(Watch):
    """Looks for losses whose target is what the model computed, and whose input is not."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, tuple[str, Sighting]] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        for key, link in links.items():
            loss = _LOSSES.get(operator_name(self._adapter.node_name(link.node)))
            if loss is None or len(link.edges) < 2:
                continue
            given, target = (child for child, _ in link.edges[:2])
            if given is None and target is not None:
                sighting = self._program.sighting(leaves_behind(self._adapter, links, key))
                self.found.setdefault(self._adapter.location(link.node), (loss, sighting))


EXCHANGED = Fact("exchanged arguments", ArgumentWatch, lambda watch: tuple(watch.found.items()), backward=True)


class ExchangedArguments(Rule):
    """A loss is given its target first."""

    code = "D357"
    title = "a loss that is given its target first"
    severity = "silent-wrong"
    needs = (EXCHANGED,)
    kind = "loss"
    explains = ("D301", "D302", "D314", "D315", "D316", "D324")
    what = """
        binary_cross_entropy(input, target) takes the logarithm of its first argument, and so does the form with logits.
        Given the labels first and the prediction second, it takes that of the labels, 0 and 1: it is no distance of the
        two any more, and what comes back to the model is an infinity, or a constant.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 1), gs.nn.Sigmoid())
        labels = (gs.arange(8) % 2).float().unsqueeze(1)
        gs.nn.functional.binary_cross_entropy(labels, model(gs.randn(8, 3))).backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 1), gs.nn.Sigmoid())
        labels = (gs.arange(8) % 2).float().unsqueeze(1)
        gs.nn.functional.binary_cross_entropy(model(gs.randn(8, 3)), labels).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[tuple[Location | None, tuple[str, Sighting]]]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for location, (loss, sighting) in found:
            text = (
                f"{loss}{at(location)} is given a tensor without history first, and what the model computed as its "
                f"target: the two are exchanged\n  Write {loss}(prediction, target)."
            )
            yield Found(text, location, *sighting)
