"""Interning: equal records are kept once, so that a model of a hundred thousand nodes is small and quick to make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..adapters import SavedView
from ..records.records import SavedRecord, operator_name

__all__ = ["InternTable"]

T = TypeVar("T")


class InternTable:
    """Hands out one object for all that are equal.

    Examples
    --------
    >>> once = InternTable().once
    >>> once((1, 2)) is once(tuple([1, 2]))
    True
    """

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}
        self._operators: dict[str, str] = {}
        self._of_shared: dict[tuple[int, ...], tuple[Any, ...]] = {}
        self._saved: dict[tuple[Any, ...], tuple[SavedRecord, ...]] = {}

    def once(self, value: T) -> T:
        """Return the first value that was equal to this one."""
        return self._kept.setdefault(value, value) if value else value

    def operator(self, name: str) -> str:
        """Return the operator's part of a node's name."""
        found = self._operators.get(name)
        if found is None:
            found = self._operators[name] = operator_name(name)
        return found

    def once_of_shared(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the first tuple of these very objects, which live as long as this does; it compares none of them."""
        return self._of_shared.setdefault(tuple(map(id, values)), values) if values else values

    def saved(self, views: Sequence[SavedView]) -> tuple[SavedRecord, ...]:
        """Return the records of saved tensors, as :func:`~gradscope.inspect.records.snapshots.saved_records` does."""
        if not views:
            return ()
        key = tuple([_facts(view) for view in views])
        found = self._saved.get(key)
        if found is None:
            found = self._saved[key] = tuple([_record(view, facts) for view, facts in zip(views, key)])
        return found


def _facts(view: SavedView) -> tuple[Any, ...]:
    shape = view.shape
    # To ask costs time, and only a tensor without a shape can have been released.
    return view.name, shape, view.dtype, view.saved_version, view.current_version, shape is None and view.released


def _record(view: SavedView, facts: tuple[Any, ...]) -> SavedRecord:
    name, shape, dtype, before, now, released = facts
    return SavedRecord(
        name=name,
        shape=shape,
        dtype="" if dtype is None else str(dtype).rpartition(".")[2],
        nbytes=view.nbytes,  # the number follows from shape and dtype
        saved_version=before,
        current_version=now,
        state="released" if released else "ok" if before == now else "modified",
    )
