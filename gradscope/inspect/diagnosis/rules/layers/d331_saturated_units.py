"""D331: Units are saturated from the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...finding_limits import Limits
from ...nan.nan_producers import saved_values
from ...program_facts import EXAMINATION, LIMITS, Fact, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import leaves_behind, source_of
from ...training.module_modes import tensors_in
from ...watch import Watch

__all__ = ["SaturatedUnits"]

_ENDS = {"Tanh": (-1.0, 1.0), "Sigmoid": (0.0, 1.0)}


@dataclass(frozen=True)
class Saturated:
    """The results of a squashing function in the first backward passes.

    Attributes
    ----------
    function : str
        ``'tanh'`` or ``'sigmoid'``.
    share : float
        Of the results that are at an end of the range.
    largest : float
        The largest number, by its size, that the model was given.
    parameters : tuple of str
        Those that get their gradients through it.
    """

    function: str
    module: str
    share: float
    largest: float
    location: Location | None
    parameters: tuple[str, ...] = ()


class SaturationWatch(Watch):
    """Looks at the results of squashing functions in the first backward passes."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._tracker = program.ledger.recorder
        self._names = program.watch_of(EXAMINATION).names
        self._near_end = program.limits.near_end
        self._first = program.limits.first_backwards
        self._backwards = 0
        self._largest = 0.0
        self._seen: dict[tuple[str, Location | None], list[Saturated]] = {}

    @property
    def found(self) -> tuple[Saturated, ...]:
        """Of each function the one with the smallest share, where all of the first were looked at."""
        return tuple(min(seen, key=lambda one: one.share) for seen in self._seen.values() if len(seen) == self._first)

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note how large the numbers are that a model is given."""
        if self._backwards < self._first and not self._tracker.inside_module():
            for tensor in tensors_in(inputs, self._adapter.tensor_classes()):
                if tensor.is_floating_point():
                    # Inside of a transform an older PyTorch shows nobody the elements.
                    self._largest = max(self._largest, float(abs(self._adapter.to_host(tensor)).max(initial=0.0)))

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = {} if self._backwards >= self._first else self._graphs.of(task)
        self._backwards += bool(links)
        worst: dict[tuple[str, Location | None], tuple[Saturated, int]] = {}
        for key, link in links.items():
            one = self._measured(links, link)
            if one is not None:
                place = one.function, one.location
                if place not in worst or one.share > worst[place][0].share:
                    worst[place] = one, key
        paths = self._names.paths() if worst else {}
        for place, (one, key) in worst.items():
            behind = [paths.get(id(leaf), "") for leaf in leaves_behind(self._adapter, links, key)]
            self._seen.setdefault(place, []).append(replace(one, parameters=tuple(filter(None, behind))))

    def _measured(self, links: dict[int, NodeLinks], link: NodeLinks) -> Saturated | None:
        name = operator_name(self._adapter.node_name(link.node))
        result = saved_values(self._adapter, link.node).get("result") if name in _ENDS else None
        # An element without a layer behind it is no unit.
        if result is None or not result.numel() or source_of(self._adapter, links, link.edges[0][0]) is None:
            return None
        values = self._adapter.to_host(result)
        low, high = _ENDS[name]
        near = self._near_end * (high - low) / 2
        share = float(numpy.mean((values < low + near) | (values > high - near)))
        location = self._adapter.location(link.node)
        return Saturated(name.lower(), self._tracker.module_of(link.node), share, self._largest, location)


SATURATION = Fact("saturation", SaturationWatch, lambda watch: watch.found, forward=True, backward=True)


class SaturatedUnits(Rule):
    """Units are saturated from the start."""

    code = "D331"
    title = "units that are saturated"
    severity = "warning"
    needs = (SATURATION, LIMITS)
    kind = "gradient flow"
    explains = ("D314", "D316")
    what = """
        Most results of a tanh or sigmoid are at the ends of its range before anything was learned. The derivative there
        is next to zero, and what stands before it does not learn. Its inputs are too large: data that is not scaled, or
        weights that start too large.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(8, 4), gs.nn.Tanh(), gs.nn.Linear(4, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 8) * 1000).square().mean().backward()
            optimizer.step()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(8, 4), gs.nn.Tanh(), gs.nn.Linear(4, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            model(gs.randn(8, 8)).square().mean().backward()
            optimizer.step()
        """
    topic = "vanishing"

    def judge(self, found: Iterable[Saturated], limits: Limits) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            if one.share < limits.saturated:
                continue
            way_out = "Start with smaller weights, or normalise what it is given."
            if one.largest > limits.large_input:
                way_out = f"The model is given numbers up to {one.largest:.3g}: scale them to mean 0 and deviation 1."
            inside = f" `{one.module}`" if one.module else ""
            text = (
                f"{one.share:.0%} of the results of the {one.function}{inside}{at(one.location)} are at the ends of "
                f"its range from the first backward on\n  {way_out}"
            )
            yield Found(text, one.location, one.parameters)
