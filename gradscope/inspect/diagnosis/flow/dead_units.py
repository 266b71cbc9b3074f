"""Dead units: units of a rectifier that no example of a batch activates."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from ...adapters import Adapter
from ...output.number_format import count
from ...records.execution_order import NodeLinks, walk
from ...records.module_tracking import Tracker
from ...records.records import Location, operator_name
from ..explanation import at

__all__ = ["DeadUnits", "UnitsOverTime", "dead_units"]


@dataclass(frozen=True)
class DeadUnits:
    """Units of a rectifier that no example of the batch activates.

    Attributes
    ----------
    dead, units : int
        How many of how many.
    after : str
        The module whose result it takes; for where its own is not known.
    batches : int
        Of how many backward passes no example has activated them.
    bias : float or None
        The mean of the dead units' biases, where the layer before has some.
    """

    node: str
    module: str
    location: Location | None
    dead: int
    units: int
    after: str = ""
    batches: int = 1
    bias: float | None = None

    def __str__(self) -> str:
        inside = f"`{self.module}`" if self.module else self.node + (f" after `{self.after}`" if self.after else "")
        units = count(self.units, "unit")
        whole = "the whole batch" if self.batches == 1 else f"all of {self.batches} batches"
        return f"{inside}: {self.dead} of {units} dead, zero for {whole}{at(self.location)}"


def dead_units(adapter: Adapter, roots: Sequence[Any], users: Mapping[int, str] | None = None) -> list[DeadUnits]:
    """Return the rectifiers with units that no example activates, in the forward's order.

    Parameters
    ----------
    users : mapping of int to str, optional
        From the key of a node to the module whose parameters it uses, as :func:`name_graph` finds them.
    """
    found = (_dead(*seen) for seen in _rectifiers(adapter, roots, users))
    return [unit for unit in found if unit.dead]


class UnitsOverTime:
    """The units that no example has activated in the latest backward passes: one batch may be an unusual one.

    Parameters
    ----------
    latest : int
        How many of those that have a rectifier.
    """

    def __init__(self, adapter: Adapter, latest: int) -> None:
        self._adapter = adapter
        self._latest = latest
        # By the place of a rectifier: the latest, which of its units were active, and the biases of the layer before.
        self._seen: dict[tuple[Any, ...], tuple[DeadUnits, deque[Any], Any]] = {}

    def look(self, roots: Sequence[Any]) -> None:
        """Look at the graph of a backward that has not run."""
        times = Counter[tuple[Any, ...]]()
        for unit, active, biases in _rectifiers(self._adapter, roots, None):
            place = unit.node, unit.module, unit.location, unit.units
            times[place] += 1
            _, looks, _ = self._seen.get((*place, times[place]), (unit, deque(maxlen=self._latest), None))
            looks.append(active)
            self._seen[(*place, times[place])] = unit, looks, biases

    def dead(self) -> tuple[DeadUnits, ...]:
        """Return the rectifiers that have such units."""
        found = (
            _dead(replace(unit, batches=len(looks)), numpy.logical_or.reduce(looks), biases)
            for unit, looks, biases in self._seen.values()
        )
        return tuple(unit for unit in found if unit.dead)


def _dead(unit: DeadUnits, active: Any, biases: Any) -> DeadUnits:
    dead = int(active.size - numpy.count_nonzero(active))
    bias = None if biases is None or not dead else float(biases[~active].mean())
    return replace(unit, dead=dead, bias=bias)


def _rectifiers(
    adapter: Adapter, roots: Sequence[Any], users: Mapping[int, str] | None
) -> Iterator[tuple[DeadUnits, Any, Any]]:
    """Yield each rectifier, which units are active for an example, and their biases, in the forward's order."""
    links = walk(adapter, roots)
    tracker = Tracker(adapter)
    if users is not None:
        tracker.add_users(users)
    for link in sorted(links.values(), key=lambda link: link.sequence_nr):
        name = adapter.node_name(link.node)
        if operator_name(name) not in ("Relu", "Threshold"):
            continue
        view = next((v for v in adapter.saved(link.node) if v.name == "result" and v.saved_version is not None), None)
        values = None if view is None else adapter.to_host(view.data)
        if values is None or values.ndim < 2:
            continue
        # Units are the channels of images (batch, channel, ...), else the last dimension.
        axis = 1 if values.ndim > 3 else values.ndim - 1
        # A unit that is NaN is not dead: other findings are about it.
        active = ((values > 0) | numpy.isnan(values)).any(axis=tuple(i for i in range(values.ndim) if i != axis))
        source = links.get(link.edges[0][0] or 0)
        after = "" if source is None else tracker.module_of(source.node)
        module, location = tracker.module_of(link.node), adapter.location(link.node)
        biases = None if source is None else _biases(adapter, source, links, active.shape)
        yield DeadUnits(name, module, location, 0, int(active.size), after), active, biases


def _biases(adapter: Adapter, layer: NodeLinks, links: Mapping[int, NodeLinks], shape: tuple[int, ...]) -> Any:
    """Return the parameter that a layer has for each of its units; None where it has none."""
    for key, _ in layer.edges:
        leaf = None if key is None else adapter.variable(links[key].node)
        if leaf is not None and tuple(leaf.shape) == shape:
            return numpy.array(adapter.to_host(leaf))
    return None
