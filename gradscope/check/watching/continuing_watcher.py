"""Watches a program that goes on after a violation: each backward computes with what was saved, not with what is there.

What was saved is put into the memory while the node that needs it runs, and what was there is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from threading import get_ident
from typing import Any, ClassVar

from ...inspect.adapters import Adapter
from .kept_values import KeptValues, WrittenTensor
from .shared_writes import SharedWriteWatch
from .violation_facts import ChangedFacts, Violation
from .watcher import RunningBackward, Watcher
from .wrong_gradients import WrongGradients

__all__ = ["ContinuingWatcher"]


class ContinuingWatcher(Watcher):
    """A watcher under whom saved values outlive the writes.

    Parameters
    ----------
    adapter, tell, shared_writes
        As of :class:`Watcher`.

    Attributes
    ----------
    gradients : WrongGradients
        How wrong gradients would have been.
    """

    exits_of_forks_alone: ClassVar[bool] = False

    def __init__(
        self, adapter: Adapter, tell: Callable[[Violation, BaseException | None], None], shared_writes: SharedWriteWatch
    ) -> None:
        self.gradients = WrongGradients(adapter)
        self._kept = KeptValues(adapter)
        # For the node that runs on each thread: memories that hold their saved values again, and calls that undo it.
        self._exchanged: dict[int, tuple[set[Hashable], list[Callable[[], None]]]] = {}
        super().__init__(adapter, tell, shared_writes)

    def fail(self, error: Exception) -> None:
        """Put back what was there, on all threads: nobody will when their nodes have run."""
        try:
            super().fail(error)
        finally:
            for thread in list(self._exchanged):
                self._put_back(thread)

    def write_started(self, tensor: Any) -> None:
        """Keep what is saved of its memory."""
        self._kept.keep(tensor)

    def memory_shared(self, share: Any) -> None:
        """Keep what is saved of it, where nobody will hear of a write."""
        super().memory_shared(share)
        if not share.how.startswith(".data"):
            self._kept.keep(share.tensor)

    def operator_recorded(self, node: Any) -> None:
        """Note where that lies which it has saved."""
        super().operator_recorded(node)
        self._kept.note(node, self._unsafe)

    def _unsafe(self, memory: Hashable) -> bool:
        """Whether a memory is written without a word: by who was handed it, or when a node that runs has run."""
        exchanged = self._exchanged.get(get_ident())
        return (exchanged is not None and memory in exchanged[0]) or any(
            not share.how.startswith(".data") for share in self._shares.of(memory)
        )

    def node_entered(self, call: Any) -> None:
        """Report what was written, and give the node what it has saved."""
        super().node_entered(call)
        running = self._running.by_task.get(id(call.task))
        if running is None or self.fault:
            return
        written = self._kept.written(call.node, self._values)
        for tensor in written:
            if tensor.saved.current_version != tensor.version:
                leaves = self._leaves(running)
                self._tell(self._modified(call.node, tensor.saved, running.read, leaves, reached=False), None)
        self.gradients.entered(call, written, running.read)
        if written:
            adapter = self._adapter
            memories = {adapter.memory_key(tensor.saved.data) for tensor in written}
            undo: list[Callable[[], None]] = []
            self._exchanged[get_ident()] = memories, undo  # known before the first, for what fails meanwhile
            for tensor in written:
                undo.append(adapter.exchange(call.node, *tensor))

    def node_exited(self, call: Any) -> None:
        """Put back what was there."""
        if get_ident() in self._exchanged:
            self._separate(call, self._exchanged[get_ident()][0])
            self._put_back(get_ident())
        self.gradients.exited(call)
        super().node_exited(call)
        if not call.task.keep_graph:
            self._kept.forget(call.node)

    def task_finished(self, task: Any) -> None:
        """Forget it."""
        self.gradients.ended(task)
        super().task_finished(task)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Put back what was there when a node has failed."""
        self._put_back(get_ident())
        self.gradients.ended(task)
        super().task_failed(task, error)

    def _put_back(self, thread: int) -> None:
        _, undo = self._exchanged.pop(thread, (None, ()))
        for step in reversed(undo):
            step()

    def _separate(self, call: Any, memories: set[Hashable]) -> None:
        """Give gradients memory of their own that lie in what the node has saved."""
        for number, gradient in enumerate(call.grad_inputs):
            if gradient is not None and self._adapter.memory_key(gradient) in memories:
                call.grad_inputs[number] = gradient.clone()

    def _changed(self, node: Any, saved: Any, then: int, running: RunningBackward) -> ChangedFacts:
        facts = super()._changed(node, saved, then, running)
        return replace(facts, kept=any(_same(saved, tensor) for tensor in self._kept.written(node, self._values)))


def _same(saved: Any, tensor: WrittenTensor) -> bool:
    return bool(saved.name == tensor.saved.name and saved.shape == tensor.saved.shape)
