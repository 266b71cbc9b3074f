"""D340: Numbers are normalised one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from ...adapters import Observer
from ...output.number_format import format_shape
from ...records.records import Location, operator_name
from ..explanation import at
from ..program_facts import Fact, WatchedProgram
from ..rule_registry import Rule

__all__ = ["NormalisedAlone"]

_NORMS = {"NativeLayerNorm": "layer_norm", "NativeGroupNorm": "group_norm"}


class NormWatch(Observer):
    """Compares how many means a normalisation takes with how many numbers it is given."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, tuple[str, tuple[int, ...]]] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        for link in self._graphs.of(task).values():
            name = _NORMS.get(operator_name(self._adapter.node_name(link.node)))
            shapes = {saved.name: saved.shape for saved in self._adapter.saved(link.node)} if name else {}
            given, means = shapes.get("input"), shapes.get("result1")
            if name and given and means and math.prod(given) == math.prod(means):
                self.found.setdefault(self._adapter.location(link.node), (name, tuple(given)))


NORMS = Fact("norms", NormWatch, lambda watch: tuple(watch.found.items()), backward=True)


class NormalisedAlone(Rule):
    """Numbers are normalised one by one."""

    code = "D340"
    title = "a normalisation over one number"
    severity = "silent-wrong"
    needs = (NORMS,)
    kind = "normalisation"
    explains = ("D316",)
    what = """
        A normalisation subtracts the mean of some numbers and divides by their deviation. The mean of one number is
        that number: what comes out is 0, whatever went in, and no gradient goes back.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.LayerNorm(1), gs.nn.Linear(1, 1))
        (model(gs.randn(8, 1)) - 1).square().mean().backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(1, 4), gs.nn.LayerNorm(4), gs.nn.Linear(4, 1))
        (model(gs.randn(8, 1)) - 1).square().mean().backward()
        """
    topic = "not-learning"

    def judge(
        self, found: Iterable[tuple[Location | None, tuple[str, tuple[int, ...]]]]
    ) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for location, (name, shape) in found:
            text = (
                f"{name}{at(location)} normalises each number of {format_shape(shape)} alone: its result is 0, before "
                "weight and bias, whatever it is given\n  Normalise over features, or scale the data beforehand."
            )
            yield text, location
