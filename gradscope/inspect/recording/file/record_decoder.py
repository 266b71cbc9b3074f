"""From rows of a recording back to the records that every face of the debugger shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...output.terminal_text import one_line
from ...records.records import EdgeRecord, Location, NodeRecord, SavedRecord, TensorSpec, TensorSummary, operator_name
from ...records.tensor_statistics import combined_norm
from .node_pages import STATES, Page
from .untrusted_database import Database

__all__ = ["RecordDecoder", "StaticNode"]

_MANY = 500  # parameters that one statement gets
_BINS_APART = 64  # bins per gradient between the histograms that are converted together


@dataclass(frozen=True, slots=True)
class StaticNode:
    """The part of a node that does not change from iteration to iteration.

    Attributes
    ----------
    place : int
        When it was first met in its backward: its key.
    """

    name: str
    operator: str
    place: int
    module: str
    parameter: str
    location: Location | None
    edges: tuple[EdgeRecord, ...]
    outputs: tuple[TensorSpec, ...]
    saved: tuple[SavedRecord, ...]


class _View:
    """The tensors of some nodes of a page, as Python's own numbers."""

    def __init__(self, page: Page, begins: list[int], end: int) -> None:
        self.page = page
        self.first = begins[0] if begins else 0
        part = page.tensors[self.first : end]
        self.rows = part.tolist()
        self.elements = part["first"].tolist()
        # One conversion does for all histograms, unless those of a few nodes lie far apart.
        spans = [(row[1], row[1] + row[2]) for row in self.rows if row[2] > 0]
        self._from = min([begin for begin, _ in spans], default=0)
        reach = max([stop for _, stop in spans], default=0) - self._from
        near = self._from >= 0 and reach <= _BINS_APART * len(spans)
        self._entries = page.entries[self._from : self._from + reach].tolist() if near else None

    def histogram(self, at: int, count: int) -> tuple[tuple[int, int], ...]:
        """Return `count` bins from `at` on."""
        if self._entries is None:
            return tuple(self.page.entries[at : at + count].tolist())
        return tuple(self._entries[at - self._from : at - self._from + count])


def _norm_of(known: tuple[TensorSummary | None, ...] | None) -> float | None:
    """Return the norm of the incoming gradients, of which there is one as a rule."""
    if known is not None and len(known) == 1 and known[0] is not None:
        return abs(known[0].norm)
    return combined_norm(None if one is None else one.norm for one in known or ())


def _preview(values: tuple[float, ...], more: bool) -> str:
    """Return the first elements as text; most gradients come twice, from one node and to the next."""
    if 0 in values:  # the two zeros are one key
        return _written(values, more)
    return _kept(values, more)


def _written(values: tuple[float, ...], more: bool) -> str:
    texts = ", ".join([f"{value:.4g}" for value in values])
    return f"[{texts}, ...]" if more else f"[{texts}]"


_kept = lru_cache(maxsize=256)(_written)


