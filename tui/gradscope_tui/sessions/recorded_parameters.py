"""The parameters of a recording, with the norms of their gradients over the latest backwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy

from gradscope.inspect.debugging.session.session_records import ParameterRecord
from gradscope.inspect.recording import BackwardRecord, Recording
from gradscope.inspect.recording.file.recording_columns import columns

__all__ = ["recorded_parameters"]

_LATEST = 40
"""Backwards whose norms are told."""

_MOST_NODES = 200_000
"""Nodes that are read for it: of long backwards, fewer are told."""


def recorded_parameters(recording: Recording, backwards: Sequence[BackwardRecord]) -> tuple[ParameterRecord, ...]:
    """Return the parameters that the last of some backwards, or those before it, have reached.

    Whether one that is not reached should be is not known: parameters that no backward reaches are not recorded.
    """
    found = columns(recording, _latest(backwards))
    names = {node: static.parameter for node, static in found.static.items() if static.parameter}
    at = numpy.flatnonzero(numpy.isin(found.node, list(names)))
    recent: defaultdict[str, list[float]] = defaultdict(list)
    places: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    rows = zip(*(column[at].tolist() for column in (found.task, found.index, found.node, found.incoming["norm"])))
    for number, index, node, norm in rows:
        name, outputs = names[node], found.static[node].outputs
        recent[name].append(norm)
        shapes[name] = tuple(outputs[0].shape) if outputs else ()
        if number == backwards[-1].id:
            places[name] = index
    return tuple(
        ParameterRecord(
            name, shapes[name], True, places.get(name, -1), norms[-1] if name in places else None, False, tuple(norms)
        )
        for name, norms in recent.items()
    )


def _latest(backwards: Sequence[BackwardRecord]) -> list[BackwardRecord]:
    """Return the last backwards that may be read: at least the very last."""
    taken: list[BackwardRecord] = []
    nodes = 0
    for one in reversed(backwards[-_LATEST:]):
        nodes += one.count
        if taken and nodes > _MOST_NODES:
            break
        taken.insert(0, one)
    return taken
