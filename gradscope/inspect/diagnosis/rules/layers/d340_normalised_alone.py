"""D340: Numbers are normalised one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....output.number_format import format_shape
from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...program_facts import Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind, senders, source_of, users_of
from ...watch import Watch

__all__ = ["NormalisedAlone"]

_NORMS = {"NativeLayerNorm": "layer_norm", "NativeGroupNorm": "group_norm"}


class NormWatch(Watch):
    """Compares how many means a normalisation takes with how many numbers it is given."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, tuple[str, tuple[int, ...], Sighting]] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        for key, link in links.items():
            name = _NORMS.get(operator_name(self._adapter.node_name(link.node)))
            shapes = {saved.name: saved.shape for saved in self._adapter.saved(link.node)} if name else {}
            given, means = shapes.get("input"), shapes.get("result1")
            if name and given and means and math.prod(given) == math.prod(means):
                leaves = [*leaves_behind(self._adapter, links, key), *self._multiplied(links, key)]
                sighting = self._program.sighting(leaves)
                self.found.setdefault(self._adapter.location(link.node), (name, tuple(given), sighting))

    def _multiplied(self, links: Mapping[int, NodeLinks], key: int) -> Iterator[Any]:
        """Yield the leaves that the result, which is 0, is multiplied with: their gradient is 0 too."""
        for user, index in users_of(self._adapter, senders(links), key):
            others = [child for number, (child, _) in enumerate(user.edges) if number != index]
            sources = (source_of(self._adapter, links, child) for child in others)
            leaves = (self._adapter.variable(source.node) for source in sources if source is not None)
            yield from (leaf for leaf in leaves if leaf is not None)


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

    def judge(self, found: Iterable[tuple[Location | None, tuple[str, tuple[int, ...], Sighting]]]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for location, (name, shape, sighting) in found:
            text = (
                f"{name}{at(location)} normalises each number of {format_shape(shape)} alone: its result is 0, before "
                "weight and bias, whatever it is given\n  Normalise over features, or scale the data beforehand."
            )
            yield Found(text, location, *sighting)