class RecordDecoder:
    """Makes records of a page's rows; reads what nodes share once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._nodes: dict[int, StaticNode] = {}
        self._locations: dict[int, Location] = {}
        self._modules: dict[int, str] = {}
        self._specs: dict[int, tuple[TensorSpec, int, int]] = {}

    def records(self, page: Page, start: int, stop: int, first: int) -> list[NodeRecord]:
        """Return the records of nodes `start` to `stop` of a page whose first node has index `first`."""
        rows = page.nodes[start:stop].tolist()
        begins = page.first_tensors()[start : stop + 1].tolist()
        end_of_all = begins.pop() if stop < len(page.nodes) else len(page.tensors)
        view = _View(page, begins, end_of_all)
        static = self.nodes([row[0] for row in rows])
        if not {row[0] for row in view.rows if row[0] >= 0} <= self._specs.keys():
            self._learn_specs()
        records = []
        for offset, (row, begin) in enumerate(zip(rows, begins)):
            number, state, sequence_nr, _, duration, incoming, produced = row
            node = static[number]
            end = begin + max(incoming, 0)
            grad_outputs = self._group(view, begin, incoming, "grad_outputs")
            # The arguments are in the order of the record's fields: by keyword the call takes half as long again.
            record = NodeRecord(
                first + start + offset, node.place, node.name, node.operator, sequence_nr, node.module, node.parameter,
                node.location, node.edges, STATES[state], grad_outputs,
                self._group(view, end, produced, "grad_inputs"), node.saved, node.outputs, _norm_of(grad_outputs),
                duration,
            )  # fmt: skip
            records.append(record)
        return records

    def _group(self, view: _View, begin: int, count: int, name: str) -> tuple[TensorSummary | None, ...] | None:
        if count < 0:
            return None
        return tuple([self._summary(view, begin + nr, f"{name}[{nr}]") for nr in range(count)])

    def _summary(self, view: _View, at: int, name: str) -> TensorSummary | None:
        row = view.rows[at - view.first]
        number, bins_at, bins, shown, _, zeros, nans, infs, norm, low, high, mean, std, _ = row
        if number < 0:
            return None
        spec, numel, itemsize = self._specs[number]
        if numel <= nans + infs:
            low = high = mean = std = None
        if shown < 0:
            preview = one_line(view.page.previews[at])
        else:
            preview = _preview(tuple(view.elements[at - view.first][:shown]), numel > shown)
        return TensorSummary(
            name, spec.shape, spec.dtype, spec.device, numel, numel * itemsize, norm, low, high, mean, std,
            zeros, nans, infs, view.histogram(bins_at, bins) if bins else (), preview,
        )  # fmt: skip

    # --- what nodes share ---

    def nodes(self, numbers: Any) -> dict[int, StaticNode]:
        """Return the static part of rows of the table `nodes`, by row."""
        missing = sorted({number for number in map(int, numbers) if number not in self._nodes})
        for at in range(0, len(missing), _MANY):
            self._learn_nodes(missing[at : at + _MANY])
        if not self._nodes.keys() >= set(missing):
            raise ValueError("what some nodes are is missing")
        return self._nodes

    def _learn_nodes(self, numbers: list[int]) -> None:
        self._learn_names()
        which = f"({', '.join('?' * len(numbers))})"
        for row in self._database.rows(f"SELECT * FROM nodes WHERE id IN {which}", *numbers):
            number, name, module, parameter, location, place, edges, outputs, saved = row
            self._nodes[number] = StaticNode(
                name=_text(name),
                operator=operator_name(_text(name)),
                place=place,
                module=self._modules[module],
                parameter=_text(parameter),
                location=None if location is None else self._locations[location],
                edges=tuple(EdgeRecord(target, input_nr) for target, input_nr in json.loads(edges)),
                outputs=tuple(
                    TensorSpec(tuple(shape), _text(dtype), _text(device))
                    for shape, dtype, device in json.loads(outputs)
                ),
                saved=tuple(
                    SavedRecord(
                        _text(n),
                        None if shape is None else tuple(shape),
                        dtype and _text(dtype),
                        nbytes,
                        None,
                        None,
                        "released",
                    )
                    for n, shape, dtype, nbytes in json.loads(saved)
                ),
            )

    def _learn_names(self) -> None:
        last = max(self._modules, default=0)
        for number, path in self._database.rows("SELECT * FROM modules WHERE id > ?", last):
            self._modules[number] = _text(path)
        last = max(self._locations, default=0)
        for number, *facts in self._database.rows("SELECT * FROM locations WHERE id > ?", last):
            filename, lineno, function, source = facts
            self._locations[number] = Location(_text(filename), int(lineno), _text(function), _text(source))

    def _learn_specs(self) -> None:
        last = max(self._specs, default=0)
        rows = self._database.rows("SELECT * FROM specs WHERE id > ?", last)
        for number, shape, dtype, device, itemsize in rows:
            sizes = tuple(int(n) for n in json.loads(shape))
            numel = 1
            for size in sizes:
                numel *= size
            self._specs[number] = TensorSpec(sizes, _text(dtype), _text(device)), numel, int(itemsize)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} stands where text belongs")
    return one_line(value)
