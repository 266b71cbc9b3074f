"""Who wrote which memory: the last writes into each, as the violation of a version needs them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from .diagnosis import WriteFact

__all__ = ["Ledger"]

_WRITES_KEPT = 16
_MEMORIES_KEPT = 50_000


@dataclass(slots=True)
class _Entry:
    """One write, or the same one over and over: from version `first` to version `last`."""

    fact: WriteFact
    first: int
    last: int


class Ledger:
    """The writes into each memory.

    Examples
    --------
    >>> from gradscope.check.diagnosis import WriteFact
    >>> ledger = Ledger()
    >>> for version, operator in enumerate(["add_", "mul_", "mul_", "exp_"], start=1):
    ...     ledger.add("memory", version, WriteFact(operator, None, True, True, False))
    >>> [write.operator for write in ledger.between("memory", 1, 4)]
    ['mul_', 'exp_']
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, list[_Entry]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, memory: Hashable, version: int, fact: WriteFact) -> None:
        """Note a write that brought a memory to `version`; repeated at one place it counts as one."""
        with self._lock:
            entries = self._entries.setdefault(memory, [])
            self._entries.move_to_end(memory)
            if entries and entries[-1].fact == fact and entries[-1].last < version:
                entries[-1].last = version
                return
            entries.append(_Entry(fact, version, version))
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

    def last(self, memory: Hashable) -> WriteFact | None:
        """Return the last write into a memory."""
        with self._lock:
            entries = self._entries.get(memory)
            return entries[-1].fact if entries else None
