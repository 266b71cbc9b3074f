"""Whether saved tensors still hold the values that were saved: a write that counts no version changes only those.

A checksum of its memory is kept for each saved tensor, no copy. Up to a mebibyte all of it counts, of a larger tensor
65,536 evenly spaced elements, of one on a GPU 4,096: :mod:`gradscope.inspect.adapters.memory_fingerprint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...inspect.adapters import Adapter, SavedView
from ...inspect.adapters.memory_fingerprint import UNREAD
from ...inspect.records.write_account import WriteAccount

__all__ = ["SavedValues"]

_NOTE = "gradscope.check.watching.saved_values"


class SavedValues:
    """Checksums of what nodes saved, kept in the nodes' notes.

    Parameters
    ----------
    account : WriteAccount
        Whose clock tells which writes came after a tensor was saved.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> values = SavedValues(NativeAdapter(), WriteAccount())
    >>> x = gs.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> values.note(y.grad_fn)
    >>> y.data.zero_()
    tensor([0., 0.])
    >>> [saved.name for saved, _ in values.changed(y.grad_fn)]
    ['result']
    """

    def __init__(self, adapter: Adapter, account: WriteAccount) -> None:
        self._adapter = adapter
        self._account = account
        self._notes, self._fingerprints = adapter.notes, adapter.fingerprints  # called at every node

    def note(self, node: Any) -> None:
        """Remember what a node has just saved."""
        prints = self._fingerprints(node)
        if prints and prints.count(None) < len(prints):
            self._notes(node)[_NOTE] = self._account.clock, *prints

    def changed(self, node: Any) -> Iterable[tuple[SavedView, int]]:
        """Return each saved tensor whose values are no longer those, though its version is, and when it was saved."""
        known = self._notes(node).get(_NOTE)
        if known is None:
            return ()
        then, before = known[0], known[1:]
        now = self._fingerprints(node)
        return () if now == before else self._differing(node, then, before, now)

    def intact(self, node: Any, place: int) -> bool:
        """Whether the saved tensor at a place has the values that were saved, whatever was counted since."""
        known = self._notes(node).get(_NOTE)
        if known is None:
            return False
        before, now = _by_tensor(known[1:])[place], _by_tensor(self._fingerprints(node))[place]
        return before != UNREAD and now != UNREAD and before[1] == now[1]

    def _differing(
        self, node: Any, then: int, before: tuple[Any, ...], now: tuple[Any, ...]
    ) -> Iterator[tuple[SavedView, int]]:
        for saved, was, is_ in zip(self._adapter.saved(node), _by_tensor(before), _by_tensor(now)):
            if UNREAD not in (was, is_) and was != is_ and was[0] == is_[0]:
                yield saved, then


def _by_tensor(prints: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return the version and checksum of each saved tensor."""
    return list(zip(prints[::2], prints[1::2], strict=True))
