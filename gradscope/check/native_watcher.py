"""Listens to gradscope's own runtime: its errors carry the facts already, stacks and writes included."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..inspect.adapters.native_adapter import NativeAdapter, NativeShare, location_of
from ..inspect.records.records import dtype_name
from ..runtime import events
from ..runtime.errors import InplaceError, SavedTensorFreedError, SavedTensorModifiedError
from .finding_builder import (
    ChangedFacts,
    FreedFacts,
    ModifiedFacts,
    RefusedFacts,
    WriteFact,
    changed,
    freed,
    modified,
    refused,
)
from .findings import Finding
from .saved_values import SavedValues
from .tensor_names import name_of, producer_of
from .write_ledger import Ledger, Shares

__all__ = ["NativeWatch"]

_OPTIMIZERS = f"{os.sep}gradscope{os.sep}optim{os.sep}"


class NativeWatch:
    """A subscription to the events of :mod:`gradscope.runtime.events`, with call sites on.

    Every node then knows the line that recorded it and every write the line that did it. It keeps no tensor, node or
    frame.

    Parameters
    ----------
    tell : callable
        Called with each finding, and the error that the program is about to meet or None.

    Attributes
    ----------
    backwards, writes : int
        How many were watched; those into gradients that accumulate do not count.
    used : bool
        Whether the program has run an operator.
    """

    def __init__(self, tell: Callable[[Finding, BaseException | None], None]) -> None:
        self.backwards = 0
        self.writes = 0
        self.used = False
        self._tell = tell
        self._adapter = NativeAdapter()
        self._ledger = Ledger()
        self._shares = Shares()
        self._values = SavedValues(self._adapter, self._ledger)
        self._freed_by: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._running = _Running()
        self._subscription = events.subscribe_each(
            {
                events.OperatorRecorded: self._recorded,
                events.VersionBumped: self._written,
                events.MemoryShared: self._shared,
                events.WriteRefused: self._refused,
                events.GraphTaskStarted: self._started,
                events.NodeEntered: self._entered,
                events.TensorReleased: self._released,
                events.VersionViolation: self._violation,
                events.GraphTaskFinished: self._ended,
                events.GraphTaskFailed: self._ended,
            },
            call_sites=True,
        )

    def close(self) -> None:
        """Listen no more."""
        self._subscription.unsubscribe()

    def _recorded(self, event: Any) -> None:
        self.used = True
        if event.node is not None:
            self._values.note(event.node)

    def _written(self, event: Any) -> None:
        self.writes += event.operator != "AccumulateGrad"
        # A counter keeps its own writes, but neither those of another into its memory nor which bytes they were. Once
        # begun, an account is kept up: memory that has the address later must not be taken for it.
        tensor, adapter = event.tensor, self._adapter
        memory = adapter.memory_key(tensor)
        part = tensor.nbytes < tensor.untyped_storage().nbytes()
        if part or memory in self._ledger or self._shares.of(memory):
            self._ledger.add(memory, event.version, _write_fact(event), adapter.region(tensor))

    def _shared(self, event: Any) -> None:
        self._shares.add(self._adapter.memory_key(event.tensor), NativeShare(event), self._ledger)

    def _refused(self, event: Any) -> None:
        self._tell(refused(_refused_facts(event.error)), event.error)

    def _started(self, event: Any) -> None:
        self.backwards += 1
        self._running.begin(event.task, events.capture_call_site(2))

    def _entered(self, event: Any) -> None:
        # The node of a written view runs inside the CopySlices of its base.
        for saved, then in self._values.changed(getattr(event.node, "function", event.node)):
            self._tell(changed(self._changed_facts(saved, then, event.task)), None)

    def _released(self, event: Any) -> None:
        self._freed_by[event.node] = self._running.site()

    def _ended(self, event: Any) -> None:
        if isinstance(getattr(event, "error", None), SavedTensorFreedError):
            self._second_backward(event.error)
        self._running.end()

    def _violation(self, event: Any) -> None:
        error = event.error
        read = self._running.site() or events.capture_call_site(2)
        task = self._running.task()
        nodes = list(_nodes_of(task)) if task is not None else []
        leaves = self._running.leaves(task) if task is not None else []
        self._tell(modified(self._modified_facts(error, read, leaves, reached=True)), error)
        # The other nodes of this backward that would have failed too, had it come so far.
        for node in nodes:
            if task.runs(node):
                for saved in node.saved_tensors_info():
                    other = None if (saved.node, saved.name) == (error.node, error.saved_name) else saved.violation()
                    if other is not None:
                        self._tell(modified(self._modified_facts(other, read, leaves, reached=False)), None)

    def _modified_facts(
        self, error: SavedTensorModifiedError, read: Any, leaves: Iterable[Any], *, reached: bool
    ) -> ModifiedFacts:
        saved = _saved_behind(error)
        leaf = _leaf_of(saved, leaves) if saved is not None else None
        then, now = error.saved_version, error.current_version
        spared = saved is not None and self._ledger.spared(
            self._adapter.memory_key(saved.data), then, now, self._adapter.region(saved.data)
        )
        return ModifiedFacts(
            node=error.operator,
            saved_name=error.saved_name,
            shape=error.shape,
            dtype=dtype_name(error.dtype),
            # The error names, as PyTorch's does, what the tensor is the result of by now: of the write.
            producer=(self._input_of(error, saved) if saved is not None else "") or error.producer or "",
            saved_version=then,
            current_version=now,
            saved=location_of(error.saved_at),
            read=location_of(read),
            writes=[_write_fact(write) for write in error.writes],
            leaf=None if leaf is None else name_of(leaf),
            reached=reached,
            spared=spared,
        )

    def _input_of(self, error: SavedTensorModifiedError, saved: Any) -> str:
        return "" if saved.is_output or error.producer is None else producer_of(self._adapter, error.node, saved)

    def _changed_facts(self, saved: Any, then: int, task: Any) -> ChangedFacts:
        memory = self._adapter.memory_key(saved.data)
        leaf = _leaf_of(saved, self._running.leaves(task))
        return ChangedFacts(
            node=saved.node.name(),
            saved_name=saved.name,
            shape=saved.shape,
            dtype=dtype_name(saved.dtype),
            producer=saved.node.name() if saved.is_output else "",
            version=saved.current_version,
            saved=location_of(saved.node.call_site),
            read=location_of(self._running.site()),
            writes=self._ledger.since(memory, then),
            shares=self._shares.of(memory),
            leaf=None if leaf is None else name_of(leaf),
        )

    def _second_backward(self, error: SavedTensorFreedError) -> None:
        node = error.node
        first = self._freed_by.get(node)
        if first is None:
            # The node of a written view runs inside the CopySlices of its base.
            first = next((s for n, s in self._freed_by.items() if getattr(n, "function", None) is node), None)
        places = location_of(node.call_site), location_of(self._running.site()), location_of(first)
        self._tell(freed(FreedFacts(node.name(), *places)), error)


class _Running(threading.local):
    """The backward passes that run on this thread, and where each was started."""

    def __init__(self) -> None:
        self._tasks: list[tuple[Any, Any]] = []
        self._leaves: tuple[Any, list[Any]] | None = None

    def begin(self, task: Any, site: Any) -> None:
        self._tasks.append((task, site))

    def end(self) -> None:
        self._leaves = None
        if self._tasks:
            self._tasks.pop()

    def task(self) -> Any:
        return self._tasks[-1][0] if self._tasks else None

    def site(self) -> Any:
        return next((site for _, site in reversed(self._tasks) if site.user_frame() is not None), None)

    def leaves(self, task: Any) -> list[Any]:
        """Return the leaves of a backward, looked for once: a parameter's change may concern each of its nodes."""
        if self._leaves is None or self._leaves[0] is not task:
            self._leaves = task, [node.variable for node in _nodes_of(task) if node.name() == "AccumulateGrad"]
        return self._leaves[1]


