"""Observes a program through the adapter protocol, and puts together what a finding says of a misuse."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from threading import get_ident
from types import FrameType
from typing import Any, ClassVar

from ...inspect.adapters import Adapter
from ...inspect.adapters.guarded_observer import GuardedObserver, guards_itself
from ...inspect.adapters.native_adapter import location_of
from ...inspect.records.records import Location, dtype_name
from ...inspect.records.write_account import MemoryShares, WriteAccount
from ...program_files import is_library_file
from ...runtime import call_sites
from .custom_functions import FunctionCalls
from .expanded_parts import expanded_part
from .saved_values import SavedValues
from .shared_writes import SharedWriteWatch
from .task_nodes import nodes_of
from .tensor_names import buffer_name_of, name_of, producer_of
from .violation_facts import ChangedFacts, ContextFacts, FreedFacts, ModifiedFacts, PartFacts, RefusedFacts, Violation

__all__ = ["RunningBackward", "Watcher"]

_FREED_AT = "gradscope.check.freed_at"
_RAN_AT = "gradscope.check.ran_at"
_SECOND = "Trying to backward through the graph a second time"
_OPTIMIZERS = f"{os.sep}optim{os.sep}"


class Watcher(GuardedObserver):
    """An observer that keeps an account of writes, and looks into it when a saved tensor is refused.

    It keeps no tensor, node or frame.

    Parameters
    ----------
    tell : callable
        Called with the facts of each violation, and the error that the program is about to meet or None.
    shared_writes : SharedWriteWatch
        Who is told of nodes too, while it has something to look for there.

    Attributes
    ----------
    backwards, writes : int
        How many were watched; those that the engine makes for itself do not count.
    unseen : dict
        Why something could not be looked into, in the order met; the values mean nothing.
    """

    exits_of_forks_alone: ClassVar[bool] = True

    def __init__(
        self, adapter: Adapter, tell: Callable[[Violation, BaseException | None], None], shared_writes: SharedWriteWatch
    ) -> None:
        self.backwards = 0
        self.writes = 0
        self.unseen: dict[str, None] = {}
        self._adapter = adapter
        self._notes, self._carried = adapter.notes, adapter.carried  # called at every node
        self._tell = tell
        self._shared_writes = shared_writes
        self._account = WriteAccount()
        self._shares = MemoryShares()
        self._values = SavedValues(adapter, self._account)
        self._functions = FunctionCalls(adapter, self._account)
        self._running = _RunningBackwards()
        self._observation = adapter.observe(self, forward=True, backward=True, writes=True)

    def close(self) -> None:
        """Observe no more."""
        self._observation.close()

    # --- what happens ---

    def tensor_written(self, write: Any) -> None:
        """Note who wrote, and count."""
        location = write.location
        running = self._running.innermost()
        # A write on the line of the backward is the engine's own: a gradient that accumulates, a copy that it fills.
        self.writes += location != (running.read if running is not None else None)
        module = self._shared_writes.told_in_place() or ""  # None where that has failed
        self._account.note(self._adapter, write, optimizer=_optimizer_step(), module=module, regions=True)
        self._shared_writes.note_write(write, None if running is None else self._node_at(running))

    def _node_at(self, running: RunningBackward) -> Any:
        """Return the node that a backward runs on this thread, or None."""
        node = running.nodes.get(get_ident())
        return node if node is not None and self._adapter.task_is_at(running.task, node) else None

    def memory_shared(self, share: Any) -> None:
        """Note where memory is handed to, from where writes are not observed."""
        self._shares.add(self._adapter.memory_key(share.tensor), share, self._account)

    def item_assigned(self, tensor: Any, index: Any, location: Location | None) -> None:
        """Report it, where it was a part of what lies at one address."""
        spec = self._adapter.spec(tensor)
        part = expanded_part(self._adapter, tensor, index)
        if part is not None:
            self._tell(PartFacts(name_of(tensor), spec.shape, spec.dtype, *part, location), None)

    def function_applied(self, function: type, args: tuple[Any, ...]) -> None:
        """Note what it is given."""
        self._functions.applied(function, args)

    @guards_itself
    def operator_recorded(self, node: Any) -> None:
        """Note what it has saved."""
        if self.fault:
            return
        try:
            self._values.note(node)
            if self._shared_writes.suspects:
                self._shared_writes.look_at_reader(node)
            if self._functions.given:
                for tensor in self._functions.recorded(node):
                    write = self._account.last(self._adapter.memory_key(tensor))
                    self._shared_writes.suspect_input(tensor, node, write)
        except Exception as error:
            self.fail(error)

    def write_refused(self, error: Any) -> None:
        """Report it."""
        facts = RefusedFacts(
            reason=error.reason,
            shape=error.shape,
            dtype=dtype_name(error.dtype),
            view_operator=error.view_operator,
            location=location_of(call_sites.capture_call_site(2)),
            viewed=location_of(error.view_site),
            write=self._account.last(error.stale_memory) if error.stale_memory is not None else None,
        )
        self._tell(facts, error)

    def task_started(self, task: Any) -> None:
        """Note where it was called."""
        self.backwards += 1
        self._running.begin(task, location_of(call_sites.capture_call_site(2)))

    @guards_itself
    def node_entered(self, call: Any) -> None:
        """Note which node runs: an error does not say where it came from. Report what it saved and is no more."""
        if self.fault:
            return
        try:
            running = self._running.by_task.get(id(call.task))
            if running is not None:
                thread = get_ident()
                self._note_ran(running, thread)
                running.nodes[thread] = call.node
                for saved, then in self._values.changed(call.node):
                    self._tell(self._changed(call.node, saved, then, running), None)
                if self._functions.kept:
                    self._look_at_ctx(call.node, running)
            if self._shared_writes.written:
                self._shared_writes.look_at_entry(call)
        except Exception as error:
            self.fail(error)

    @guards_itself
    def node_exited(self, call: Any) -> None:
        """Note the gradient that it has handed to several nodes."""
        if self.fault:
            return
        try:
            running = self._running.by_task.get(id(call.task))
            if running is not None:
                self._note_ran(running, get_ident())
            _, made = self._carried(call)
            if len(made) > 1 and _same_twice(made):
                self._shared_writes.note_shared(call)
        except Exception as error:
            self.fail(error)

    def _note_ran(self, running: RunningBackward, thread: int) -> None:
        """Note which backward freed what the node had saved that a thread ran last."""
        node = running.nodes.pop(thread, None)
        if node is not None:
            self._notes(node)[_RAN_AT if running.task.keep_graph else _FREED_AT] = running.read

    def task_finished(self, task: Any) -> None:
        """Forget it."""
        running = self._running.end(task)
        if running is not None:
            for thread in list(running.nodes):
                self._note_ran(running, thread)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Report a graph that had been freed."""
        running = self._running.end(task)
        if running is None or not isinstance(error, RuntimeError) or not str(error).startswith(_SECOND):
            return
        notes, name, location = self._adapter.notes, self._adapter.node_name, self._adapter.location
        for node in running.nodes.values():
            if _FREED_AT in notes(node):
                facts = FreedFacts(name(node), location(node), running.read, notes(node)[_FREED_AT])
                self._tell(facts, error)
                return

    def violation(self, error: Any) -> None:
        """Report it, and the other nodes of this backward that would have failed too, had it come so far."""
        running = self._running.innermost()
        read = location_of(call_sites.capture_call_site(2)) if running is None else running.read
        leaves = [] if running is None else self._leaves(running)
        handed = getattr(error, "checkpoint_input", None)
        if handed is not None:
            self._tell(self._modified(error.node, handed, read, leaves, reached=True), error)
        met = (error.saved_name, error.saved_version, error.current_version)
        for node in (error.node, *self._still_to_run(running, error.node)):
            for saved in self._adapter.saved(node):
                then, now = saved.saved_version, saved.current_version
                reached = node is error.node and (saved.name, then, now) == met
                # Outside of a backward the program has read one saved tensor itself, and only that one is reported.
                if reached or (running is not None and then != now):
                    facts = self._modified(node, saved, read, leaves, reached=reached)
                    self._tell(facts, error if reached else None)

    def _still_to_run(self, running: RunningBackward | None, node: Any) -> list[Any]:
        if running is None:
            return []
        task, runs = running.task, self._adapter.task_runs
        return [other for other in nodes_of(self._adapter, task) if other is not node and runs(task, other)]

    def blind_region(self, reason: str) -> None:
        """Note why."""
        self.unseen[reason] = None

    blind_call = blind_region

    # --- facts ---

    def _look_at_ctx(self, node: Any, running: RunningBackward) -> None:
        adapter = self._adapter
        for kept in self._functions.changed(node):
            spec = adapter.spec(kept.tensor)
            facts = ContextFacts(
                node=adapter.node_name(node),
                attribute=f"ctx.{kept.name}",
                shape=spec.shape,
                dtype=spec.dtype,
                saved=adapter.location(node),
                read=running.read,
                writes=self._account.since(adapter.memory_key(kept.tensor), kept.then),
            )
            self._tell(facts, None)

    def _modified(
        self, node: Any, saved: Any, read: Location | None, leaves: list[Any], *, reached: bool
    ) -> ModifiedFacts:
        adapter = self._adapter
        memory = adapter.memory_key(saved.data)
        then, now = saved.saved_version, saved.current_version
        leaf = self._leaf_at(memory, leaves)
        return ModifiedFacts(
            node=adapter.node_name(node),
            saved_name=saved.name,
            shape=saved.shape if leaf is None else adapter.spec(leaf).shape,
            dtype=dtype_name(saved.dtype),
            producer=self._producer(node, saved) if leaf is None else "",
            saved_version=then,
            current_version=now,
            saved=adapter.location(node),
            read=read,
            writes=self._account.between(memory, then, now),
            spared=self._account.spared(memory, then, now, adapter.region(saved.data)),
            leaf=None if leaf is None else name_of(leaf),
            buffer=buffer_name_of(adapter, memory) if leaf is None else "",
            reached=reached,
            ran_before=read is not None and adapter.notes(node).get(_RAN_AT) == read,
        )

    def _changed(self, node: Any, saved: Any, then: int, running: RunningBackward) -> ChangedFacts:
        adapter = self._adapter
        memory = adapter.memory_key(saved.data)
        leaf = self._leaf_at(memory, self._leaves(running))
        return ChangedFacts(
            node=adapter.node_name(node),
            saved_name=saved.name,
            shape=saved.shape if leaf is None else adapter.spec(leaf).shape,
            dtype=dtype_name(saved.dtype),
            producer=self._producer(node, saved) if leaf is None else "",
            version=saved.current_version,
            saved=adapter.location(node),
            read=running.read,
            writes=self._account.since(memory, then),
            shares=self._shares.of(memory),
            leaf=None if leaf is None else name_of(leaf),
            buffer=buffer_name_of(adapter, memory) if leaf is None else "",
            framework=adapter.name,
            number=adapter.sequence_nr(node),
        )

    def _leaves(self, running: RunningBackward) -> list[Any]:
        """Return the leaves of a backward, looked for once: a parameter's change may concern each of its nodes."""
        if running.leaves is None:
            nodes = nodes_of(self._adapter, running.task)
            running.leaves = [leaf for leaf in map(self._adapter.variable, nodes) if leaf is not None]
        return running.leaves

    def _leaf_at(self, memory: Hashable, leaves: list[Any]) -> Any:
        """Return the leaf whose memory it is, None if it is no leaf's."""
        return next((leaf for leaf in leaves if self._adapter.memory_key(leaf) == memory), None)

    def _producer(self, node: Any, saved: Any) -> str:
        if saved.name.startswith(("result", "output")):
            return self._adapter.node_name(node)
        return producer_of(self._adapter, node, saved) if saved.requires_grad else ""


