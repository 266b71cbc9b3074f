"""D338: A loss of log-probabilities is given something else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy

from ....records.execution_order import walk
from ....records.records import Location, operator_name
from ...explanation import at
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...training.graph_calls import GraphCall, GraphCalls
from ...watch import Watch

__all__ = ["NoLogProbabilities"]

# Losses of log-probabilities, and the name under which each saves them.
_LOSSES = {"NllLoss": "self", "NllLoss2d": "self", "CtcLoss": "log_probs"}
_CALLED = {"NllLoss": "nll_loss", "NllLoss2d": "nll_loss", "CtcLoss": "ctc_loss"}


_FALLS = (
    ": it falls without bound as they grow\n  Hand it log_softmax() of the logits; cross_entropy() is both at once."
)
_EFFECTS = {"kl_div": ": its minimum is not at the target\n  Hand it log_softmax() of the logits, not probabilities."}


class LargeLogProbabilities(NamedTuple):
    """A loss that was given a logarithm of a probability that is above zero."""

    loss: str
    largest: float
    location: Location | None
    sighting: Sighting


class LogProbabilityWatch(Watch):
    """Looks at what losses of log-probabilities are given."""

    operators_heard = frozenset({"kl_div"})
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._most = math.log1p(program.limits.sum_to_one)
        self.found: dict[Location | None, LargeLogProbabilities] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        for link in links.values():
            name = operator_name(self._adapter.node_name(link.node))
            if name not in _LOSSES:
                continue
            given = saved_values(self._adapter, link.node).get(_LOSSES[name])
            source = GraphCalls(self._adapter, links).source_of(GraphCall(name, link))
            # D320 names the softmax or sigmoid that made probabilities of them.
            squashed = source is not None and source.name == "Softmax"
            if given is None or squashed:
                continue
            values = numpy.asarray(self._adapter.to_host(given), dtype=numpy.float64)
            largest = float(values.max(initial=-math.inf))
            if self._most < largest < math.inf:
                line = self._adapter.location(link.node)
                sighting = self._program.sighting(leaves_behind(self._adapter, links, self._adapter.key(link.node)))
                self.found.setdefault(line, LargeLogProbabilities(_CALLED[name], largest, line, sighting))

    def operator_ran(self, call: Any) -> None:
        """Look at what kl_div() is given, which under PyTorch has no node of its own."""
        if not call.inputs:
            return
        largest = float(numpy.max(self._adapter.to_host(call.inputs[0]), initial=-math.inf))
        if self._most < largest < math.inf and call.location not in self.found:
            sighting = self._sighting(call.inputs[0])
            self.found[call.location] = LargeLogProbabilities("kl_div", largest, call.location, sighting)

    def _sighting(self, given: Any) -> Sighting:
        """Return that a loss is given this now, and is about what it was computed from."""
        root = self._adapter.root(given)
        links = {} if root is None else walk(self._adapter, [root[0]])
        leaves = [] if root is None else leaves_behind(self._adapter, links, self._adapter.key(root[0]))
        return self._program.sighting(leaves, in_forward=True)


LARGE_LOG_PROBABILITIES = Fact(
    "large log-probabilities",
    LogProbabilityWatch,
    lambda watch: tuple(watch.found.values()),
    backward=True,
    operators=True,
)


class NoLogProbabilities(Rule):
    """A loss of log-probabilities is given something else."""

    code = "D338"
    title = "a loss of log-probabilities that is given logits"
    severity = "silent-wrong"
    needs = (LARGE_LOG_PROBABILITIES,)
    certainty = "likely"
    kind = "loss"
    explains = ("D315", "D324")
    what = """
        nll_loss(), ctc_loss() and kl_div() take logarithms of probabilities, of which none is above 0. They do not look
        at what they are given: of logits the loss is the negative of one number, and falls without bound when the
        weights grow; of probabilities kl_div() is smallest somewhere else than at the target.
        """
    bad = """
        logits = gs.nn.Linear(3, 4)(gs.randn(32, 3))
        gs.nn.functional.nll_loss(logits, gs.arange(32) % 4).backward()
        """
    good = """
        logits = gs.nn.Linear(3, 4)(gs.randn(32, 3))
        gs.nn.functional.nll_loss(gs.log_softmax(logits, dim=1), gs.arange(32) % 4).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[LargeLogProbabilities]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            text = (
                f"{one.loss}{at(one.location)} is given numbers up to {one.largest:.2g}, and no logarithm of a "
                f"probability is above 0{_EFFECTS.get(one.loss, _FALLS)}"
            )
            yield Found(text, one.location, *one.sighting)
