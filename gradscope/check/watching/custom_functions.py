"""What custom Functions do with the tensors that they are given: keep them on ``ctx``, or write them without a word.

Neither is checked by a version: what is kept on ``ctx`` was not saved by the framework's means, and of an input that is
written the history changes only where ``mark_dirty()`` was called.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ...inspect.adapters import Adapter
from ...inspect.adapters.context_attributes import context_tensors
from ...inspect.adapters.memory_fingerprint import checksum_of
from ...inspect.records.write_account import WriteAccount

__all__ = ["FunctionCalls", "KeptTensor"]

_NOTE = "gradscope.check.kept_on_ctx"


@dataclass(slots=True)
class _ForwardInput:
    """An input that requires grad, as it was before forward."""

    tensor: weakref.ref[Any]
    memory: Any
    version: int | None


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """A tensor on ``ctx`` that no longer has the values which it had after forward.

    Attributes
    ----------
    name : str
        Of the attribute, with the place in it where that is a list, tuple or dictionary.
    then : int
        When it was put there, by the clock of the account of writes.
    """

    name: str
    tensor: Any
    then: int


class FunctionCalls:
    """Watches the calls of custom Functions.

    Parameters
    ----------
    account : WriteAccount
        Whose clock tells which writes came after forward.

    Attributes
    ----------
    given : dict
        The inputs of calls whose nodes are not recorded yet; true while there is something to look at.
    kept : bool
        Whether a Function has kept a tensor on ``ctx``.
    """

    def __init__(self, adapter: Adapter, account: WriteAccount) -> None:
        self._adapter = adapter
        self._account = account
        self.given: dict[tuple[int, type], list[_ForwardInput]] = {}
        self.kept = False

    def applied(self, function: type, args: tuple[Any, ...]) -> None:
        """Note what a Function is given."""
        adapter = self._adapter
        tensors = (value for value in args if adapter.is_tensor(value) and value.requires_grad)
        self.given[get_ident(), function] = [
            _ForwardInput(weakref.ref(tensor), adapter.memory_key(tensor), adapter.version(tensor))
            for tensor in tensors
        ]

    def recorded(self, node: Any) -> Iterator[Any]:
        """Note what the Function of a node keeps on ``ctx``; yield the inputs that it has written unmarked."""
        given = self.given.pop((get_ident(), getattr(node, "_forward_cls", type(None))), None)
        if given is None:
            return
        adapter = self._adapter
        memories = {entry.memory for entry in given}
        prints = {name: checksum_of(adapter, kept) for name, kept in self._on_ctx(node, memories)}
        if prints:
            self.kept = True
            adapter.notes(node)[_NOTE] = self._account.clock, prints
        for entry in given:
            tensor = entry.tensor()
            if tensor is None or adapter.version(tensor) == entry.version or adapter.is_leaf(tensor):
                continue
            root = adapter.root(tensor)
            if root is not None and root[0] is not node:  # a tensor given to mark_dirty() has this node for its root
                yield tensor

    def changed(self, node: Any) -> Iterator[KeptTensor]:
        """Yield what the Function of a node has kept on ``ctx`` and has other values now."""
        then, prints = self._adapter.notes(node).get(_NOTE, (0, {}))
        if not prints:
            return
        for name, tensor in context_tensors(vars(node), self._adapter.is_tensor):
            if name in prints and checksum_of(self._adapter, tensor) != prints[name]:
                yield KeptTensor(name, tensor, then)

    def _on_ctx(self, node: Any, memories: set[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the inputs and outputs that are kept on ``ctx``: other tensors there may be meant to change."""
        adapter = self._adapter
        for name, value in context_tensors(getattr(node, "__dict__", {}), adapter.is_tensor):
            root = adapter.root(value)
            if adapter.memory_key(value) in memories or (root is not None and root[0] is node):
                yield name, value
