"""D320: A loss that has a softmax or sigmoid of its own is given the result of one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ....records.records import Location
from ...explanation import at
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.graph_calls import GraphCall, GraphCalls
from ...watch import Watch

__all__ = ["SquashedTwice"]

# Losses that take logits, by their nodes and by what is inside of a compiled region, and what users call them.
_LOGITS = {
    "BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits",
    "BCEWithLogits": "binary_cross_entropy_with_logits",
    "CrossEntropy": "cross_entropy",
}
_LOG_PROBABILITIES = {"NllLoss", "NllLoss2d", "NLL"}
# What they must not be given the result of.
_SQUASHES = {
    "binary_cross_entropy_with_logits": {"Sigmoid"},
    "cross_entropy": {"Softmax", "Relu"},
    "nll_loss": {"Softmax"},
}


@dataclass(frozen=True)
class SquashedLoss:
    """A loss whose input was squashed before.

    Attributes
    ----------
    squash : str
        ``'softmax'``, ``'sigmoid'`` or ``'relu'``.
    loss : str
        The loss, by its operator.
    module : str
        The module that squashes; empty where it is none.
    classes : int
        How many there are.
    made, used : Location or None
        Where it is squashed, and where the loss is.
    """

    squash: str
    loss: str
    module: str
    classes: int
    made: Location | None
    used: Location | None


class LossInputs(Watch):
    """Looks for losses whose input was squashed before."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._tracker = program.ledger.recorder
        self.found: dict[SquashedLoss, None] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        calls = GraphCalls(self._adapter, self._graphs.of(task))
        for loss in calls:
            if loss.name in _LOGITS:
                self._compare(calls, loss, loss, _LOGITS[loss.name])
            elif loss.name in _LOG_PROBABILITIES:
                source = calls.source_of(loss)
                if source is not None and source.name == "LogSoftmax":
                    self._compare(calls, source, loss, "cross_entropy")
                else:
                    self._compare(calls, loss, loss, "nll_loss")

    def _compare(self, calls: GraphCalls, inner: GraphCall, loss: GraphCall, name: str) -> None:
        source = calls.source_of(inner)
        if source is None or source.name not in _SQUASHES[name]:
            return
        # What is added to a result inside of a compiled region is not seen, and a ReLU's may be negative then.
        if source.inner is not None and source.name == "Relu":
            return
        if source.inner is None:
            result = saved_values(self._adapter, source.link.node).get("result")
            shape = () if result is None else tuple(result.shape)
            module = self._tracker.module_of(source.link.node)
        else:
            shape, module = calls.shape(source), calls.module(source)
        at_most = 2 if source.name == "Sigmoid" else shape[1] if len(shape) > 1 else math.prod(shape)
        lines = calls.location(source), calls.location(loss)
        self.found[SquashedLoss(source.name.lower(), name, module, at_most, *lines)] = None


SQUASHED_LOSSES = Fact("squashed losses", LossInputs, lambda watch: tuple(watch.found), backward=True)


class SquashedTwice(Rule):
    """A loss that has a softmax or sigmoid of its own is given the result of one."""

    code = "D320"
    title = "a softmax or sigmoid before a loss that has its own"
    severity = "silent-wrong"
    needs = (SQUASHED_LOSSES,)
    kind = "loss"
    what = """
        cross_entropy() takes logits, and computes their softmax itself; binary_cross_entropy_with_logits() computes the
        sigmoid. Given probabilities, they squash a second time: however sure and right the model is, the loss stays
        far above zero, and its gradients are small. nll_loss() takes the logarithm of probabilities; of probabilities
        themselves it has no minimum that means anything.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Softmax(dim=1))
        gs.nn.functional.cross_entropy(model(gs.randn(8, 3)), gs.arange(8) % 4).backward()
        """
    good = """
        model = gs.nn.Linear(3, 4)
        gs.nn.functional.cross_entropy(model(gs.randn(8, 3)), gs.arange(8) % 4).backward()
        """
    topic = "not-learning"

    def judge(self, losses: Iterable[SquashedLoss]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for loss in losses:
            by = f"the {loss.squash}{f' `{loss.module}`' if loss.module else ''}{at(loss.made, loss.used)}"
            yield f"{loss.loss}{at(loss.used)} is given the result of {by}{_effect(loss)}", loss.made


def _effect(loss: SquashedLoss) -> str:
    if loss.loss == "nll_loss":
        return ": it takes the logarithm of probabilities\n  Use log_softmax(), or cross_entropy() of the logits."
    if loss.squash == "relu":
        return ": no logit can be negative, and where all are zero nothing is learned\n  Leave the last layer linear."
    if loss.squash == "sigmoid":
        return (
            ", and has a sigmoid of its own: for a negative example it never falls below log 2 = 0.69"
            "\n  Hand it the logits, or use binary_cross_entropy()."
        )
    least = math.log(math.e + loss.classes - 1) - 1
    return (
        f", and has a softmax of its own: with {loss.classes} classes it never falls below {least:.2f}"
        "\n  Hand it the logits, and use the softmax for predictions alone."
    )
