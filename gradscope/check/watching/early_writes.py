"""Whether a result still holds what its operator computed when the next operator reads it.

A write through ``.data`` or NumPy before anything has saved the result spoils nothing that autograd keeps: forward goes
on with the new values, and backward takes them for those that the operator computed. A checksum of each recorded result
is kept while it lives, no copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ...inspect.adapters import Adapter
from ...inspect.adapters.guarded_observer import GuardedObserver
from ...inspect.adapters.memory_fingerprint import checksum_of
from ...inspect.records.write_account import MemoryShares, WriteAccount
from .violation_facts import ResultFacts, Violation

__all__ = ["EarlyWriteWatch"]


@dataclass(slots=True)
class _Result:
    """A result, as its operator left it; and what was seen of it before a counted write hid that."""

    tensor: weakref.ref[Any]
    node: int
    memory: Hashable
    version: int | None
    checksum: int
    then: int
    changed: ResultFacts | None = None


class EarlyWriteWatch(GuardedObserver):
    """Watches results from the operator that computed them to those that read them.

    Results of custom Functions are not watched: what they compute is their own affair.

    Parameters
    ----------
    tell : callable
        Called with the facts of each result that another operator reads with other values, and None.
    adapter : Adapter
        Of the frameworks whose results are watched.
    """

    operators_of_steps: ClassVar[bool] = False
    operators_unrecorded: ClassVar[bool] = False

    def __init__(self, tell: Callable[[Violation, BaseException | None], None], adapter: Adapter) -> None:
        self._tell = tell
        self._adapter = adapter
        self._account = WriteAccount()
        self._shares = MemoryShares()
        self._results: dict[int, _Result] = {}
        self._by_memory: dict[Hashable, set[int]] = {}
        self._observation = self._adapter.observe(self, forward=False, backward=False, operators=True, writes=True)

    def close(self) -> None:
        """Watch no more."""
        self._observation.close()

    # --- what happens ---

    def write_started(self, tensor: Any) -> None:
        """Look at the results that lie there, before a write that is counted hides one that was not."""
        for identity in list(self._by_memory.get(self._adapter.memory_key(tensor), ())):
            known = self._results.get(identity)
            result = None if known is None else known.tensor()
            if known is not None and result is not None and known.changed is None:
                known.changed = self._change(known, result)

    def tensor_written(self, write: Any) -> None:
        """Note who wrote."""
        self._account.note(self._adapter, write)

    def memory_shared(self, share: Any) -> None:
        """Note where memory is handed to, from where writes are not observed."""
        self._shares.add(self._adapter.memory_key(share.tensor), share, self._account)

    def operator_ran(self, call: Any) -> None:
        """Report what it has read that is not as it was computed; remember what it has computed."""
        if call.node is None:
            return
        for tensor in call.inputs:
            known = self._results.get(id(tensor))
            if known is None or known.tensor() is not tensor:
                continue
            facts = known.changed or self._change(known, tensor)
            if facts is not None:
                self._forget(id(tensor), known.tensor)
                reader = self._adapter.node_name(call.node)
                self._tell(replace(facts, reader=reader, read=call.location), None)
        for tensor in call.outputs:
            self._remember(tensor)

    # --- what is known ---

    def _remember(self, tensor: Any) -> None:
        adapter = self._adapter
        root = adapter.root(tensor)
        checksum = None if root is None or adapter.is_leaf(tensor) else checksum_of(self._adapter, tensor)
        if root is None or checksum is None:
            return
        identity, memory = id(tensor), adapter.memory_key(tensor)
        gone = partial(self._forget, identity)
        known = self._results.get(identity)
        if known is not None:
            self._forget(identity, known.tensor)
        self._results[identity] = _Result(
            weakref.ref(tensor, gone),
            adapter.key(root[0]),
            memory,
            adapter.version(tensor),
            checksum,
            self._account.clock,
        )
        self._by_memory.setdefault(memory, set()).add(identity)

    def _forget(self, identity: int, reference: Any) -> None:
        known = self._results.get(identity)
        if known is None or known.tensor is not reference:
            return
        del self._results[identity]
        there = self._by_memory.get(known.memory, set())
        there.discard(identity)
        if not there:
            self._by_memory.pop(known.memory, None)

    def _change(self, known: _Result, tensor: Any) -> ResultFacts | None:
        """Return what there is to say of a result that has other values, which no version tells; None of others."""
        adapter = self._adapter
        if adapter.version(tensor) != known.version or checksum_of(self._adapter, tensor) == known.checksum:
            return None
        spec, memory, root = adapter.spec(tensor), adapter.memory_key(tensor), adapter.root(tensor)
        node = None if root is None or adapter.key(root[0]) != known.node else root[0]
        return ResultFacts(
            shape=spec.shape,
            dtype=spec.dtype,
            producer="" if node is None else adapter.node_name(node),
            made=None if node is None else adapter.location(node),
            writes=self._account.since(memory, known.then),
            shares=self._shares.of(memory),
        )
