"""A recording as columns: many nodes in a few arrays, for tables, exports and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from .node_pages import Page
from .record_decoder import StaticNode
from .recording_records import BackwardRecord

if TYPE_CHECKING:
    from .reader import Recording

__all__ = ["Columns", "columns"]

_NUMBERS = ("norm", "min", "max", "mean", "std")
_COUNTS = ("zeros", "nans", "infs")


@dataclass(frozen=True)
class Columns:
    """All nodes of some backwards, a row each.

    Attributes
    ----------
    node : ndarray of int
        The key of :attr:`static`.
    started, duration : ndarray of int
        In nanoseconds since the run began.
    incoming, produced : dict of str to ndarray
        Statistics of the incoming and the produced gradients of a node: ``norm`` over all of them, the least ``min``,
        the largest ``max``, ``mean`` and ``std`` of the first, and the sums of ``zeros``, ``nans`` and ``infs``. NaN,
        or 0, where there is none.
    static : dict of int to StaticNode
        Names, modules and lines.
    """

    task: Any
    iteration: Any
    index: Any
    node: Any
    started: Any
    duration: Any
    incoming: dict[str, Any]
    produced: dict[str, Any]
    static: dict[int, StaticNode]

    def __len__(self) -> int:
        return len(self.task)


def columns(recording: Recording, tasks: Sequence[BackwardRecord] | None = None) -> Columns:
    """Return the nodes of backwards as columns.

    Parameters
    ----------
    tasks : sequence of BackwardRecord, optional
        All by default.

    Raises
    ------
    RecordingError
        If a page is damaged.
    """
    tasks = recording.tasks() if tasks is None else tasks
    parts: dict[str, list[Any]] = {name: [] for name in ("task", "iteration", "index", "node", "started", "duration")}
    groups: dict[str, list[dict[str, Any]]] = {"incoming": [], "produced": []}
    for task in tasks:
        for first, number in task.nodes.pages():
            page = recording.page(number)
            count = len(page.nodes)
            parts["task"].append(numpy.full(count, task.id))
            parts["iteration"].append(numpy.full(count, task.iteration))
            parts["index"].append(numpy.arange(first, first + count))
            for name in ("node", "started", "duration"):
                parts[name].append(page.nodes[name].astype(numpy.int64))
            for name, columns_of in groups.items():
                columns_of.append(_statistics(page, name))
    whole = {name: numpy.concatenate(p) if p else numpy.zeros(0, numpy.int64) for name, p in parts.items()}
    static = recording.static(numpy.unique(whole["node"]).tolist())
    return Columns(**whole, incoming=_joined(groups["incoming"]), produced=_joined(groups["produced"]), static=static)


def _joined(pages: list[dict[str, Any]]) -> dict[str, Any]:
    names = (*_NUMBERS, *_COUNTS)
    return {name: numpy.concatenate([p[name] for p in pages]) if pages else numpy.zeros(0) for name in names}


def _statistics(page: Page, group: str) -> dict[str, Any]:
    """Return the statistics of each node's incoming or produced gradients together."""
    counts = numpy.maximum(page.nodes[group], 0).astype(numpy.int64)
    begins = page.first_tensors()
    if group == "produced":
        begins = begins + numpy.maximum(page.nodes["incoming"], 0)
    owner = numpy.repeat(numpy.arange(len(counts)), counts)
    rows = numpy.arange(len(owner)) - numpy.repeat(numpy.cumsum(counts) - counts, counts) + numpy.repeat(begins, counts)
    there = page.tensors["spec"][rows] >= 0
    owner, tensors = owner[there], page.tensors[rows[there]]
    found: dict[str, Any] = {name: numpy.zeros(len(counts), numpy.int64) for name in _COUNTS}
    for name in _COUNTS:
        numpy.add.at(found[name], owner, tensors[name])
    some = numpy.zeros(len(counts), bool)
    some[owner] = True
    with numpy.errstate(all="ignore"):
        largest = _largest(len(counts), owner, tensors["norm"])
        scale = numpy.where((largest > 0) & numpy.isfinite(largest), largest, 1.0)
        squares = numpy.bincount(owner, (tensors["norm"] / scale[owner]) ** 2, len(counts))
        found["norm"] = numpy.where(some, numpy.sqrt(squares) * scale, numpy.nan)
    low, high = numpy.full(len(counts), numpy.inf), numpy.full(len(counts), -numpy.inf)
    numpy.fmin.at(low, owner, tensors["min"])
    numpy.fmax.at(high, owner, tensors["max"])
    found["min"] = numpy.where(low <= high, low, numpy.nan)
    found["max"] = numpy.where(low <= high, high, numpy.nan)
    for name in ("mean", "std"):
        found[name] = numpy.full(len(counts), numpy.nan)
        found[name][owner[::-1]] = tensors[name][::-1]  # in reverse, so that a node's first gradient has the last word
    return found


def _largest(count: int, owner: Any, values: Any) -> Any:
    found = numpy.zeros(count)
    numpy.fmax.at(found, owner, values)
    return found
