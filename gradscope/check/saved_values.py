"""Whether saved tensors still hold the values that were saved: a write that counts no version changes only those.

A checksum of its memory is kept for each saved tensor, no copy. Up to a mebibyte all of it counts, of a larger tensor
65,536 evenly spaced elements, of one on a GPU 4,096: :mod:`gradscope.inspect.adapters.memory_fingerprint`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from ..inspect.adapters import Adapter, SavedView
from ..inspect.records.write_account import WriteAccount
from ..runtime.graph.graph_node import Node

__all__ = ["SavedValues"]

_NOTE = "gradscope.check.saved_values"

# In training, batch_norm saves its statistics and writes them, but its derivative does not read them, and that of
# gradscope never does: it has copies of its own. cuDNN keeps the state of its generator beside what dropout needs.
_STATISTICS = ("running_mean", "running_var")
_STATE = "dropout_state"


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

    def note(self, node: Any) -> None:
        """Remember what a node has just saved."""
        looks = [self._look(node, saved) for saved in self._adapter.saved(node)]
        if any(looks):
            self._adapter.notes(node)[_NOTE] = self._account.clock, looks

    def changed(self, node: Any) -> Iterator[tuple[SavedView, int]]:
        """Yield each saved tensor whose values are no longer those, though its version is, and when it was saved."""
        then, looks = self._adapter.notes(node).get(_NOTE, (0, ()))
        if looks:
            for saved, before in zip(self._adapter.saved(node), looks):
                now = self._look(node, saved) if before is not None else None
                if now is not None and now != before and now[0] == before[0]:
                    yield saved, then

    def _look(self, node: Any, saved: SavedView) -> tuple[int, int] | None:
        """Return version and checksum; None where no version is kept, or the values are not what the node reads."""
        version = saved.current_version
        if version is None or _unread(node, saved.name):
            return None
        tensor = saved.data
        bits = self._adapter.bits(tensor)
        return None if bits is None else (version, zlib.crc32(bits))


def _unread(node: Any, name: str) -> bool:
    return name == _STATE or (
        name in _STATISTICS and (isinstance(node, Node) or getattr(node, "_saved_training", False))
    )
