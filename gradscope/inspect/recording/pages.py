"""A page: many nodes of one backward as columns, and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .digest import ENTRY, TENSOR, Digest, digest

__all__ = ["NODE", "STATES", "NodeItem", "Page", "Snapshot", "decode_page", "encode_page"]

STATES = ("done", "failed")

NODE = numpy.dtype([
    ("node", "<i4"), ("state", "u1"), ("sequence_nr", "<u8"), ("started", "<i8"), ("duration", "<i8"),
    ("incoming", "<i2"), ("produced", "<i2"),
])  # fmt: skip
"""A node that has run: which (its row in the table `nodes`), when and for how long (ns since the run began), and how
many gradients are known of it, -1 where nobody looked. Their rows follow each other in the page."""

_MASK = (1 << 64) - 1  # PyTorch's AccumulateGrad has the largest sequence number there is


class Snapshot:
    """A gradient as it was: a copy of its elements, until its statistics are known.

    Parameters
    ----------
    array : ndarray
        Of nobody else's memory.
    spec : int
        Its row in the table `specs`.
    value : int
        Its row in `tensor_values`, -1 unless its elements are kept.
    source : Snapshot, optional
        Another with the same elements in another order, whose copy and statistics serve for this one.
    first : ndarray, optional
        The first elements, in this order.
    """

    __slots__ = ("array", "first", "shared", "source", "spec", "told", "value")

    def __init__(
        self, array: Any, spec: int, value: int = -1, source: Snapshot | None = None, first: Any = None
    ) -> None:
        self.array = array
        self.spec = spec
        self.value = value
        self.source = source
        self.first = first
        self.shared = False  # whether another node may be given it
        self.told: tuple[Any, Any, str | None] | None = None  # its row, histogram and preview, when it is shared


class NodeItem:
    """A node that has run, on its way to the writer."""

    __slots__ = ("duration", "incoming", "node", "produced", "sequence_nr", "started", "state", "task")

    def __init__(
        self,
        task: int,
        node: int,
        sequence_nr: int,
        started: int,
        duration: int,
        incoming: Sequence[Snapshot | None] | None,
        produced: Sequence[Snapshot | None] | None,
        state: int = 0,
    ) -> None:
        self.task = task
        self.node = node
        self.sequence_nr = sequence_nr & _MASK
        self.started = started
        self.duration = duration
        self.incoming = incoming
        self.produced = produced
        self.state = state


@dataclass(frozen=True)
class Page:
    """The columns of consecutive nodes of one backward.

    Attributes
    ----------
    nodes : ndarray of NODE
    tensors : ndarray of TENSOR
    entries : ndarray of ENTRY
    previews : dict of int to str
    """

    nodes: Any
    tensors: Any
    entries: Any
    previews: dict[int, str]

    def first_tensors(self) -> Any:
        """Return, for each node, at which row of `tensors` its own begin."""
        counts = numpy.maximum(self.nodes["incoming"], 0) + numpy.maximum(self.nodes["produced"], 0).astype(numpy.int64)
        return numpy.cumsum(counts) - counts

    def bad(self) -> Any:
        """Return which nodes have a NaN or Inf among their gradients, as booleans."""
        rows = (self.tensors["nans"] > 0) | (self.tensors["infs"] > 0)
        seen = numpy.concatenate([[0], numpy.cumsum(rows)])
        ends = numpy.append(self.first_tensors()[1:], len(self.tensors))
        return seen[ends] > seen[self.first_tensors()]

    def blobs(self) -> tuple[bytes, bytes, bytes, str | None, int]:
        """Return what stands in the table `pages`."""
        previews = json.dumps(self.previews) if self.previews else None
        parts = self.nodes.tobytes(), self.tensors.tobytes(), self.entries.tobytes()
        return *parts, previews, _checksum(*parts, previews)


def encode_page(items: Sequence[NodeItem]) -> Page:
    """Return the page of nodes; the statistics of their gradients are taken here.

    Parameters
    ----------
    items : sequence of NodeItem

    Returns
    -------
    Page
    """
    nodes = numpy.array(
        [
            (i.node, i.state, i.sequence_nr, i.started, i.duration, _count(i.incoming), _count(i.produced))
            for i in items
        ],
        NODE,
    )
    met = [s for i in items for s in (*(i.incoming or ()), *(i.produced or ()))]
    measured = [s if s is None or s.source is None else s.source for s in met]
    fresh = list(dict.fromkeys(s for s in measured if s is not None and s.told is None))
    found = digest([snapshot.array for snapshot in fresh])
    place = {snapshot: at for at, snapshot in enumerate(fresh)}
    rows = numpy.zeros(len(met), TENSOR)
    previews: dict[int, str] = {}
    sources = {
        at: place[snapshot] for at, snapshot in enumerate(measured) if snapshot is not None and snapshot in place
    }
    rows[list(sources)] = found.rows[list(sources.values())]
    for at, source in sources.items() if found.previews else ():
        if source in found.previews:
            previews[at] = found.previews[source]
    for at, snapshot in enumerate(measured):
        if snapshot is not None and snapshot.told is not None:
            _retell(snapshot.told, at, rows, found, previews)
    for at, snapshot in enumerate(met):
        if snapshot is not None and snapshot.first is not None:
            rows[at]["first"][: snapshot.first.size] = snapshot.first
    rows["spec"] = [-1 if snapshot is None else snapshot.spec for snapshot in met]  # -1: an undefined gradient
    rows["value"] = [-1 if snapshot is None else snapshot.value for snapshot in met]
    entries = found.entries
    for at, snapshot in enumerate(fresh):
        if snapshot.shared:
            begin, bins = (int(found.rows[at][name]) for name in ("bins_at", "bins"))
            told = entries[begin : begin + bins].copy(), found.previews.get(at)
            snapshot.told = found.rows[at : at + 1].copy(), *told
    return Page(nodes, rows, entries, previews)


def _retell(told: tuple[Any, Any, str | None], at: int, rows: Any, found: Digest, previews: dict[int, str]) -> None:
    """Put the statistics of a gradient that another page has too into row `at`."""
    row, entries, preview = told
    rows[at] = row[0]
    rows[at]["bins_at"] = found.add_entries(entries["exponent"], entries["count"])
    if preview is not None:
        previews[at] = preview


def decode_page(nodes: bytes, tensors: bytes, entries: bytes, previews: str | None, checksum: int) -> Page:
    """Return the page that :meth:`Page.blobs` has written.

    Parameters
    ----------
    nodes, tensors, entries : bytes
    previews : str or None
    checksum : int

    Returns
    -------
    Page

    Raises
    ------
    ValueError
        If it has been damaged.
    """
    if _checksum(nodes, tensors, entries, previews) != checksum:
        raise ValueError("a page of nodes is damaged: its checksum is another")
    texts = {int(row): str(text) for row, text in json.loads(previews).items()} if previews else {}
    return Page(
        numpy.frombuffer(nodes, NODE), numpy.frombuffer(tensors, TENSOR), numpy.frombuffer(entries, ENTRY), texts
    )


def _count(group: Sequence[Snapshot | None] | None) -> int:
    return -1 if group is None else len(group)


def _checksum(nodes: bytes, tensors: bytes, entries: bytes, previews: str | None) -> int:
    total = zlib.crc32(entries, zlib.crc32(tensors, zlib.crc32(nodes)))
    return zlib.crc32((previews or "").encode(), total)
