"""Which line wrote what: noted while the script runs, so that a version violation can name its writer.

Notes are taken of writes in gradscope's own runtime, where that costs next to nothing; under PyTorch it would take a
dispatch mode around the whole program, which is what ``gradscope check`` does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.adapters.native import NativeAdapter
from gradscope.inspect.adapters.protocol import Observer
from gradscope.inspect.lines.render import place_of

if TYPE_CHECKING:
    from gradscope.inspect.adapters.protocol import Write
    from gradscope.inspect.records import Location

__all__ = ["WriteNotes", "noting_writes", "writers_of"]

_KEPT = 100_000


class WriteNotes(Observer):
    """The last writes, by the memory that was written and the version that it came to."""

    def __init__(self) -> None:
        self._adapter = NativeAdapter()
        self._notes: OrderedDict[tuple[Hashable, int], tuple[str, Location | None]] = OrderedDict()
        self._lock = threading.Lock()

    def tensor_written(self, write: Write) -> None:
        """Note a write."""
        key = self._adapter.memory_key(write.tensor), write.version
        with self._lock:
            self._notes[key] = write.operator, write.location
            if len(self._notes) > _KEPT:
                self._notes.popitem(last=False)

    def between(self, tensor: Any, saved: int, current: int) -> list[tuple[str, Location | None]]:
        """Return operator and line of each noted write that brought a tensor's memory from one version to another."""
        memory = adapter_for(tensor).memory_key(tensor)
        with self._lock:
            found = [self._notes.get((memory, version)) for version in range(saved + 1, current + 1)]
        return [note for note in found if note is not None]


_notes = WriteNotes()


def noting_writes() -> AbstractContextManager[Any]:
    """Take notes of the writes of this process, for the length of a block."""
    return NativeAdapter().observe(_notes, forward=False, backward=False, writes=True)


def writers_of(saved: Any, written: Iterable[tuple[str, int, int]]) -> str:
    """Return who wrote the saved tensors of a node since they were saved; for the program's own thread.

    Parameters
    ----------
    saved : SavedNamespace
        The node's saved tensors.
    written : iterable of (str, int, int)
        Of those that have been written: the name, the version at which it was saved, and that at which it is.

    Returns
    -------
    str
        A line for each write that has been noted.
    """
    lines = []
    for name, before, now in written:
        for operator, location in _notes.between(saved[name], before, now):
            where = place_of(location) or "a line that is not known"
            lines.append(f"`{name}` was written by {operator} at {where}")
    return "\n".join(lines)
