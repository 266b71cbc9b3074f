"""Dead units: units of a rectifier that no example of a batch activates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...adapters import Adapter
from ...output.number_format import count
from ...records.execution_order import walk
from ...records.module_tracking import Tracker
from ...records.records import Location, operator_name
from ..explanation import at

__all__ = ["DeadUnits", "dead_units"]


@dataclass(frozen=True)
class DeadUnits:
    """Units of a rectifier that no example of the batch activates.

    Attributes
    ----------
    dead, units : int
        How many of how many.
    after : str
        The module whose result it takes; for where its own is not known.
    """

    node: str
    module: str
    location: Location | None
    dead: int
    units: int
    after: str = ""

    def __str__(self) -> str:
        inside = f"`{self.module}`" if self.module else self.node + (f" after `{self.after}`" if self.after else "")
        units = count(self.units, "unit")
        return f"{inside}: {self.dead} of {units} dead, zero for the whole batch{at(self.location)}"


def dead_units(adapter: Adapter, roots: Sequence[Any], users: Mapping[int, str] | None = None) -> list[DeadUnits]:
    """Return the rectifiers with units that no example activates, in the forward's order.

    Parameters
    ----------
    users : mapping of int to str, optional
        From the key of a node to the module whose parameters it uses, as :func:`name_graph` finds them.
    """
    links = walk(adapter, roots)
    tracker = Tracker(adapter)
    if users is not None:
        tracker.add_users(users)
    found = []
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
        dead = int(active.size - numpy.count_nonzero(active))
        if dead:
            module, location = tracker.module_of(link.node), adapter.location(link.node)
            source = links.get(link.edges[0][0] or 0)
            after = "" if source is None else tracker.module_of(source.node)
            found.append(DeadUnits(name, module, location, dead, int(active.size), after))
    return found
