"""What nodes have saved, copied when somebody is about to write over it: a backward can then compute with it still."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ...inspect.adapters import Adapter, SavedView
from .saved_values import SavedValues

__all__ = ["KeptValues", "WrittenTensor"]

_NOTE = "gradscope.check.watching.kept_values"


class _SavedAlias:
    """A saved tensor: an alias of its memory, and a copy from the moment that somebody writes that."""

    __slots__ = ("__weakref__", "alias", "copy", "version")

    def __init__(self, alias: Any, version: int) -> None:
        self.alias, self.version = alias, version
        self.copy: Any = None


class WrittenTensor(NamedTuple):
    """A saved tensor that has been written since.

    Attributes
    ----------
    values : Tensor or None
        What was saved; None where that is in its memory still, and only the version is another.
    version : int
        At which it was saved.
    """

    saved: SavedView
    values: Any
    version: int


class KeptValues:
    """Copies of what nodes have saved, each made when its memory is about to be written, and kept in the node's notes.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> from gradscope.inspect.records.write_account import WriteAccount
    >>> kept = KeptValues(NativeAdapter())
    >>> y = gs.zeros(2, requires_grad=True).exp()
    >>> kept.note(y.grad_fn, unsafe=lambda memory: False)
    >>> kept.keep(y)
    >>> _ = y.detach().zero_()
    >>> [written.values.tolist() for written in kept.written(y.grad_fn, SavedValues(NativeAdapter(), WriteAccount()))]
    [[1.0, 1.0]]
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._by_memory: dict[Hashable, list[weakref.ref[_SavedAlias]]] = {}

    def note(self, node: Any, unsafe: Callable[[Hashable], bool]) -> None:
        """Remember where that lies which a node has just saved.

        Parameters
        ----------
        unsafe : callable
            Whether a memory can be written without a word, so that what lies there is copied at once.
        """
        noted = [self._noted(node, saved, unsafe) for saved in self._adapter.saved(node)]
        if any(noted):
            self._adapter.notes(node)[_NOTE] = noted

    def _noted(self, node: Any, saved: SavedView, unsafe: Callable[[Hashable], bool]) -> _SavedAlias | None:
        version = saved.saved_version
        if version is None:
            return None
        kept = _SavedAlias(self._adapter.alias(node, saved), version)
        memory = self._adapter.memory_key(kept.alias)
        self._by_memory.setdefault(memory, []).append(weakref.ref(kept, partial(self._gone, memory)))
        if unsafe(memory):
            self._copy(kept)
        return kept

    def _gone(self, memory: Hashable, reference: weakref.ref[_SavedAlias]) -> None:
        known = self._by_memory.get(memory, [])
        if reference in known:
            known.remove(reference)
        if not known:
            self._by_memory.pop(memory, None)

    def keep(self, tensor: Any) -> None:
        """Copy what is saved of the memory of a tensor, which is about to be written."""
        known = self._by_memory.get(self._adapter.memory_key(tensor))
        if not known:
            return
        region = self._adapter.region(tensor)
        for kept in [reference() for reference in known]:
            if kept is not None and kept.copy is None and not self._apart(kept, region):
                self._copy(kept)

    def _apart(self, kept: _SavedAlias, region: Any) -> bool:
        own = self._adapter.region(kept.alias)
        return own is not None and region is not None and bool(own.apart(region))

    def _copy(self, kept: _SavedAlias) -> None:
        with self._adapter.quiet():
            kept.copy = self._adapter.copy(kept.alias)

    def written(self, node: Any, values: SavedValues) -> list[WrittenTensor]:
        """Return what a node has saved and somebody has written since, as far as that which was saved is still known.

        Parameters
        ----------
        values : SavedValues
            Who knows whether a tensor has the values that it had.
        """
        noted = self._adapter.notes(node).get(_NOTE)
        return [] if noted is None else list(self._written(node, noted, values))

    def _written(self, node: Any, noted: list[_SavedAlias | None], values: SavedValues) -> Iterator[WrittenTensor]:
        memory_key = self._adapter.memory_key
        for place, (saved, kept) in enumerate(zip(self._adapter.saved(node), noted, strict=True)):
            if kept is None or saved.released:
                continue
            changed = saved.current_version != kept.version
            if kept.copy is not None:
                if changed or not values.intact(node, place):
                    yield WrittenTensor(saved, kept.copy, kept.version)
            elif memory_key(saved.data) != memory_key(kept.alias):  # the program has assigned `parameter.data = other`
                yield WrittenTensor(saved, kept.alias, kept.version)
            elif changed and values.intact(node, place):
                yield WrittenTensor(saved, None, kept.version)

    def forget(self, node: Any) -> None:
        """Let go of what was kept for a node, which has run."""
        self._adapter.notes(node).pop(_NOTE, None)
