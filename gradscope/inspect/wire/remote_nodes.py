"""The nodes of a backward in another process, by pages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from ..records.node_records import NodeRecords
from ..records.records import NodeRecord

__all__ = ["KnownNodes", "RemoteNodes"]

_PAGE = 128
_LONG_PAGE = 4_096
_GONE = "(gone)"

Fetch = Callable[[int, int], list[NodeRecord]]
FetchNorms = Callable[[], Mapping[int, float] | None]


class KnownNodes:
    """The nodes in one order, as they were when first read: the facts that do not change as long as the order stays."""

    def __init__(self, arrangement: int, count: int, fetch: Fetch, fetch_norms: FetchNorms) -> None:
        self.arrangement = arrangement
        self.count = count
        self.fetch = fetch
        self.fetch_norms = fetch_norms
        self._norms: Mapping[int, float] = {}
        self._records: list[NodeRecord] = []
        self._places: dict[int, int] = {}
        self._latest: dict[int, list[NodeRecord]] = {}  # by the number of their page

    def page(self, number: int) -> list[NodeRecord]:
        """Return a page of nodes as they are, as they were when last read where the program is gone, or nothing."""
        page = self.fetch(number * _PAGE, (number + 1) * _PAGE)
        if page:
            self._latest[number] = page
        return page or self._latest.get(number, [])

    def norms(self) -> Mapping[int, float]:
        """Return the norms that are known by now, or those that were last told where the program is gone."""
        told = self.fetch_norms()
        if told is not None:
            self._norms = told
        return self._norms

    def from_(self, start: int) -> Iterator[NodeRecord]:
        """Yield nodes from a place on; those that are not known are asked for."""
        for index in range(start, self.count):
            if index >= len(self._records) and not self._read_to(index):
                return
            yield self._records[index]

    def position(self, key: int) -> int | None:
        """Return the place of a node by its key, None if it is not one of these."""
        if len(self._records) < self.count:
            self._read_to(self.count - 1)
        return self._places.get(key)

    def _read_to(self, index: int) -> bool:
        while len(self._records) <= index:
            start = len(self._records)
            page = self.fetch(start, min(self.count, start + _LONG_PAGE))
            if not page:
                return False
            self._places.update((record.key, start + place) for place, record in enumerate(page))
            self._records.extend(page)
        return True


class RemoteNodes(NodeRecords):
    """The nodes of a backward, in the engine's order, as they were at one stop.

    Those that can no longer be asked for, since the program has gone on or has ended, are as they were when last read,
    and called ``(gone)`` if they never were: who draws them at that very moment must not fail.

    Parameters
    ----------
    known : KnownNodes
        Of the order in which they stand.

    Examples
    --------
    >>> asked = []
    >>> def fetch(start, stop):
    ...     asked.append((start, stop))
    ...     return [NodeRecord(i, i, "MulBackward0", "Mul", i, "", "", None, ()) for i in range(start, min(stop, 300))]
    >>> nodes = RemoteNodes(KnownNodes(1, 300, fetch, dict))
    >>> nodes[130].index, nodes[140].index, len(nodes[120:130]), asked
    (130, 140, 10, [(128, 256), (0, 128)])
    """

    def __init__(self, known: KnownNodes) -> None:
        self.known = known
        self._pages: dict[int, list[NodeRecord]] = {}
        self._norms: Mapping[int, float] | None = None

    def __len__(self) -> int:
        return self.known.count

    def _at(self, index: int) -> NodeRecord:
        number, place = divmod(index, _PAGE)
        page = self._pages.get(number) or self.known.page(number)
        if place >= len(page):
            return NodeRecord(index, -1 - index, _GONE, _GONE, 0, "", "", None, ())
        self._pages[number] = page
        return page[place]

    def __iter__(self) -> Iterator[NodeRecord]:
        return (self[index] for index in range(len(self)))

    def known_norms(self) -> Mapping[int, float]:
        """Return the norms of the gradients that have come to nodes, by their places; asked for once."""
        if self._norms is None:
            self._norms = self.known.norms()
        return self._norms

    @property
    def order(self) -> Hashable:
        """Another as soon as the nodes are in another order, or are those of another program."""
        return self.known

    def position(self, key: int) -> int | None:
        """Return the place of a node by its key, None if it is not one of these."""
        return self.known.position(key)

    def candidates(self, start: int = 0) -> Iterator[NodeRecord]:
        """Yield what a breakpoint asks of the nodes from a place on."""
        return self.known.from_(start)

    def bare(self) -> Iterator[NodeRecord]:
        """Yield the nodes without their states, for callers that do not ask how far the backward is."""
        return self.known.from_(0)

    def __repr__(self) -> str:
        return f"<{len(self)} nodes>"
