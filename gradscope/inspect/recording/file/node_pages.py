"""A page: many nodes of one backward as columns, and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from ...records.moments import UNKNOWN
from ..recorder.gradient_statistics import ENTRY, TENSOR, TensorStatistics, digest, digest_flat

__all__ = [
    "NODE",
    "RAW",
    "STATES",
    "Batch",
    "DeviceSnapshot",
    "GradientFormat",
    "PageTemplate",
    "PackedPage",
    "Page",
    "GradientSnapshot",
    "decode_pages",
    "encode_page",
]

STATES = ("done", "failed")

NODE = numpy.dtype([
    ("node", "<i4"), ("state", "u1"), ("sequence_nr", "<u8"), ("started", "<i8"), ("duration", "<i8"),
    ("incoming", "<i2"), ("produced", "<i2"),
])  # fmt: skip
"""A node that has run: which (its row in the table `nodes`), when and for how long (ns since the run began), and how
many gradients are known of it, -1 where nobody looked. Their rows follow each other in the page."""

SMALL_FORM = numpy.dtype([("at", "<u4"), ("spec", "<i4"), ("size", "u1"), ("width", "u1")])
"""A gradient that the page keeps itself: which of the page's it is, its row in the table `specs`, how many elements it
has, and how many bytes each of them."""

_MOST_BINS = 2200  # bins that a histogram has at most: exponents of floats lie within ±1100

RAW = 64
"""Elements up to which the page keeps a gradient itself: its statistics take no less room, and time to make."""


class GradientFormat(NamedTuple):
    """The shape and dtype of a gradient that was taken as its bytes.

    Attributes
    ----------
    spec : int
        Its row in the table `specs`.
    size : int
        How many elements it has.
    kept : bool
        Whether the page keeps it itself.
    """

    shape: tuple[int, ...]
    dtype: Any
    spec: int
    size: int
    kept: bool


class GradientSnapshot:
    """A gradient as it was.

    Parameters
    ----------
    spec : int
        Its row in the table `specs`.
    array : ndarray, optional
        A copy, where its statistics are still to be taken, or its elements to be kept.
    value : int
        Its row in `tensor_values`, -1 unless its elements are kept.
    measured : TensorStatistics, optional
        Its statistics.
    """

    __slots__ = ("array", "measured", "spec", "value")

    measured: TensorStatistics | None

    def __init__(self, spec: int, array: Any = None, value: int = -1, measured: TensorStatistics | None = None) -> None:
        self.spec = spec
        self.array = array
        self.value = value
        self.measured = measured


class DeviceSnapshot(GradientSnapshot):
    """A gradient of which a device takes the statistics: they are waited for when they are asked for.

    Parameters
    ----------
    taken : object
        What :attr:`OnDevice.take_statistics` has returned.
    """

    __slots__ = ("_known", "taken")

    def __init__(self, spec: int, taken: Any) -> None:
        self.spec, self.array, self.value = spec, None, -1
        self.taken = taken
        self._known: TensorStatistics | None = None

    @property
    def measured(self) -> TensorStatistics:  # type: ignore[override]
        """Its statistics."""
        if self._known is None:
            try:
                self._known = TensorStatistics.of(self.taken.read())
            except RuntimeError:  # the device has failed, and what it has counted is lost
                self._known = TensorStatistics.of(UNKNOWN)
        return self._known


class PageTemplate:
    """The part of a page that repeats from one backward to the next: all but numbers, times and values.

    Parameters
    ----------
    places, rows : sequence of int
        Of each node where it stands in the backward, and its row in the table `nodes`.
    incoming, produced : sequence of int
        How many gradients it was given and has made, -1 where nobody looked.
    forms : sequence of GradientFormat or None
        Of these gradients, those that were taken as bytes.

    Attributes
    ----------
    nodes : ndarray of NODE
        Without numbers and times.
    small : ndarray of SMALL_FORM
        Of the gradients that the page keeps itself.
    gradients : int
        How many there are.
    kept, others : list of int, or None where the page keeps all
        Which these are, and which are not.
    """

    __slots__ = ("gradients", "kept", "nodes", "others", "places", "small")

    def __init__(
        self,
        places: Sequence[int],
        rows: Sequence[int],
        incoming: Sequence[int],
        produced: Sequence[int],
        forms: Sequence[GradientFormat | None],
    ) -> None:
        self.places = numpy.array(places)
        self.nodes = numpy.zeros(len(rows), NODE)
        self.nodes["node"], self.nodes["incoming"], self.nodes["produced"] = rows, incoming, produced
        shown = [(at, f.spec, f.size, f.dtype.itemsize) for at, f in enumerate(forms) if f is not None and f.kept]
        self.small = numpy.array(shown, SMALL_FORM)
        self.gradients = len(forms)
        self.kept: list[int] | None = None
        self.others: list[int] | None = None
        if len(shown) < len(forms):
            self.kept = self.small["at"].tolist()
            self.others = [at for at, form in enumerate(forms) if form is None or not form.kept]


class Batch:
    """Consecutive nodes of one backward that have run, on their way to the writer.

    Parameters
    ----------
    task : int
        The row of the table `tasks`.
    sequence_nrs : ndarray of uint64
        Of the nodes, in the order in which they ran.
    times : (list of int, list of int)
        Of each node when it started and ended, in ns since the run began.
    gradients : list
        The gradients: bytes where the page keeps them, a GradientSnapshot where not, None for an undefined one.
    failed : bool
        Whether the last of the nodes did.

    Attributes
    ----------
    raw : bytes
        The gradients that the page keeps, joined: while they wait, their memory serves the backward that goes on.
    others : list of GradientSnapshot or None
        Those that it does not.
    """

    __slots__ = ("failed", "others", "template", "raw", "sequence_nrs", "task", "times")

    def __init__(
        self,
        task: int,
        template: PageTemplate,
        sequence_nrs: Any,
        times: tuple[Any, Any],
        gradients: list[Any],
        failed: bool,
    ) -> None:
        self.task = task
        self.template = template
        self.sequence_nrs = sequence_nrs
        self.times = times
        self.raw = b"".join(gradients if template.kept is None else [gradients[at] for at in template.kept])
        self.others: list[GradientSnapshot | None] = [gradients[at] for at in template.others or ()]
        self.failed = failed

    def __len__(self) -> int:
        return len(self.template.nodes)


@dataclass(frozen=True)
class Page:
    """The columns of consecutive nodes of one backward."""

    nodes: Any
    tensors: Any
    entries: Any
    previews: dict[int, str]

    def first_tensors(self) -> Any:
        """Return, for each node, at which row of `tensors` its own begin."""
        counts = _counts(self.nodes)
        return numpy.cumsum(counts) - counts


@dataclass(frozen=True)
class PackedPage:
    """A page as it stands in the file.

    Attributes
    ----------
    tensors : ndarray of TENSOR
        Of the gradients that the page does not keep themselves.
    small : ndarray of SMALL_FORM
        The gradients that it does, and in `raw` their elements, one after the other.
    """

    nodes: Any
    tensors: Any
    small: Any
    raw: bytes
    entries: Any
    previews: dict[int, str]

    def blobs(self) -> tuple[bytes, bytes, bytes, bytes, str | None, int]:
        """Return what stands in the table `pages`."""
        previews = json.dumps(self.previews) if self.previews else None
        small = self.small.tobytes() + self.raw
        parts = self.nodes.tobytes(), self.tensors.tobytes(), self.entries.tobytes(), small
        return *parts, previews, _checksum(*parts, previews)

    def first_bad(self) -> int | None:
        """Return the first node that has a NaN or Inf among its gradients, None if there is none."""
        odd = (self.tensors["nans"] > 0) | (self.tensors["infs"] > 0)
        bad: list[int] = self._others()[odd].tolist()[:1] if odd.any() else []
        if self.raw:
            finite = numpy.isfinite(self._elements())
            if not finite.all():
                bad.append(int(self.small["at"][numpy.searchsorted(self._ends(), int(finite.argmin()), side="right")]))
        return int(numpy.searchsorted(numpy.cumsum(_counts(self.nodes)), min(bad), side="right")) if bad else None

    def told(self) -> Page:
        """Return the page with the statistics of all its gradients."""
        rows = numpy.zeros(int(_counts(self.nodes).sum()), TENSOR)
        others = self._others()
        rows[others] = self.tensors
        previews = {int(others[at]): text for at, text in self.previews.items()}
        if not len(self.small):
            return Page(self.nodes, rows, self.entries, previews)
        where = self.small["at"]
        found = digest_flat(self._elements(), self.small["size"].astype(numpy.int64))
        rows[where] = found.rows
        rows["spec"][where] = self.small["spec"]
        rows["bins_at"][where] += len(self.entries)
        return Page(self.nodes, rows, numpy.concatenate([self.entries, found.entries]), previews)

    def _others(self) -> Any:
        """Return which gradients of the page `tensors` tells of."""
        is_other = numpy.ones(int(_counts(self.nodes).sum()), bool)
        is_other[self.small["at"]] = False
        return numpy.flatnonzero(is_other)

    def _ends(self) -> Any:
        return numpy.cumsum(self.small["size"], dtype=numpy.int64)

    def _elements(self) -> Any:
        """Return the elements of the small gradients, one after the other."""
        widths = self.small["width"]
        if (widths == widths[0]).all():
            return numpy.frombuffer(self.raw, f"<f{widths[0]}")
        lengths = self.small["size"].astype(numpy.int64) * widths
        parts = zip((numpy.cumsum(lengths) - lengths).tolist(), self.small["size"].tolist(), widths.tolist())
        return numpy.concatenate(
            [numpy.frombuffer(self.raw, f"<f{width}", size, begin) for begin, size, width in parts],
            dtype=numpy.float64,
        )


def _counts(nodes: Any) -> Any:
    """Return how many gradients are kept of each node."""
    return numpy.maximum(nodes["incoming"], 0) + numpy.maximum(nodes["produced"], 0).astype(numpy.int64)


def encode_page(batches: Sequence[Batch]) -> PackedPage:
    """Return the page of nodes; the statistics of their gradients that are still missing are taken here.

    Parameters
    ----------
    batches : sequence of Batch
        Of one backward.
    """
    nodes = numpy.concatenate([batch.template.nodes for batch in batches])
    small = numpy.concatenate([batch.template.small for batch in batches])
    others: list[GradientSnapshot | None] = []
    node = gradient = form = 0
    for batch in batches:
        template = batch.template
        part = nodes[node : node + len(batch)]
        part["sequence_nr"] = batch.sequence_nrs
        part["started"], ended = batch.times
        part["duration"] = ended - part["started"]
        part["state"][-1] = batch.failed
        small["at"][form : form + len(template.small)] += gradient
        others += batch.others
        node, gradient, form = node + len(batch), gradient + template.gradients, form + len(template.small)
    tensors, entries, previews = _describe(others)
    return PackedPage(nodes, tensors, small, b"".join([batch.raw for batch in batches]), entries, previews)


def _describe(met: Sequence[GradientSnapshot | None]) -> tuple[Any, Any, dict[int, str]]:
    """Return the rows of gradients, their histograms, and their first elements where they are text."""
    rows = numpy.zeros(len(met), TENSOR)
    rows["spec"] = rows["value"] = -1  # -1 stands for an undefined gradient
    snapshots = [(at, snapshot) for at, snapshot in enumerate(met) if snapshot is not None]
    if not snapshots:
        return rows, numpy.zeros(0, ENTRY), {}
    fresh = list(dict.fromkeys(snapshot for _, snapshot in snapshots if snapshot.measured is None))
    found = digest([snapshot.array for snapshot in fresh])
    for index, snapshot in enumerate(fresh):
        # The snapshot may come again on another page, after its copy has been let go.
        snapshot.measured = found.measured(index)
    told: dict[GradientSnapshot, TensorStatistics] = {snapshot: snapshot.measured for _, snapshot in snapshots}  # type: ignore[misc]
    lengths = numpy.array([len(measured.counts) for measured in told.values()], numpy.int64)
    begins = dict(zip(told, (numpy.cumsum(lengths) - lengths).tolist()))
    entries = numpy.zeros(int(lengths.sum()), ENTRY)
    entries["exponent"] = numpy.concatenate([measured.exponents for measured in told.values()])
    entries["count"] = numpy.concatenate([measured.counts for measured in told.values()])
    places = [at for at, _ in snapshots]
    rows[places] = numpy.frombuffer(b"".join([told[snapshot].row for _, snapshot in snapshots]), TENSOR)
    rows["spec"][places] = [snapshot.spec for _, snapshot in snapshots]
    rows["value"][places] = [snapshot.value for _, snapshot in snapshots]
    rows["bins_at"][places] = [begins[snapshot] for _, snapshot in snapshots]
    previews = {at: text for at, snapshot in snapshots if (text := told[snapshot].preview) is not None}
    return rows, entries, previews


def decode_pages(blobs: Sequence[Sequence[Any]]) -> list[Page]:
    """Return the pages of which :meth:`PackedPage.blobs` has made these; many small ones cost little more than one.

    Raises
    ------
    ValueError
        If one has been damaged.
    """
    packed = [_unpack(*parts) for parts in blobs]
    if len(packed) == 1:
        return [packed[0].told()]
    ends = numpy.cumsum([len(page.nodes) for page in packed])
    nodes = _joined([page.nodes for page in packed], NODE)
    rows = numpy.cumsum(_counts(nodes))[ends - 1].tolist()
    begins = [0, *rows[:-1]]
    joined = _join(packed, nodes, begins, rows).told()
    return [
        Page(
            joined.nodes[end - len(page.nodes) : end],
            joined.tensors[begin:stop],
            joined.entries,
            {row - begin: text for row, text in joined.previews.items() if begin <= row < stop},
        )
        for page, end, begin, stop in zip(packed, ends.tolist(), begins, rows)
    ]


def _unpack(
    nodes: bytes, tensors: bytes, entries: bytes, small: bytes, previews: str | None, checksum: int
) -> PackedPage:
    if _checksum(nodes, tensors, entries, small, previews) != checksum:
        raise ValueError("a page of nodes is damaged: its checksum is another")
    texts = {int(row): str(text) for row, text in json.loads(previews).items()} if previews else {}
    ran, rows = numpy.frombuffer(nodes, NODE), numpy.frombuffer(tensors, TENSOR)
    bins = numpy.frombuffer(entries, ENTRY)
    count = int(_counts(ran).sum()) - len(rows)
    if count < 0 or count * SMALL_FORM.itemsize > len(small):
        raise ValueError("a page of nodes is damaged: it does not hold the gradients that it tells of")
    if len(rows) and ((rows["bins"] < 0).any() or (rows["bins"] > _MOST_BINS).any()):
        raise ValueError("a page of nodes is damaged: a histogram has more bins than there are exponents")
    forms = numpy.frombuffer(small, SMALL_FORM, count)
    return PackedPage(ran, rows, forms, small[forms.nbytes :], bins, texts)


def _join(pages: Sequence[PackedPage], nodes: Any, begins: Sequence[int], ends: Sequence[int]) -> PackedPage:
    """Return pages as one, their gradients at rows `begins` to `ends`."""
    tensors = _joined([page.tensors for page in pages], TENSOR).copy()
    small = _joined([page.small for page in pages], SMALL_FORM).copy()
    tensors["bins_at"] += _offsets([len(page.entries) for page in pages], [len(page.tensors) for page in pages])
    forms = [len(page.small) for page in pages]
    small["at"] += numpy.repeat(begins, forms).astype(small["at"].dtype)
    nbytes = numpy.cumsum(small["size"].astype(numpy.int64) * small["width"])
    wanted = numpy.append(0, nbytes)[numpy.cumsum(forms)]
    held = numpy.cumsum([len(page.raw) for page in pages])
    if (wanted != held).any() or (small["at"] >= numpy.repeat(ends, forms)).any():
        raise ValueError("a page of nodes is damaged: its gradients are not where it says")
    others = _offsets([len(page.tensors) for page in pages])
    previews = {int(first) + at: text for first, page in zip(others, pages) for at, text in page.previews.items()}
    entries = _joined([page.entries for page in pages], ENTRY)
    return PackedPage(nodes, tensors, small, b"".join([page.raw for page in pages]), entries, previews)


def _joined(parts: Sequence[Any], dtype: Any) -> Any:
    """Return arrays of one structured type as one: concatenate() takes ten times as long over what types they have."""
    return numpy.frombuffer(b"".join(parts), dtype)


def _offsets(lengths: Sequence[int], times: Sequence[int] | None = None) -> Any:
    """Return where each of some parts begins, for as many rows as `times` says, one by default."""
    begins = numpy.cumsum(lengths) - lengths
    return begins if times is None else numpy.repeat(begins, times).astype(numpy.int32)


def _checksum(nodes: bytes, tensors: bytes, entries: bytes, raw: bytes, previews: str | None) -> int:
    total = 0
    for part in (nodes, tensors, entries, raw, (previews or "").encode()):
        total = zlib.crc32(part, total)
    return total