def _nodes_of(task: Any) -> Iterator[Any]:
    """Yield the nodes of a backward pass."""
    stack = list(dict.fromkeys(node for node, _ in task.roots))
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append(child)


def _refused_facts(error: InplaceError) -> RefusedFacts:
    return RefusedFacts(
        reason=error.reason,
        shape=error.shape,
        dtype=dtype_name(error.dtype),
        view_operator=error.view_operator,
        location=location_of(events.capture_call_site(3)),
        viewed=location_of(error.view_site),
        write=_write_fact(error.writes[0]) if error.writes else None,
    )


def _write_fact(write: events.VersionBumped) -> WriteFact:
    site = write.call_site
    return WriteFact(
        write.operator,
        location_of(site),
        write.grad_mode,
        write.requires_grad,
        site is not None and any(_OPTIMIZERS in filename for filename in site.filenames),
    )


def _saved_behind(error: SavedTensorModifiedError) -> Any:
    """Return the saved tensor that an error is about, if its node still has it."""
    for saved in error.node.saved_tensors_info():
        if saved.name == error.saved_name and not saved.released and saved.current_version == error.current_version:
            return saved
    return None


def _leaf_of(saved: Any, leaves: Iterable[Any]) -> Any:
    """Return the leaf whose memory a saved tensor is."""
    memory = saved.data.untyped_storage()
    return next((leaf for leaf in leaves if leaf.untyped_storage() == memory), None)
