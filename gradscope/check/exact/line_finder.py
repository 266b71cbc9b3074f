"""Finds the line on which the values of a saved tensor change, of which a first run has found that they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...inspect.adapters import Adapter
from ...inspect.adapters.guarded_observer import GuardedObserver, guarded
from ...inspect.adapters.memory_fingerprint import checksum_of
from ...inspect.records.records import Location
from .line_trace import LineTrace

__all__ = ["LineFinder", "SavedOnce"]


class SavedOnce(NamedTuple):
    """A tensor that one node has saved, as a second run knows it again.

    Attributes
    ----------
    framework : str
        The adapter's name.
    number : int
        The sequence number of the node.
    node, saved_name : str
        Their names.
    """

    framework: str
    number: int
    node: str
    saved_name: str


class LineFinder(GuardedObserver):
    """Compares saved tensors after each line, from where they are saved to where they are needed.

    Parameters
    ----------
    wanted : iterable of SavedOnce
        Those of other frameworks are passed over.

    Attributes
    ----------
    found : dict of SavedOnce to Location
        The first line after which a tensor has other values.
    """

    def __init__(self, adapter: Adapter, wanted: Iterable[SavedOnce]) -> None:
        self.found: dict[SavedOnce, Location] = {}
        self._adapter = adapter
        self._wanted: dict[int, list[SavedOnce]] = {}
        for saved in wanted:
            if saved.framework == adapter.name:
                self._wanted.setdefault(saved.number, []).append(saved)
        # The saved tensors that are still watched: each with the checksum of what was saved, and its node's key.
        self._open: dict[SavedOnce, tuple[Any, int | None, int]] = {}
        self._trace = LineTrace(self._look)
        self._observation = adapter.observe(self, forward=True, backward=True)

    def close(self) -> None:
        """Observe no more."""
        self._trace.stop()
        self._observation.close()

    def operator_recorded(self, node: Any) -> None:
        """Look at what a node has saved, if it is wanted."""
        adapter = self._adapter
        for wanted in self._wanted.get(adapter.sequence_nr(node), ()):
            views = [saved for saved in adapter.saved(node) if saved.name == wanted.saved_name]
            if views and adapter.node_name(node) == wanted.node:
                tensor = adapter.alias(node, views[0])
                self._open[wanted] = tensor, checksum_of(self._adapter, tensor), adapter.key(node)
                self._trace.start()

    def node_entered(self, call: Any) -> None:
        """Look no more at what a node needs now."""
        key = self._adapter.key(call.node)
        for wanted in [wanted for wanted, entry in self._open.items() if entry[2] == key]:
            self._close(wanted)

    @guarded
    def _look(self, line: Callable[[], Location | None]) -> None:
        for wanted, (tensor, before, _) in list(self._open.items()):
            if checksum_of(self._adapter, tensor) != before:
                place = line()
                if place is not None:
                    self.found[wanted] = place
                self._close(wanted)

    def _close(self, wanted: SavedOnce) -> None:
        del self._open[wanted]
        if not self._open:
            self._trace.stop()
