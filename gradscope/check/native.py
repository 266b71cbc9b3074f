"""Listens to gradscope's own runtime: its errors carry the facts already, stacks and writes included."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..inspect.adapters.native import dtype_name, location_of
from ..runtime import events
from ..runtime.errors import InplaceError, SavedTensorFreedError, SavedTensorModifiedError
from .diagnosis import FreedFacts, ModifiedFacts, RefusedFacts, WriteFact, freed, modified, refused
from .findings import Finding
from .naming import name_of

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
        self._freed_by: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._running = _Running()
        self._subscriptions = [
            events.subscribe(
                self._listen,
                events.GraphTaskStarted,
                events.GraphTaskFinished,
                events.GraphTaskFailed,
                events.TensorReleased,
                events.VersionBumped,
                events.VersionViolation,
                events.WriteRefused,
                call_sites=True,
            ),
            events.subscribe(self._first_operator, events.OperatorRecorded),
        ]

    def close(self) -> None:
        """Listen no more."""
        for subscription in self._subscriptions:
            subscription.unsubscribe()

    def _first_operator(self, event: Any) -> None:
        self.used = True
        self._subscriptions[1].unsubscribe()

    def _listen(self, event: Any) -> None:
        kind = type(event)
        if kind is events.VersionBumped:
            self.writes += event.operator != "AccumulateGrad"
        elif kind is events.TensorReleased:
            self._freed_by[event.node] = self._running.site()
        elif kind is events.GraphTaskStarted:
            self.backwards += 1
            self._running.tasks.append((event.task, events.capture_call_site(2)))
        elif kind is events.VersionViolation:
            self._violation(event.error)
        elif kind is events.WriteRefused:
            self._tell(refused(_refused_facts(event.error)), event.error)
        else:
            if kind is events.GraphTaskFailed and isinstance(event.error, SavedTensorFreedError):
                self._second_backward(event.error)
            if self._running.tasks:
                self._running.tasks.pop()

    def _violation(self, error: SavedTensorModifiedError) -> None:
        read = self._running.site() or events.capture_call_site(2)
        task = self._running.task()
        nodes = list(_nodes_of(task)) if task is not None else []
        leaves = [n.variable for n in nodes if n.name() == "AccumulateGrad"]
        self._tell(modified(_modified_facts(error, read, leaves, reached=True)), error)
        # The other nodes of this backward that would have failed too, had it come so far.
        for node in nodes:
            if task.runs(node):
                for saved in node.saved_tensors_info():
                    other = None if (saved.node, saved.name) == (error.node, error.saved_name) else saved.violation()
                    if other is not None:
                        self._tell(modified(_modified_facts(other, read, leaves, reached=False)), None)

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
        self.tasks: list[tuple[Any, Any]] = []

    def task(self) -> Any:
        return self.tasks[-1][0] if self.tasks else None

    def site(self) -> Any:
        return next((site for _, site in reversed(self.tasks) if site.user_frame() is not None), None)


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


def _modified_facts(
    error: SavedTensorModifiedError, read: Any, leaves: Iterable[Any], *, reached: bool
) -> ModifiedFacts:
    leaf = _leaf_behind(error, leaves)
    return ModifiedFacts(
        node=error.operator,
        saved_name=error.saved_name,
        shape=error.shape,
        dtype=dtype_name(error.dtype),
        producer=error.producer or "",
        saved_version=error.saved_version,
        current_version=error.current_version,
        saved=location_of(error.saved_at),
        read=location_of(read),
        writes=[_write_fact(write) for write in error.writes],
        leaf=None if leaf is None else name_of(leaf),
        reached=reached,
    )


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
        site is not None and any(_OPTIMIZERS in frame.filename for frame in site.frames),
    )


def _leaf_behind(error: SavedTensorModifiedError, leaves: Iterable[Any]) -> Any:
    """Return the leaf of the graph whose memory the saved tensor is."""
    for saved in error.node.saved_tensors_info():
        if saved.name == error.saved_name and not saved.released and saved.current_version == error.current_version:
            memory = saved.data.untyped_storage()
            for leaf in leaves:
                if leaf.untyped_storage() == memory:
                    return leaf
    return None
