"""Who wrote which memory, and who could: the last writes into each, and the aliases that count no version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..inspect.adapters import MemoryShare
from ..inspect.adapters.memory_fingerprint import Region
from .finding_builder import ASSIGNED, ShareFact, WriteFact

__all__ = ["Ledger", "Shares"]

_WRITES_KEPT = 16
_MEMORIES_KEPT = 50_000
_REGIONS_KEPT = 64
_UNCOUNTED = -1  # the version of a write that has none
_SHARES_KEPT = 4
_SHARED_MEMORIES_KEPT = 10_000


@dataclass(slots=True)
class _Entry:
    """One write, or the same one over and over: from version `first` to version `last`, the last one at `time`.

    `regions` are the last versions among them, each with the bytes that were written, None where that is not known.
    """

    fact: WriteFact
    first: int
    last: int
    time: int
    regions: list[tuple[int, Region | None]]

    def repeat(self, version: int, time: int, region: Region | None) -> None:
        self.last, self.time = version, time
        self.regions.append((version, region))
        del self.regions[:-_REGIONS_KEPT]


class Ledger:
    """The writes into each memory.

    Attributes
    ----------
    clock : int
        How many writes there were.

    Examples
    --------
    >>> from gradscope.check.finding_builder import WriteFact
    >>> ledger = Ledger()
    >>> for version, operator in enumerate(["add_", "mul_", "mul_", "exp_"], start=1):
    ...     ledger.add("memory", version, WriteFact(operator, None, True, True, False))
    >>> [write.operator for write in ledger.between("memory", 1, 4)]
    ['mul_', 'exp_']
    """

    def __init__(self) -> None:
        self.clock = 0
        self._entries: OrderedDict[Hashable, list[_Entry]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, memory: Hashable) -> bool:
        return memory in self._entries

    def add(self, memory: Hashable, version: int, fact: WriteFact, region: Region | None = None) -> None:
        """Note a write of `region` that brought a memory to `version`; repeated at one place it counts as one."""
        with self._lock:
            self.clock += 1
            entries = self._entries.setdefault(memory, [])
            self._entries.move_to_end(memory)
            if entries and entries[-1].fact == fact and entries[-1].last < version:
                entries[-1].repeat(version, self.clock, region)
                return
            entries.append(_Entry(fact, version, version, self.clock, [(version, region)]))
            del entries[:-_WRITES_KEPT]
            if len(self._entries) > _MEMORIES_KEPT:
                self._entries.popitem(last=False)

    def between(self, memory: Hashable, saved: int, current: int) -> list[WriteFact]:
        """Return the writes that took a memory from one version to another, the first one first.

        What stands here of a memory that had the same address before, or of an alias that counts versions of its own,
        is passed over where its versions do not fit.
        """
        found = []
        with self._lock:
            for entry in reversed(self._entries.get(memory, ())):
                if saved < entry.last <= current:
                    found.append(entry.fact)
                    current = entry.first - 1
        return found[::-1]

    def spared(self, memory: Hashable, saved: int, current: int, region: Region | None) -> bool:
        """Whether it is known that no write from one version to another touched a byte of `region`."""
        if region is None:
            return False
        with self._lock:
            entries = self._entries.get(memory, ())
            written = dict(pair for entry in entries for pair in entry.regions if saved < pair[0] <= current)
        return len(written) == current - saved and all(w is not None and region.apart(w) for w in written.values())

    def since(self, memory: Hashable, time: int) -> list[WriteFact]:
        """Return the writes into a memory after the clock stood at `time`, whatever versions they counted."""
        with self._lock:
            return [entry.fact for entry in self._entries.get(memory, ()) if entry.time > time]

    def last(self, memory: Hashable) -> WriteFact | None:
        """Return the last write into a memory."""
        with self._lock:
            entries = self._entries.get(memory)
            return entries[-1].fact if entries else None


class Shares:
    """Where the memory of tensors was handed out so that a write counts no version of theirs.

    It keeps no memory alive, and forgets what was said of memory that has gone.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[Any, list[ShareFact]]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, memory: Hashable, share: MemoryShare, ledger: Ledger) -> None:
        """Note that a memory has been handed out; one that has taken another's place was written, to the ledger."""
        fact = ShareFact(share.how, share.location)
        if fact.how == ASSIGNED:
            ledger.add(memory, _UNCOUNTED, WriteFact(ASSIGNED, fact.location, True, False, False))
            return
        with self._lock:
            entry = self._entries.get(memory)
            if entry is None or entry[0]() is None:
                entry = self._entries[memory] = share.memory, []
            self._entries.move_to_end(memory)
            if fact not in entry[1]:
                entry[1].append(fact)
                del entry[1][:-_SHARES_KEPT]
            if len(self._entries) > _SHARED_MEMORIES_KEPT:
                self._entries.popitem(last=False)

    def of(self, memory: Hashable) -> list[ShareFact]:
        """Return who has been handed a memory, the last one last."""
        with self._lock:
            entry = self._entries.get(memory)
            return [] if entry is None or entry[0]() is None else list(entry[1])
