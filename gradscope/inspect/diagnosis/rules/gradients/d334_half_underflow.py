"""D334: Gradients in half precision are too small to be told from zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from ....records.records import Location
from ...explanation import at
from ...finding_limits import Limits
from ...program_facts import LIMITS, Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind
from ...watch import Watch

__all__ = ["HalfUnderflow"]

_HALF = numpy.dtype(numpy.float16)
# Below it numbers in half precision lose digits, one by one.
_SMALLEST_NORMAL = float(numpy.finfo(numpy.float16).smallest_normal)


@dataclass(frozen=True)
class Underflow:
    """A node whose gradient became zero for want of smaller numbers.

    Attributes
    ----------
    node : str
        Its name.
    zeros, before : float
        The share of zeros in what it made, and in what it was given.
    largest : float
        The largest element that it made, by its size.
    sighting : Sighting
        The parameters behind it, and since when.
    """

    node: str
    zeros: float
    before: float
    largest: float
    location: Location | None
    sighting: Sighting


class UnderflowWatch(Watch):
    """Counts the zeros in the gradients of half precision that come and go."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._looked_at: set[int] = set()
        self.found: dict[Location | None, Underflow] = {}

    def task_started(self, task: Any) -> None:
        """Note whether the backward is one to look into."""
        if self._graphs.of(task):
            self._looked_at.add(id(task))

    def task_finished(self, task: Any) -> None:
        """Forget it."""
        self._looked_at.discard(id(task))

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget it."""
        self._looked_at.discard(id(task))

    def looks_into(self, task: Any) -> bool:
        """Whether this backward is one of those that are looked into."""
        return id(task) in self._looked_at

    def node_exited(self, call: Any) -> None:
        """Compare what a node was given with what it made."""
        if id(call.task) not in self._looked_at or not call.grad_inputs:
            return
        given, made = _halves(self._adapter, call.grad_outputs), _halves(self._adapter, call.grad_inputs)
        if not given.size or not made.size:
            return
        largest = float(abs(made).max())
        # A mask makes zeros as well, but leaves the others as large as they were.
        if not largest < _SMALLEST_NORMAL or not abs(given).max() > 0:
            return
        zeros, before = float(numpy.mean(made == 0)), float(numpy.mean(given == 0))
        line = self._adapter.location(call.node)
        known = self.found.get(line)
        if zeros - before > (0.0 if known is None else known.zeros - known.before):
            sighting = self._sighting(call) if known is None else known.sighting
            self.found[line] = Underflow(self._adapter.node_name(call.node), zeros, before, largest, line, sighting)

    def _sighting(self, call: Any) -> Sighting:
        links, key = self._graphs.of(call.task), self._adapter.key(call.node)
        return self._program.sighting(leaves_behind(self._adapter, links, key) if key in links else ())


def _halves(adapter: Any, gradients: Iterable[Any]) -> Any:
    # What is of another dtype stays where it is: it may be large, and on a device.
    halves = [g for g in gradients if g is not None and adapter.spec(g).dtype == "float16"]
    arrays = [adapter.to_host(gradient) for gradient in halves]
    flat = [array.reshape(-1) for array in arrays if array.dtype == _HALF]
    return numpy.concatenate(flat) if flat else numpy.empty(0, _HALF)


UNDERFLOWS = Fact("underflows", UnderflowWatch, lambda watch: tuple(watch.found.values()), backward=True)


class HalfUnderflow(Rule):
    """Gradients in half precision are too small to be told from zero."""

    code = "D334"
    title = "gradients that underflow in half precision"
    severity = "silent-wrong"
    needs = (UNDERFLOWS, LIMITS)
    kind = "precision"
    explains = ("D314", "D316", "D325")
    what = """
        float16 has no number between 0 and 6e-8, and few below 6e-5. Gradients of a mean over many elements, or of a
        loss that is small, are of that size: they become zero on the way. A GradScaler multiplies the loss so that they
        are not, and divides the gradients before the step; bfloat16 has the range of float32.
        """
    bad = """
        model = gs.nn.Linear(8, 4).half()
        (model(gs.randn(16, 8).half()) * 1e-5).square().mean().backward()
        """
    good = """
        model = gs.nn.Linear(8, 4).half()
        loss = (model(gs.randn(16, 8).half()).float() * 1e-1).square().mean()
        (loss * 2.0**12).backward()
        """
    topic = "vanishing"

    def judge(self, found: Iterable[Underflow], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        worst = max(found, key=lambda one: one.zeros - one.before, default=None)
        if worst is None or worst.zeros - worst.before < limits.underflow:
            return
        text = (
            f"gradients in float16 underflow in {worst.node}{at(worst.location)}: {worst.zeros:.0%} of them are zero "
            f"behind it, {worst.before:.0%} before it, and the largest is {worst.largest:.1e}\n"
            "  Scale the loss (torch.amp.GradScaler), or use bfloat16."
        )
        yield Found(text, worst.location, *worst.sighting)
