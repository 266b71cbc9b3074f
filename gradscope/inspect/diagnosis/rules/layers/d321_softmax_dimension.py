"""D321: A softmax is taken along the wrong dimension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...flow.reshaping_operators import RESHAPING
from ...nan.nan_producers import saved_values
from ...program_facts import EXAMINATION, Fact, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind, senders, users_of
from ...watch import Watch

__all__ = ["SoftmaxDimension"]

# Operators between the weights of attention and the values: a dropout, and the reshapes of the bmm() in matmul().
_BESIDE_WEIGHTS = RESHAPING | {"Mul", "NativeDropout", "Div"}
_PRODUCTS = {"Bmm", "Mm", "Baddbmm"}
_HELP_ONE = "\n  Use a sigmoid for one output."
_HELP = "\n  Take it along the last dimension: dim=-1."


class SoftmaxWatch(Watch):
    """Compares the dimension that a softmax makes sum to one with the one that its user needs."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._tolerance = program.limits.sum_to_one
        self._names = program.watch_of(EXAMINATION).names
        # By line: what is wrong, and the parameters that get their gradients through it.
        self.found: dict[Location | None, tuple[str, tuple[str, ...]]] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        above = senders(links)
        for key, link in links.items():
            name = operator_name(self._adapter.node_name(link.node))
            if name in ("Softmax", "LogSoftmax"):
                text = self._judged(name, link, key, above)
                location = self._adapter.location(link.node)
                if text and location not in self.found:
                    paths = self._names.paths()
                    behind = [paths.get(id(leaf), "") for leaf in leaves_behind(self._adapter, links, key)]
                    self.found[location] = text, tuple(filter(None, behind))

    def _judged(self, name: str, link: NodeLinks, key: int, above: Mapping[int, list[tuple[NodeLinks, int]]]) -> str:
        result = saved_values(self._adapter, link.node).get("result")
        if result is None or not result.shape:
            return ""
        values = numpy.asarray(self._adapter.to_host(result), dtype=numpy.float64)
        probabilities = numpy.exp(values) if name == "LogSoftmax" else values
        if not numpy.isfinite(values).all():
            return ""
        one_position = values.ndim > 2 and values.shape[-2:] == (1, 1)  # of an attention over a sequence of one
        if values.size > 1 and not one_position and 1 in values.shape and (probabilities == 1).all():
            return f"of shape {values.shape} is 1 everywhere: it runs along a dimension of one entry{_HELP_ONE}"
        if values.ndim < 2 or self._is_one(probabilities, -1):
            return ""
        for user, index in users_of(self._adapter, above, key, _BESIDE_WEIGHTS | {"Log"}):
            operator = operator_name(self._adapter.node_name(user.node))
            if operator == "NllLoss" and values.ndim == 2 and self._is_one(probabilities, 0):
                return (
                    f"of shape {values.shape} runs along the batch: the examples compete, and the classes do not{_HELP}"
                )
            axis = self._axis_of_one(probabilities) if operator in _PRODUCTS and index == 0 else None
            if axis is not None:
                sums = probabilities.sum(axis=-1)
                along = "the queries" if axis == values.ndim - 2 else "not the keys"
                return (
                    f"of shape {values.shape} runs along dimension {axis}, {along}: the weights of "
                    f"a query, which multiply the values, sum to between {sums.min():.2g} and {sums.max():.2g}{_HELP}"
                )
        return ""

    def _axis_of_one(self, probabilities: Any) -> int | None:
        """Return the dimension but the last along which all entries sum to one; the innermost where there are two."""
        axes = reversed(range(probabilities.ndim - 1))
        return next((axis for axis in axes if self._is_one(probabilities, axis)), None)

    def _is_one(self, probabilities: Any, axis: int) -> bool:
        return bool((abs(probabilities.sum(axis=axis) - 1) < self._tolerance).all())


SOFTMAX_DIMENSIONS = Fact("softmax dimensions", SoftmaxWatch, lambda watch: tuple(watch.found.items()), backward=True)


class SoftmaxDimension(Rule):
    """A softmax is taken along the wrong dimension."""

    code = "D321"
    title = "a softmax along the wrong dimension"
    severity = "silent-wrong"
    needs = (SOFTMAX_DIMENSIONS,)
    certainty = "likely"
    kind = "softmax"
    explains = ("D316", "D325")
    what = """
        The probabilities of a classifier sum to one over the classes, the weights of an attention over the keys. Along
        the batch, the examples compete for one probability; along the queries, the keys do; along a dimension of one
        entry the result is always 1. Nothing raises, as all dimensions are allowed.
        """
    bad = """
        logits = gs.nn.Linear(3, 4)(gs.randn(8, 3))
        gs.nn.functional.nll_loss(gs.log_softmax(logits, dim=0), gs.arange(8) % 4).backward()
        """
    good = """
        logits = gs.nn.Linear(3, 4)(gs.randn(8, 3))
        gs.nn.functional.nll_loss(gs.log_softmax(logits, dim=1), gs.arange(8) % 4).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[tuple[Location | None, tuple[str, tuple[str, ...]]]]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for location, (text, parameters) in found:
            yield Found(f"the softmax{at(location)} {text}", location, parameters)
