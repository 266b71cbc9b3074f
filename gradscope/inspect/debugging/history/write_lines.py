"""Which line wrote what: noted while the program runs, so that a version violation can name its writer."""

from __future__ import annotations

import weakref
from typing import Any

from ...adapters import Adapter, SavedView, Write
from ...records.records import Location, WriteRecord

__all__ = ["WriteNotes"]

_KEPT = 64


class _Memory:
    """The last writes into one memory, by the version that each of them came to."""

    __slots__ = ("alive", "writes")

    def __init__(self, alive: weakref.ref[Any]) -> None:
        self.alive = alive
        self.writes: dict[int, tuple[str, Location | None]] = {}


class WriteNotes:
    """The last writes into each memory that lives."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        # By the identity of what lives as long as the memory does: an array has no hash.
        self._memories: dict[int, _Memory] = {}

    def add(self, write: Write) -> None:
        """Note a write."""
        memory = self._adapter.memory(write.tensor)
        if memory is None:
            return
        identity, memories = id(memory), self._memories
        known = memories.get(identity)
        if known is None:
            known = memories[identity] = _Memory(weakref.ref(memory, lambda _: memories.pop(identity, None)))
        known.writes[write.version] = write.operator, write.location
        if len(known.writes) > _KEPT:
            del known.writes[next(iter(known.writes))]

    def into(self, saved: SavedView) -> tuple[WriteRecord, ...]:
        """Return the writes into a saved tensor since it was saved, as far as they were noted.

        Returns
        -------
        tuple of WriteRecord
            The first one first; the same one over and over counts as one.
        """
        before, now = saved.saved_version, saved.current_version
        if before is None or now is None or before == now:
            return ()
        known = self._memories.get(id(self._adapter.memory(saved.data)))
        notes = [] if known is None else [known.writes[v] for v in range(before + 1, now + 1) if v in known.writes]
        return tuple(dict.fromkeys(WriteRecord(saved.name, *note) for note in notes))
