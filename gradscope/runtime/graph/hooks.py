"""Handles and ordered tables of hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["HookTable", "RemovableHandle"]

_ids = itertools.count().__next__

HookTable = OrderedDict[int, Callable[..., Any]]


class RemovableHandle:
    """The handle of a hook: it removes the hook by :meth:`remove` or at the end of a ``with`` block.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, *tables: HookTable | dict[int, Any]) -> None:
        self.id = _ids()
        self._refer_to(tables)

    def _refer_to(self, tables: tuple[Any, ...]) -> None:
        self._tables = tuple(weakref.ref(t) if isinstance(t, OrderedDict) else (lambda t=t: t) for t in tables)

    def __getstate__(self) -> tuple[int, tuple[Any, ...]]:
        return self.id, tuple(table for reference in self._tables if (table := reference()) is not None)

    def __setstate__(self, state: tuple[int, tuple[Any, ...]]) -> None:
        """Remove from the copies of the tables, if they are copied too; hooks to come have other numbers."""
        global _ids
        self.id, tables = state
        self._refer_to(tables)
        _ids = itertools.count(max(_ids(), self.id + 1)).__next__

    def remove(self) -> None:
        """Remove the hook; doing so twice is harmless."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def add_hook(table: HookTable, hook: Callable[..., Any], *, prepend: bool = False) -> RemovableHandle:
    """Append (or prepend) `hook` to `table` and return its handle."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}\nPass a function.")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def hook_name(hook: Callable[..., Any]) -> str:
    """Return the name PyTorch's messages use for a hook."""
    return getattr(hook, "__name__", type(hook).__name__)
