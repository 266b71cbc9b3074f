"""A page: many nodes of one backward as columns, and back."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from .digest import ENTRY, TENSOR, Measured, digest, digest_flat

__all__ = ["NODE", "RAW", "STATES", "NodeItem", "Page", "Raw", "Snapshot", "decode_page", "encode_page"]

STATES = ("done", "failed")

NODE = numpy.dtype([
    ("node", "<i4"), ("state", "u1"), ("sequence_nr", "<u8"), ("started", "<i8"), ("duration", "<i8"),
    ("incoming", "<i2"), ("produced", "<i2"),
])  # fmt: skip
"""A node that has run: which (its row in the table `nodes`), when and for how long (ns since the run began), and how
many gradients are known of it, -1 where nobody looked. Their rows follow each other in the page."""

RAW = 64
"""Elements up to which the page keeps a gradient itself: its statistics take no less room, and time to make."""

_KEPT_RAW = -2  # in the column `shown` of such a gradient, with its elements in `zeros` and their bytes in `nans`
_MASK = (1 << 64) - 1  # PyTorch's AccumulateGrad has the largest sequence number there is

Raw = tuple[int, int, bytes]
"""A small gradient of floats: its row in the table `specs`, bytes of an element, all its bytes."""


class Snapshot:
    """A gradient as it was.

    Parameters
    ----------
    spec : int
        Its row in the table `specs`.
    array : ndarray, optional
        A copy, where its statistics are still to be taken, or its elements to be kept.
    value : int
        Its row in `tensor_values`, -1 unless its elements are kept.
    measured : Measured, optional
        Its statistics.
    """

    __slots__ = ("array", "measured", "spec", "value")

    def __init__(self, spec: int, array: Any = None, value: int = -1, measured: Measured | None = None) -> None:
        self.spec = spec
        self.array = array
        self.value = value
        self.measured = measured


class NodeItem(NamedTuple):
    """A node that has run, on its way to the writer."""

    task: int
    node: int
    sequence_nr: int
    started: int
    duration: int
    incoming: Sequence[Raw | Snapshot | None] | None
    produced: Sequence[Raw | Snapshot | None] | None
    state: int = 0


@dataclass(frozen=True)
class Page:
    """The columns of consecutive nodes of one backward.

    Attributes
    ----------
    nodes : ndarray of NODE
    tensors : ndarray of TENSOR
    entries : ndarray of ENTRY
    raw : bytes
        The gradients that are kept themselves, one after the other, until :meth:`told` has told of them too.
    previews : dict of int to str
    """

    nodes: Any
    tensors: Any
    entries: Any
    raw: bytes
    previews: dict[int, str]

    def told(self) -> Page:
        """Return the page with the statistics of all its gradients."""
        if not self.raw:
            return self
        rows = self.tensors.copy()
        where = numpy.flatnonzero(rows["shown"] == _KEPT_RAW)
        sizes, widths = rows["zeros"][where], rows["nans"][where]
        if int(sizes @ widths) != len(self.raw):
            raise ValueError("a page of nodes is damaged: its gradients are more or fewer than it says")
        found = digest_flat(_elements(self.raw, sizes, widths), sizes)
        for name in rows.dtype.names:
            if name not in ("spec", "value"):
                rows[name][where] = found.rows[name]
        rows["bins_at"][where] += len(self.entries)
        return dataclasses.replace(
            self, tensors=rows, entries=numpy.concatenate([self.entries, found.entries]), raw=b""
        )

    def first_tensors(self) -> Any:
        """Return, for each node, at which row of `tensors` its own begin."""
        counts = numpy.maximum(self.nodes["incoming"], 0) + numpy.maximum(self.nodes["produced"], 0).astype(numpy.int64)
        return numpy.cumsum(counts) - counts

    def first_bad(self) -> int | None:
        """Return the first node that has a NaN or Inf among its gradients, None if there is none."""
        kept = self.tensors["shown"] == _KEPT_RAW
        bad = ~kept & ((self.tensors["nans"] > 0) | (self.tensors["infs"] > 0))
        if self.raw:
            where = numpy.flatnonzero(kept)
            sizes, widths = self.tensors["zeros"][where], self.tensors["nans"][where]
            finite = numpy.isfinite(_elements(self.raw, sizes, widths))
            if not finite.all():
                bad[numpy.repeat(where, sizes)[~finite]] = True
        if not bad.any():
            return None
        return int(numpy.searchsorted(self.first_tensors(), int(bad.argmax()), side="right")) - 1

    def blobs(self) -> tuple[bytes, bytes, bytes, bytes, str | None, int]:
        """Return what stands in the table `pages`."""
        previews = json.dumps(self.previews) if self.previews else None
        parts = self.nodes.tobytes(), self.tensors.tobytes(), self.entries.tobytes(), self.raw
        return *parts, previews, _checksum(*parts, previews)


def _elements(raw: bytes, sizes: Any, widths: Any) -> Any:
    """Return the elements of the gradients in `raw`, one after the other."""
    if (widths == widths[0]).all():
        return numpy.frombuffer(raw, f"<f{widths[0]}")
    begins = numpy.cumsum(sizes * widths) - sizes * widths
    parts = zip(begins.tolist(), sizes.tolist(), widths.tolist())
    return numpy.concatenate(
        [numpy.frombuffer(raw, f"<f{width}", size, begin) for begin, size, width in parts], dtype=numpy.float64
    )


def encode_page(items: Sequence[NodeItem]) -> Page:
    """Return the page of nodes; the statistics of their gradients that are still missing are taken here.

    Parameters
    ----------
    items : sequence of NodeItem

    Returns
    -------
    Page
    """
    _, *columns, incoming, produced, states = zip(*items)
    nodes = numpy.zeros(len(items), NODE)
    nodes["node"], _, nodes["started"], nodes["duration"] = columns
    nodes["sequence_nr"] = numpy.fromiter((number & _MASK for number in columns[1]), numpy.uint64, len(items))
    nodes["state"] = states
    for name, groups in (("incoming", incoming), ("produced", produced)):
        nodes[name] = [-1 if group is None else len(group) for group in groups]
    met = [taken for pair in zip(incoming, produced) for group in pair if group for taken in group]
    rows = numpy.zeros(len(met), TENSOR)
    rows["spec"] = rows["value"] = -1  # of an undefined gradient
    raw = [(at, *taken) for at, taken in enumerate(met) if type(taken) is tuple]
    if raw:
        where, specs, widths, parts = zip(*raw)
        places = numpy.array(where)
        rows["spec"][places], rows["nans"][places], rows["shown"][places] = specs, widths, _KEPT_RAW
        rows["zeros"][places] = numpy.array([len(part) for part in parts]) // numpy.array(widths)
    entries, previews = _describe(rows, [(at, taken) for at, taken in enumerate(met) if type(taken) is Snapshot])
    return Page(nodes, rows, entries, b"".join([part for *_, part in raw]), previews)


def _describe(rows: Any, snapshots: Sequence[tuple[int, Snapshot]]) -> tuple[Any, dict[int, str]]:
    """Fill in the rows of gradients; return their histograms, and their first elements where they are text."""
    fresh = list(dict.fromkeys(snapshot for _, snapshot in snapshots if snapshot.measured is None))
    found = digest([snapshot.array for snapshot in fresh])
    for index, snapshot in enumerate(fresh):
        # Another node may have it too, on another page, when the copy is gone.
        snapshot.measured = found.measured(index)
    told = list(dict.fromkeys(snapshot for _, snapshot in snapshots))
    lengths = numpy.array([len(snapshot.measured.counts) for snapshot in told], numpy.int64)  # type: ignore[union-attr]
    begins = dict(zip(told, (numpy.cumsum(lengths) - lengths).tolist()))
    entries = numpy.zeros(int(lengths.sum()), ENTRY)
    if told:
        entries["exponent"] = numpy.concatenate([s.measured.exponents for s in told])  # type: ignore[union-attr]
        entries["count"] = numpy.concatenate([s.measured.counts for s in told])  # type: ignore[union-attr]
        places = numpy.array([at for at, _ in snapshots])
        joined = b"".join([snapshot.measured.row for _, snapshot in snapshots])  # type: ignore[union-attr]
        rows[places] = numpy.frombuffer(joined, TENSOR)
        rows["spec"][places] = [snapshot.spec for _, snapshot in snapshots]
        rows["value"][places] = [snapshot.value for _, snapshot in snapshots]
        rows["bins_at"][places] = [begins[snapshot] for _, snapshot in snapshots]
    previews = {at: s.measured.preview for at, s in snapshots if s.measured and s.measured.preview is not None}
    return entries, previews


def decode_page(nodes: bytes, tensors: bytes, entries: bytes, raw: bytes, previews: str | None, checksum: int) -> Page:
    """Return the page that :meth:`Page.blobs` has written, with the statistics of all its gradients.

    Parameters
    ----------
    nodes, tensors, entries, raw : bytes
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
    if _checksum(nodes, tensors, entries, raw, previews) != checksum:
        raise ValueError("a page of nodes is damaged: its checksum is another")
    texts = {int(row): str(text) for row, text in json.loads(previews).items()} if previews else {}
    columns = numpy.frombuffer(nodes, NODE), numpy.frombuffer(tensors, TENSOR), numpy.frombuffer(entries, ENTRY)
    return Page(*columns, raw, texts).told()


def _checksum(nodes: bytes, tensors: bytes, entries: bytes, raw: bytes, previews: str | None) -> int:
    total = 0
    for part in (nodes, tensors, entries, raw, (previews or "").encode()):
        total = zlib.crc32(part, total)
    return total
