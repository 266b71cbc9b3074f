"""The operators that a ledger remembers, in the order in which they ran."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...records.records import Location
from .dataflow_entries import LedgerEntry, next_number

__all__ = ["Handle", "OperatorLog"]

Handle = int | LedgerEntry
"""By what an operator is remembered: the number of a record of it, or else its entry."""

# Of a recorded operator of which there is no more to know: its name, the id of its location, the path of its module,
# and by what each of its inputs was computed. The collector leaves a plain tuple of numbers and text alone.
_Record = tuple[Any, ...]
_SOURCES = slice(3, None)
_LOCATIONS = 10_000


class OperatorLog:
    """Remembers so many operators, and of the older ones only that they existed.

    Programs run them by the hundred thousand, and the garbage collector walks along every object that lives. So of
    nearly all a record is kept that it leaves alone, and the entry is made when somebody asks for it.

    Parameters
    ----------
    limit : int
        How many to remember.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[int, _Record | LedgerEntry] = {}  # by their numbers
        self._order: deque[int] = deque()
        self._asked_for: weakref.WeakValueDictionary[int, LedgerEntry] = weakref.WeakValueDictionary()
        self._locations: dict[int, Location | None] = {}
        self._most_locations = _LOCATIONS

    def __len__(self) -> int:
        return len(self._kept)

    def record(self, name: str, sources: Sequence[Handle], location: Location | None, module: str) -> int:
        """Remember a recorded operator; return its number."""
        number, line = next_number(), id(location)
        if line not in self._locations:
            self._note_line(line, location)
        self._kept[number] = (name, line, module, *sources)
        self._order.append(number)
        if len(self._order) > self._limit:
            self._forget_oldest()
        return number

    def keep(self, entry: LedgerEntry) -> None:
        """Remember an operator by its entry."""
        self._kept[entry.number] = entry
        self._order.append(entry.number)
        if len(self._order) > self._limit:
            self._forget_oldest()

    def entry(self, handle: Handle) -> LedgerEntry:
        """Return the entry of an operator, the same for as long as somebody has it."""
        if not isinstance(handle, int):
            return handle
        return self._entry_of(handle)

    def is_forgotten(self, handle: Handle) -> bool:
        """Whether of an operator it is only known that it existed."""
        return handle not in self._kept if isinstance(handle, int) else handle.forgotten

    def descendants(self, start: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """Return the entries computed from `start`, oldest first."""
        reached = {entry.number for entry in start}
        found = []
        for number in self._order:
            if any(source in reached for source in _sources_of(self._kept[number])):
                reached.add(number)
                found.append(number)
        return list(map(self._entry_of, found))

    def _entry_of(self, number: int) -> LedgerEntry:
        known = self._kept.get(number)
        if isinstance(known, LedgerEntry):
            return known
        entry = self._asked_for.get(number)
        if entry is None:
            entry = _forget(LedgerEntry()) if known is None else _LoggedEntry(self, number, known)
            self._asked_for[number] = entry
        return entry

    def location_of(self, record: _Record) -> Location | None:
        """Return the line of a recorded operator."""
        return self._locations[record[1]]

    def _note_line(self, line: int, location: Location | None) -> None:
        """Keep a location, and let go of those of which no operator is remembered any more."""
        if len(self._locations) >= self._most_locations:
            lines = {known[1] for known in self._kept.values() if not isinstance(known, LedgerEntry)}
            self._locations = {line: self._locations[line] for line in lines}
            self._most_locations = max(_LOCATIONS, 2 * len(lines))
        self._locations[line] = location

    def _forget_oldest(self) -> None:
        """Let the oldest operator go of its sources, or a chain of entries would grow for ever."""
        number = self._order.popleft()
        known = self._kept.pop(number)
        entry = known if isinstance(known, LedgerEntry) else self._asked_for.get(number)
        if entry is not None:
            _forget(entry)


class _LoggedEntry(LedgerEntry):
    """The entry of an operator of which a record is kept; its inputs are asked for when it is asked for them."""

    recorded = True

    def __init__(self, log: OperatorLog, number: int, record: _Record) -> None:
        self.number = number
        self.name, _, self.module = record[:3]
        self.location = log.location_of(record)
        self._log = log
        self._sources: Sequence[Handle] = record[_SOURCES]
        self._inputs: tuple[LedgerEntry, ...] | None = None

    @property
    def inputs(self) -> tuple[LedgerEntry, ...]:
        """By what the inputs of the operator were computed."""
        if self._inputs is None:
            self._inputs = tuple(dict.fromkeys(map(self._log.entry, self._sources)))
        return self._inputs

    @inputs.setter
    def inputs(self, entries: tuple[LedgerEntry, ...]) -> None:
        self._inputs = entries


def _sources_of(known: _Record | LedgerEntry) -> Iterator[int]:
    """Return the numbers of those by which the inputs of an operator were computed."""
    sources = known.inputs if isinstance(known, LedgerEntry) else known[_SOURCES]
    return (source if isinstance(source, int) else source.number for source in sources)


def _forget(entry: LedgerEntry) -> LedgerEntry:
    entry.inputs, entry.forgotten = (), True
    return entry
