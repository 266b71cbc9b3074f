"""D320: A loss that has a softmax or sigmoid of its own is given the result of one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...adapters import Observer
from ...records.execution_order import NodeLinks
from ...records.records import Location, operator_name
from ..explanation import at
from ..nan.nan_producers import saved_values
from ..program_facts import Fact, WatchedProgram
from ..rule_registry import Rule
from ..sampled_graphs import senders, source_of, users_of

__all__ = ["SquashedTwice"]

_LOGITS = "BinaryCrossEntropyWithLogits"


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


class LossInputs(Observer):
    """Looks for losses whose input was squashed before."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._tracker = program.ledger.recorder
        self.found: dict[SquashedLoss, None] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        above = senders(links)
        for key, link in links.items():
            name = operator_name(self._adapter.node_name(link.node))
            if name == _LOGITS:
                self._compare(links, link, link, "Sigmoid")
            elif name in ("NllLoss", "NllLoss2d"):
                self._compare(links, link, link, "Softmax")
            elif name == "LogSoftmax":
                for user, _ in users_of(self._adapter, above, key):
                    if operator_name(self._adapter.node_name(user.node)).startswith("NllLoss"):
                        self._compare(links, link, user, "Softmax")
                        self._compare(links, link, user, "Relu")

    def _compare(self, links: Mapping[int, NodeLinks], inner: NodeLinks, loss: NodeLinks, squash: str) -> None:
        source = source_of(self._adapter, links, inner.edges[0][0])
        if source is None or operator_name(self._adapter.node_name(source.node)) != squash:
            return
        result = saved_values(self._adapter, source.node).get("result")
        shape = () if result is None else tuple(result.shape)
        name = "binary_cross_entropy_with_logits" if squash == "Sigmoid" else "cross_entropy"
        if inner is loss and squash == "Softmax":
            name = "nll_loss"
        at_most = 2 if squash == "Sigmoid" else shape[1] if len(shape) > 1 else math.prod(shape)
        module, made = self._tracker.module_of(source.node), self._adapter.location(source.node)
        self.found[SquashedLoss(squash.lower(), name, module, at_most, made, self._adapter.location(loss.node))] = None


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
            by = f"the {loss.squash}{f' `{loss.module}`' if loss.module else ''}{at(loss.made)}"
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
