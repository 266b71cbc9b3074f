"""Samples of a run's series, out of what the recorder hands over: norms of parameters' gradients, and losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from ..recorder.gradient_statistics import TENSOR
from .node_pages import Batch, GradientSnapshot, PageTemplate
from .run_series import RunSeries

__all__ = ["SeriesSamples"]

_MOST_NODES = 200_000  # nodes after which the recorder forgets the oldest rows
_NAME, _PARAMETER = 0, 3  # the positions of these columns in a row of `nodes`


class _Places(NamedTuple):
    """Where in a batch the gradients of parameters are.

    Attributes
    ----------
    small, others : ndarray of int
        Rows of the series to which those belong that the page keeps itself, and those that it describes.
    begins, sizes, widths : list of int
        Of the small ones: where in the batch's bytes they begin, how many elements they have, of how many bytes each.
    take : ndarray of int, or None
        The places of all their elements, where all of the batch's have one width.
    at : list of int
        Which of the batch's others they are.
    """

    small: Any
    begins: list[int]
    sizes: list[int]
    widths: list[int]
    take: Any
    others: Any
    at: list[int]


class SeriesSamples:
    """Collects the samples of a commit, and puts them into the series at its end.

    Parameters
    ----------
    series : RunSeries
        To be told.
    """

    def __init__(self, series: RunSeries) -> None:
        self.series = series
        self._loss = series.row("loss", "")
        self._parameters: dict[int, int] = {}  # from a row of the table `nodes` to the row of its series
        self._places: dict[int, tuple[PageTemplate, _Places]] = {}
        self._waiting: dict[int, list[tuple[int, Batch]]] = {}
        self._losses: list[tuple[int, float]] = []

    def describe(self, rows: Sequence[Sequence[Any]]) -> None:
        """Learn which rows of the table `nodes` are parameters."""
        for row in rows:
            if row[_PARAMETER]:
                self._parameters[row[_NAME]] = self.series.row("gradient", row[_PARAMETER])
        for number in list(self._parameters)[: max(0, len(self._parameters) - _MOST_NODES)]:
            del self._parameters[number]

    def note(self, iteration: int, batch: Batch) -> None:
        """Take a batch, whose statistics have been taken, for what it brought to parameters."""
        self._waiting.setdefault(id(batch.template), []).append((iteration, batch))

    def note_loss(self, iteration: int, loss: float) -> None:
        """Take the loss of a backward."""
        self._losses.append((iteration, loss))

    def flush(self) -> None:
        """Put what has been collected into the series."""
        parts: list[tuple[Any, Any, Any]] = []
        if self._losses:
            when, losses = zip(*self._losses)
            parts.append((numpy.full(len(losses), self._loss), when, losses))
        for of_template in self._waiting.values():
            parts += self._norms(self._find(of_template[0][1].template), of_template)
        self._waiting, self._losses = {}, []
        if parts:
            rows, iterations, values = (numpy.concatenate(part) for part in zip(*parts))
            self.series.add_rows(rows, iterations, values)

    @staticmethod
    def _norms(places: _Places, taken: Sequence[tuple[int, Batch]]) -> Iterator[tuple[Any, Any, Any]]:
        """Yield rows of the series, iterations and norms of batches that have one template."""
        iterations = numpy.array([iteration for iteration, _ in taken])
        if len(places.small):
            norms = _small_norms([batch.raw for _, batch in taken], places)
            yield numpy.tile(places.small, len(taken)), numpy.repeat(iterations, len(places.small)), norms
        if len(places.others):
            norms = _other_norms([batch.others[at] for _, batch in taken for at in places.at])
            defined = ~numpy.isneginf(norms)
            rows, iterations = numpy.tile(places.others, len(taken)), numpy.repeat(iterations, len(places.others))
            yield rows[defined], iterations[defined], norms[defined]

    def _find(self, template: PageTemplate) -> _Places:
        known = self._places.get(id(template))
        if known is None:
            if len(self._places) >= _MOST_NODES // 100:
                self._places.clear()
            # The entry keeps the template alive, so that no other template gets its id().
            known = self._places[id(template)] = template, self._look(template)
        return known[1]

    def _look(self, template: PageTemplate) -> _Places:
        nodes = template.nodes
        counts = numpy.maximum(nodes["incoming"], 0).astype(numpy.int64)
        begins = (
            numpy.cumsum(counts + numpy.maximum(nodes["produced"], 0)) - counts - numpy.maximum(nodes["produced"], 0)
        )
        gradients = {
            begin: self._parameters[row]
            for row, count, begin in zip(nodes["node"].tolist(), counts.tolist(), begins.tolist())
            if count and row in self._parameters
        }
        sizes, widths = template.small["size"].astype(numpy.int64), template.small["width"].astype(numpy.int64)
        starts = numpy.cumsum(sizes * widths) - sizes * widths
        small = [at for at, (g, n) in enumerate(zip(template.small["at"].tolist(), sizes)) if n and g in gradients]
        others = [at for at, gradient in enumerate(template.others or ()) if gradient in gradients]
        same = len(small) > 0 and bool((widths == widths[0]).all())
        take = None
        if same:
            firsts = starts // widths
            take = numpy.concatenate([numpy.arange(firsts[at], firsts[at] + sizes[at]) for at in small])
        return _Places(
            numpy.array([gradients[int(template.small["at"][at])] for at in small], numpy.int64),
            starts[small].tolist(), sizes[small].tolist(), widths[small].tolist(), take,
            numpy.array([gradients[(template.others or [])[at]] for at in others], numpy.int64), others,
        )  # fmt: skip


def _small_norms(raws: Sequence[bytes], places: _Places) -> Any:
    """Return the norms of gradients that stand in the bytes of batches, batch by batch."""
    if places.take is not None:
        table = numpy.frombuffer(b"".join(raws), f"<f{places.widths[0]}").reshape(len(raws), -1)
        flat = table[:, places.take].astype(numpy.float64)
    else:
        parts = list(zip(places.widths, places.sizes, places.begins))
        flat = numpy.array([
            numpy.concatenate([numpy.frombuffer(raw, f"<f{width}", size, begin) for width, size, begin in parts])
            for raw in raws
        ], numpy.float64)  # fmt: skip
    sizes = numpy.array(places.sizes)
    starts = numpy.cumsum(sizes) - sizes
    with numpy.errstate(all="ignore"):
        norms = numpy.sqrt(numpy.add.reduceat(flat * flat, starts, axis=1))
        if not (numpy.isfinite(norms) & (norms > 0)).all():  # a square may have over- or underflowed
            largest = numpy.maximum.reduceat(numpy.abs(flat), starts, axis=1)
            scale = numpy.where((largest > 0) & numpy.isfinite(largest), largest, 1.0)
            shares = flat / numpy.repeat(scale, sizes, axis=1)
            norms = numpy.sqrt(numpy.add.reduceat(shares * shares, starts, axis=1)) * scale
    return norms.reshape(-1)


def _other_norms(gradients: Sequence[GradientSnapshot | None]) -> Any:
    """Return norms, NaN where elements are bad; -Inf where a gradient is undefined."""
    norms = numpy.full(len(gradients), -numpy.inf)
    met = [(nr, taken.measured) for nr, taken in enumerate(gradients) if taken is not None]
    told = [(nr, measured) for nr, measured in met if measured is not None]
    if told:
        rows = numpy.frombuffer(b"".join([measured.row for _, measured in told]), TENSOR)
        norms[[nr for nr, _ in told]] = numpy.where(rows["nans"] + rows["infs"] > 0, numpy.nan, rows["norm"])
    return norms
