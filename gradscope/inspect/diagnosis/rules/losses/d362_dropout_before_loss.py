"""D362: A dropout is the last thing before a loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....records.records import Location
from ...explanation import at
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...training.graph_calls import GraphCall, GraphCalls
from ...training.module_modes import drops
from ...watch import Watch

__all__ = ["DropoutBeforeLoss"]

# Losses of logits, by their nodes; of a cross entropy the softmax is the one that is given them.
_OF_LOGITS = {"BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits"}
_NEGATIVE_LIKELIHOODS = {"NllLoss", "NllLoss2d"}
# Of several numbers for each example some may be dropped on purpose, as of a code that is compared with another one.
_OF_ONE_NUMBER = {"MseLoss": "mse_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss"}


class DroppedPredictions(NamedTuple):
    """A loss that is given the result of a dropout.

    Attributes
    ----------
    what : str
        What is dropped: ``'logits'`` or ``'predictions'``.
    dropout : str
        The module, or ``'dropout()'``.
    made, location : Location or None
        Where the dropout is, and where the loss is.
    """

    loss: str
    what: str
    dropout: str
    made: Location | None
    location: Location | None
    sighting: Sighting


class DroppedWatch(Watch):
    """Looks for losses whose input comes out of a dropout."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._recorder = program.ledger.recorder
        # By the key of the node: the module that dropped.
        self._modules: dict[int, str] = {}
        self.found: dict[Location | None, DroppedPredictions] = {}

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note what a dropout has made."""
        if not module.training or not drops(module) or not self._adapter.is_tensor(output):
            return
        node = self._adapter.root(output)
        if node is not None:
            name = f"{type(module).__name__} `{self._recorder.path_of(module)}`"
            self._modules[self._adapter.key(node[0])] = f"the {name.removesuffix(' ``')}"

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        calls = GraphCalls(self._adapter, links)
        for loss in calls:
            name, what = self._judged_by(loss)
            given = calls.source_of(loss) if loss.name in _NEGATIVE_LIKELIHOODS else loss
            if not name or given is None or (given is not loss and given.name != "LogSoftmax"):
                continue
            source = calls.source_of(given)
            dropout = None if source is None else self._dropout(source)
            if source is not None and dropout is not None:
                lines = calls.location(source), calls.location(loss)
                leaves = leaves_behind(self._adapter, links, self._adapter.key(loss.link.node))
                found = DroppedPredictions(name, what, dropout, *lines, self._program.sighting(leaves))
                self.found.setdefault(found.location, found)

    def _judged_by(self, loss: GraphCall) -> tuple[str, str]:
        """Return what a loss is called, and what it is given; nothing where that may be dropped on purpose."""
        if loss.inner is not None:
            return "", ""
        if loss.name in _NEGATIVE_LIKELIHOODS:
            return "cross_entropy", "logits"
        if loss.name in _OF_LOGITS:
            return _OF_LOGITS[loss.name], "logits"
        given = saved_values(self._adapter, loss.link.node).get("self") if loss.name in _OF_ONE_NUMBER else None
        alone = given is not None and (len(given.shape) == 1 or math.prod(given.shape[1:]) == 1)
        return (_OF_ONE_NUMBER[loss.name], "predictions") if alone else ("", "")

    def _dropout(self, source: GraphCall) -> str | None:
        """Return the dropout that a node is; None where it is none."""
        module = self._modules.get(self._adapter.key(source.link.node))
        if module is not None or source.inner is not None:
            return module
        # The mask of the function is no tensor with a history.
        edges = source.link.edges
        made = self._adapter.location(source.link.node)
        is_product = source.name == "NativeDropout" or (source.name == "Mul" and edges[-1][0] is None)
        return "dropout()" if is_product and made is not None and "dropout(" in made.source else None

    def task_finished(self, task: Any) -> None:
        """Let go of the nodes."""
        self._modules.clear()

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Let go of the nodes."""
        self._modules.clear()


DROPPED_PREDICTIONS = Fact(
    "dropped predictions", DroppedWatch, lambda watch: tuple(watch.found.values()), forward=True, backward=True
)


class DropoutBeforeLoss(Rule):
    """A dropout is the last thing before a loss."""

    code = "D362"
    title = "a dropout between the last layer and the loss"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (DROPPED_PREDICTIONS,)
    kind = "dropout"
    what = """
        A dropout behind the last layer drops predictions: the logit of the right class is set to 0 as often as any
        other, whatever the model knows, and the loss cannot fall below what that costs. Before the last layer it drops
        units, of which the layer has others.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 16), gs.nn.ReLU(), gs.nn.Linear(16, 4), gs.nn.Dropout(0.5))
        gs.nn.functional.cross_entropy(model(gs.randn(8, 3)), gs.arange(8) % 4).backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 16), gs.nn.ReLU(), gs.nn.Dropout(0.5), gs.nn.Linear(16, 4))
        gs.nn.functional.cross_entropy(model(gs.randn(8, 3)), gs.arange(8) % 4).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[DroppedPredictions]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"{one.loss}{at(one.location)} is given the result of {one.dropout}{at(one.made, one.location)}, which "
                f"sets {one.what} to 0 by chance: those of the right answer as often as any\n"
                "  Put the dropout before the last layer, or take it away."
            )
            yield Found(text, one.made, *one.sighting)
