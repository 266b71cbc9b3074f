"""The one account of writes: who wrote which memory, and who could without a version being counted.

`gradscope check` and the debugger keep it by what the adapter tells them (``Observer.tensor_written``,
``Observer.memory_shared``), and read in it who wrote a saved tensor.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..adapters import Adapter, MemoryShare, Write
from ..adapters.memory_fingerprint import Region
from .records import Location
from .write_facts import ASSIGNED, ShareFact, WriteFact

__all__ = ["MemoryShares", "WriteAccount"]

_WRITES_KEPT = 16
_MEMORIES_KEPT = 50_000
_REGIONS_KEPT = 64
_UNCOUNTED = -1  # the version of a write that has none
_SHARES_KEPT = 4
_SHARED_MEMORIES_KEPT = 10_000


def _same(one: WriteFact | ShareFact, other: WriteFact | ShareFact) -> bool:
    """Whether two facts are of one line, to which the same calls led: a line of a library may be reached by several."""
    return one is other or (one == other and _calls(one) == _calls(other))


def _calls(fact: WriteFact | ShareFact) -> tuple[Location, ...]:
    return () if fact.location is None else fact.location.calls


@dataclass(slots=True)
class _Entry:
    """One write, or the same one over and over: from version `first` to version `last`, the last one at `time`.

    `regions` are the first and the last versions among them, each with the bytes that were written: those of which
    that is known, but for the first, which has None otherwise.
    """

    fact: WriteFact
    first: int
    last: int
    time: int
    regions: list[tuple[int, Region | None]]

    def repeat(self, version: int, time: int, region: Region | None) -> None:
        self.last, self.time = version, time
        if region is not None:
            self.regions.append((version, region))
            del self.regions[:-_REGIONS_KEPT]


class _Memory:
    """The last writes into one memory, for as long as it lives, where that is known."""

    __slots__ = ("_alive", "entries")

    def __init__(self, alive: Any, forget: Callable[[_Memory], None]) -> None:
        self.entries: list[_Entry] = []
        self._alive = None if alive is None else weakref.ref(alive, lambda _: forget(self))

    def gone(self) -> bool:
        return self._alive is not None and self._alive() is None


class WriteAccount:
    """The last writes into each memory.

    Attributes
    ----------
    clock : int
        How many writes there were.

    Examples
    --------
    >>> account = WriteAccount()
    >>> for version, operator in enumerate(["add_", "mul_", "mul_", "exp_"], start=1):
    ...     account.add("memory", version, WriteFact(operator, None, True, True, False))
    >>> [write.operator for write in account.between("memory", 1, 4)]
    ['mul_', 'exp_']
    """

    def __init__(self) -> None:
        self.clock = 0
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._lock = threading.Lock()
        self._latest: WriteFact | None = None

    def note(
        self, adapter: Adapter, write: Write, *, optimizer: str = "", module: str = "", regions: bool = False
    ) -> None:
        """Note what an adapter tells of a write.

        Parameters
        ----------
        optimizer : str
            The step of the framework's own optimizer that wrote, ``'Adam.step'``.
        module : str
            The class of the module that wrote because it was told to work in place.
        regions : bool
            Note which bytes were written too.
        """
        tensor, operator = write.tensor, optimizer or write.operator
        flags = write.grad_enabled, write.requires_grad, bool(optimizer)
        fact = self._fact(operator, module, write.location, flags)
        region = adapter.region(tensor) if regions else None
        memory, owner = adapter.memory(tensor)
        self.add(memory, write.version, fact, region, owner)

    def note_all(self, adapter: Adapter, writes: Sequence[Write]) -> None:
        """Note what an adapter tells of one call that has written several tensors."""
        location = writes[0].location
        memories = adapter.memories([write.tensor for write in writes])
        with self._lock:
            fact = None
            for write, (memory, owner) in zip(writes, memories):
                requires_grad = write.requires_grad
                if fact is None or fact.requires_grad is not requires_grad:  # all else they have in common
                    fact = self._fact(write.operator, "", location, (write.grad_enabled, requires_grad, False))
                self._add(memory, write.version, fact, None, owner)

    def _fact(self, operator: str, module: str, location: Location | None, flags: tuple[bool, bool, bool]) -> WriteFact:
        """Return a fact, the same one as long as one step of an optimizer writes parameter after parameter."""
        known = self._latest
        if (
            known is None
            or known.location is not location  # an equal line may have been called from elsewhere
            or (known.operator, known.module) != (operator, module)
            or (known.grad_enabled, known.requires_grad, known.step) != flags
        ):
            known = self._latest = WriteFact(operator, location, *flags, module)
        return known

    def add(
        self, memory: Hashable, version: int, fact: WriteFact, region: Region | None = None, alive: Any = None
    ) -> None:
        """Note a write of `region` that brought a memory to `version`; repeated at one place it counts as one.

        What lives as long as the memory does may be given as `alive`: what had the address before is then forgotten.
        """
        with self._lock:
            self._add(memory, version, fact, region, alive)

    def _add(self, memory: Hashable, version: int, fact: WriteFact, region: Region | None, alive: Any) -> None:
        self.clock += 1
        known = self._memories.get(memory)
        if known is None or known.gone():
            known = self._memories[memory] = _Memory(alive, partial(self._forget, memory))
        self._memories.move_to_end(memory)
        entries = known.entries
        last = entries[-1] if entries else None
        if last is not None and (last.fact is fact or _same(last.fact, fact)) and last.last < version:
            last.repeat(version, self.clock, region)
            return
        entries.append(_Entry(fact, version, version, self.clock, [(version, region)]))
        del entries[:-_WRITES_KEPT]
        if len(self._memories) > _MEMORIES_KEPT:
            self._memories.popitem(last=False)

    def between(self, memory: Hashable, saved: int, current: int) -> list[WriteFact]:
        """Return the writes that took a memory from one version to another, the first one first.

        What stands here of a memory that had the same address before, or of an alias that counts versions of its own,
        is passed over where its versions do not fit.
        """
        found = []
        with self._lock:
            for entry in reversed(self._of(memory)):
                if saved < entry.last <= current:
                    found.append(entry.fact)
                    current = entry.first - 1
        return found[::-1]

    def spared(self, memory: Hashable, saved: int, current: int, region: Region | None) -> bool:
        """Whether it is known that no write from one version to another touched a byte of `region`."""
        if region is None:
            return False
        with self._lock:
            entries = self._of(memory)
            written = dict(pair for entry in entries for pair in entry.regions if saved < pair[0] <= current)
        return len(written) == current - saved and all(w is not None and region.apart(w) for w in written.values())

    def since(self, memory: Hashable, time: int) -> list[WriteFact]:
        """Return the writes into a memory after the clock stood at `time`, whatever versions they counted."""
        with self._lock:
            return [entry.fact for entry in self._of(memory) if entry.time > time]

    def last(self, memory: Hashable) -> WriteFact | None:
        """Return the last write into a memory."""
        with self._lock:
            entries = self._of(memory)
            return entries[-1].fact if entries else None

    def _forget(self, memory: Hashable, known: _Memory) -> None:
        # It takes no lock: the garbage collector may call it while the thread that holds the lock adds a write.
        if self._memories.get(memory) is known:
            self._memories.pop(memory, None)

    def _of(self, memory: Hashable) -> list[_Entry]:
        known = self._memories.get(memory)
        return [] if known is None or known.gone() else known.entries


class MemoryShares:
    """Where the memory of tensors was handed out so that a write counts no version of theirs.

    It keeps no memory alive, and forgets what was said of memory that has gone.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[Any, list[ShareFact]]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, memory: Hashable, share: MemoryShare, account: WriteAccount) -> None:
        """Note that a memory has been handed out; one that has taken another's place was written, to the account."""
        fact = ShareFact(share.how, share.location)
        if fact.how == ASSIGNED:
            account.add(memory, _UNCOUNTED, WriteFact(ASSIGNED, fact.location, True, False, False))
            return
        with self._lock:
            entry = self._entries.get(memory)
            if entry is None or entry[0]() is None:
                entry = self._entries[memory] = share.memory, []
            self._entries.move_to_end(memory)
            if not any(_same(other, fact) for other in entry[1]):
                entry[1].append(fact)
                del entry[1][:-_SHARES_KEPT]
            if len(self._entries) > _SHARED_MEMORIES_KEPT:
                self._entries.popitem(last=False)

    def of(self, memory: Hashable) -> list[ShareFact]:
        """Return who has been handed a memory, the last one last."""
        with self._lock:
            entry = self._entries.get(memory)
            return [] if entry is None or entry[0]() is None else list(entry[1])