class RunningBackward:
    """A backward that runs: where it was called, which node each thread is at, and its leaves once somebody asked."""

    __slots__ = ("leaves", "nodes", "read", "task")

    def __init__(self, task: Any, read: Location | None) -> None:
        self.task = task
        self.read = read
        self.nodes: dict[int, Any] = {}
        self.leaves: list[Any] | None = None


class _RunningBackwards:
    """The backward passes that run: on the thread that called, one inside the other; their nodes on devices' too.

    Attributes
    ----------
    by_task : dict of int to RunningBackward
        By the id of the task.
    """

    def __init__(self) -> None:
        self.by_task: dict[int, RunningBackward] = {}
        self._local = threading.local()

    def begin(self, task: Any, read: Location | None) -> None:
        backward = self.by_task[id(task)] = RunningBackward(task, read)
        self._stack().append(backward)

    def end(self, task: Any) -> RunningBackward | None:
        backward = self.by_task.pop(id(task), None)
        if backward is not None:
            self._stack().remove(backward)
        return backward

    def innermost(self) -> RunningBackward | None:
        stack = self._stack()
        return stack[-1] if stack else None

    def _stack(self) -> list[RunningBackward]:
        try:
            stack: list[RunningBackward] = self._local.stack
        except AttributeError:
            stack = self._local.stack = []
        return stack


def _optimizer_step() -> str:
    """Return the optimizer of the framework's own in whose step the program stands (``'Adam.step'``), or nothing."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        # Frames of the standard library and of the framework are passed over; an optimizer of the program's own shows
        # its line itself.
        if not is_library_file(code.co_filename):
            return ""
        if _OPTIMIZERS in code.co_filename and code.co_qualname.endswith(".step"):
            # The method may stand in a class that the optimizer inherits from.
            return f"{type(frame.f_locals['self']).__name__}.step"
        frame = frame.f_back
    return ""


def _same_twice(made: Sequence[Any]) -> bool:
    """Whether two of the gradients that a node has made are one object."""
    if len(made) == 2:
        return made[0] is made[1] and made[0] is not None
    there = [id(gradient) for gradient in made if gradient is not None]
    return len(set(there)) < len(there)
