"""The nodes of a recorded backward, as the widgets want them: no more is read than is shown."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import islice

from gradscope.inspect.recording import BackwardRecord, Recording, RecordingError
from gradscope.inspect.recording.file.node_pages import STATES, Page
from gradscope.inspect.records.node_records import NodeRecords
from gradscope.inspect.records.records import NodeRecord, operator_name
from gradscope.inspect.records.tensor_statistics import combined_norm
from gradscope_tui.widgets.labels import UNREADABLE

__all__ = ["RecordedNodes"]

_BLOCK = 64
_KEPT = 32
_BATCH = 500
"""Nodes that are read at once: as long as that takes, no other thread can read from the recording."""


class RecordedNodes(NodeRecords):
    """The nodes of one backward; the blocks that were looked at last are remembered.

    Parameters
    ----------
    recording : Recording
        Open.
    task : BackwardRecord
        One of its backwards.
    """

    def __init__(self, recording: Recording, task: BackwardRecord) -> None:
        self._recording = recording
        self.task = task
        self._blocks: OrderedDict[int, list[NodeRecord]] = OrderedDict()
        self._norms: Mapping[int, float] | None = None

    def __len__(self) -> int:
        return self.task.count

    def _at(self, index: int) -> NodeRecord:
        return self._block(index // _BLOCK)[index % _BLOCK]

    def __iter__(self) -> Iterator[NodeRecord]:
        for start in range(0, len(self), _BATCH):
            yield from self._between(start, min(start + _BATCH, len(self)))

    def _between(self, start: int, stop: int) -> list[NodeRecord]:
        """Read some nodes; those that are damaged are told by a name, and lose nobody the others."""
        try:
            return self.task.nodes[start:stop]
        except RecordingError:
            if stop - start == 1:
                return _unreadable(start, stop)
            middle = (start + stop) // 2
            return self._between(start, middle) + self._between(middle, stop)

    def _block(self, number: int) -> list[NodeRecord]:
        block = self._blocks.get(number)
        if block is None:
            block = self._between(number * _BLOCK, min((number + 1) * _BLOCK, len(self)))
            self._blocks[number] = block
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return block

    def known_norms(self) -> Mapping[int, float]:
        """Return the norms of the gradients that have come to nodes, by their places; read once."""
        if self._norms is None:
            self._norms = dict(self._read_norms())
        return self._norms

    def _read_norms(self) -> Iterator[tuple[int, float]]:
        """Yield them from the columns of the pages: making records would take twenty times as long."""
        for first, number in self.task.nodes.pages():
            with contextlib.suppress(RecordingError):  # on a damaged page none is known
                yield from _norms_on(self._recording.page(number), first)

    @property
    def order(self) -> Hashable:
        """What tells whether the nodes stand as before: they do, as long as there are no more of them."""
        return self.task.id, self.task.count

    def candidates(self, start: int = 0) -> Iterator[NodeRecord]:
        """Yield what breakpoints ask of the nodes from a place on."""
        return islice(self.bare(), start, None)

    def bare(self) -> Iterator[NodeRecord]:
        """Yield all nodes without their gradients, which are most of what there is to read."""
        pages = self.task.nodes.pages()
        ends = [first for first, _ in pages[1:]] + [len(self)]
        for (first, number), end in zip(pages, ends):
            try:
                yield from self._bare(first, number)
            except RecordingError:
                yield from _unreadable(first, end)

    def _bare(self, first: int, number: int) -> list[NodeRecord]:
        """Return the nodes of a page without their gradients."""
        rows = self._recording.page(number).nodes
        nodes = []
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            known = self._recording.static(part["node"].tolist())
            for index, (row, state, sequence_nr, *_) in enumerate(part.tolist(), first + start):
                node = known[row]
                nodes.append(
                    NodeRecord(
                        index=index,
                        key=node.place,
                        name=node.name,
                        operator=operator_name(node.name),
                        sequence_nr=sequence_nr,
                        module=node.module,
                        parameter=node.parameter,
                        location=node.location,
                        edges=node.edges,
                        state=STATES[state],
                    )
                )
        return nodes

    @property
    def first_bad(self) -> int | None:
        """The first node with a NaN or an infinity among its gradients; None where there is none."""
        return self.task.bad

    def some(self, among: range, wanted: Callable[[int], bool]) -> Iterator[NodeRecord]:
        """Yield the wanted ones of some nodes, in that order; parts in which most are wanted are read at once."""
        for start in range(0, len(among), _BATCH):
            part = among[start : start + _BATCH]
            indices = [index for index in part if wanted(index)]
            if len(indices) * 8 > len(part):
                first = min(part)
                read = self._between(first, max(part) + 1)
                yield from (read[index - first] for index in indices)
            else:
                yield from (self._between(index, index + 1)[0] for index in indices)


def _norms_on(page: Page, first: int) -> Iterator[tuple[int, float]]:
    """Yield the nodes of a page, the first of which has index `first`, with the norms of what has come to them."""
    rows = page.tensors[["spec", "norm"]].tolist()
    norms = [None if spec < 0 else norm for spec, norm in rows]  # -1 stands for an undefined gradient
    for index, (begin, count) in enumerate(zip(page.first_tensors().tolist(), page.nodes["incoming"].tolist()), first):
        norm = combined_norm(norms[begin : begin + max(count, 0)])
        if norm is not None:
            yield index, norm


def _unreadable(start: int, stop: int) -> list[NodeRecord]:
    """Return what is shown in the place of nodes that the file has lost."""
    lost = UNREADABLE
    return [NodeRecord(index, -1 - index, lost, lost, 0, "", "", None, (), "failed") for index in range(start, stop)]
