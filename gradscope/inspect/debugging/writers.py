"""Which line wrote what: noted while the program runs, so that a version violation can name its writer."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ..adapters import Adapter, Write
from ..records import Location, WriteRecord

__all__ = ["WriteNotes"]

_KEPT = 64


class _Memory:
    """The last writes into one memory, by the version that each of them came to."""

    __slots__ = ("alive", "writes")

    def __init__(self, alive: weakref.ref[Any]) -> None:
        self.alive = alive
        self.writes: dict[int, tuple[str, Location | None]] = {}


class WriteNotes:
    """The last writes into each memory that lives.

    Parameters
    ----------
    adapter : Adapter
    """

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

    def between(self, tensor: Any, name: str, saved: int, current: int) -> tuple[WriteRecord, ...]:
        """Return the writes that brought a tensor's memory from one version to another, as far as they were noted.

        Parameters
        ----------
        tensor : Tensor
        name : str
            Under which name it was saved.
        saved, current : int
            The version then and now.

        Returns
        -------
        tuple of WriteRecord
            The first one first; the same one over and over counts as one.
        """
        return tuple(dict.fromkeys(WriteRecord(name, *note) for note in self._notes(tensor, saved, current)))

    def _notes(self, tensor: Any, saved: int, current: int) -> Iterator[tuple[str, Location | None]]:
        known = self._memories.get(id(self._adapter.memory(tensor)))
        if known is None:
            return
        for version in range(saved + 1, current + 1):
            if version in known.writes:
                yield known.writes[version]
