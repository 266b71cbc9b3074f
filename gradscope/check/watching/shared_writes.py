"""Writes into tensors that others read too: the one that a module was given, the gradient that several nodes get.

No saved tensor is spoilt by it and no version tells: the program computes something else than what stands there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ...inspect.adapters import Adapter
from ...inspect.adapters.guarded_observer import GuardedObserver, guarded
from ...inspect.records.naming import tables_of
from ...inspect.records.records import Location
from ...inspect.records.write_facts import WriteFact
from ...inspect.source.call_sites import caller, user_frame
from ...inspect.source.frame_variables import variables_of
from ...inspect.source.variable_names import name_of
from ..findings.source_fixes import made_in_place
from .task_nodes import arrivals, nodes_of
from .violation_facts import GradientFacts, InputFacts, Violation, WrittenInput

__all__ = ["SharedWriteWatch"]


@dataclass(slots=True)
class _ForwardWrite:
    """A tensor that was written in the forward pass, and the modules that were running, outermost first."""

    tensor: weakref.ref[Any]
    modules: tuple[int, ...]
    writer: str
    by_flag: bool
    operator: str
    location: Location | None


@dataclass(slots=True)
class _UnreturnedInput:
    """A tensor that a module has written and not returned: who reads it next reads other values."""

    tensor: weakref.ref[Any]
    written_input: WrittenInput


@dataclass(slots=True)
class _GradientWrite:
    """A gradient that was written while a backward ran.

    `below` are the keys of the nodes that are to see the new values: the one it was written for, and those after it.
    """

    tensor: Any
    operator: str
    location: Location
    below: set[int] = field(default_factory=set)
    told: bool = False


class _RunningBackward:
    """A backward that runs on a thread."""

    def __init__(self, task: Any, called: Location | None) -> None:
        self.task = task
        self.called = called
        self.written: dict[Any, _GradientWrite] = {}
        # A gradient that a node handed to several others, by its memory: who got it, as (key, number of the input).
        self.shared: dict[Any, list[tuple[int, int]]] = {}


class SharedWriteWatch(GuardedObserver):
    """Watches modules and hooks that write what they were given.

    What happens to nodes it is told by the :class:`~.watcher.Watcher` of the framework, and only while it has
    something to look for there.

    Parameters
    ----------
    tell : callable
        Called with the facts of each violation, and None.
    adapter : Adapter
        Of the frameworks whose modules and hooks are watched.

    Attributes
    ----------
    suspects : dict
        Whether it looks at nodes that are recorded.
    written : int
        Whether it looks at nodes that run: how many gradients were written while a backward ran.
    """

    def __init__(self, tell: Callable[[Violation, BaseException | None], None], adapter: Adapter) -> None:
        self._tell = tell
        self._adapter = adapter
        self._local = threading.local()
        self._written: dict[int, _ForwardWrite] = {}
        self.suspects: dict[int, _UnreturnedInput] = {}
        self.written = 0
        self._observation = self._adapter.observe(self, forward=True, backward=True)

    def close(self) -> None:
        """Watch no more."""
        self._observation.close()

    # --- the forward pass ---

    def module_entered(self, module: Any) -> None:
        """Note that a module runs."""
        self._modules().append((id(module), type(module).__name__, getattr(module, "inplace", None) is True))

    def module_left(self, module: Any) -> None:
        """Note that it has run."""
        modules = self._modules()
        while modules and modules.pop()[0] != id(module):
            pass

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Suspect the inputs that it has written and does not return."""
        if not self._written:
            return
        returned = {self._adapter.memory_key(tensor) for tensor in self._tensors(output)}
        for tensor in self._tensors(inputs):
            write = self._written.get(id(tensor))
            if write is None or write.tensor() is not tensor or id(module) not in write.modules:
                continue
            root = self._adapter.root(tensor)
            if root is None or self._adapter.memory_key(tensor) in returned or not self._leads_to(output, root[0]):
                continue
            spec, frame = self._adapter.spec(tensor), user_frame()
            owner, attribute = _child_of(frame, module)
            written_input = WrittenInput(
                name=name_of(tensor, frame),
                shape=spec.shape,
                dtype=spec.dtype,
                module=f"self.{attribute}" if attribute else name_of(module, frame) or type(module).__name__,
                writer=write.writer,
                by_flag=write.by_flag,
                operator=write.operator,
                written=write.location,
                made=None if owner is None else made_in_place(type(owner), attribute, write.writer),
            )
            self.suspects[self._adapter.key(root[0])] = _UnreturnedInput(write.tensor, written_input)

    @guarded
    def told_in_place(self) -> str:
        """Return the class of the module that runs, where it has been told to work in place; else nothing."""
        modules = self._modules()
        return modules[-1][1] if modules and modules[-1][2] else ""

    @guarded
    def suspect_input(self, tensor: Any, node: Any, write: WriteFact | None) -> None:
        """Suspect an input that a custom Function has written without ``mark_dirty()``."""
        root = self._adapter.root(tensor)
        if root is None:
            return
        spec, name = self._adapter.spec(tensor), self._adapter.node_name(node).removesuffix("Backward")
        written_input = WrittenInput(
            name=name_of(tensor, user_frame()),
            shape=spec.shape,
            dtype=spec.dtype,
            module=f"{name}.apply",
            writer=f"{name}.forward",
            operator="an operator" if write is None else write.operator,
            written=None if write is None else write.location,
        )
        self.suspects[self._adapter.key(root[0])] = _UnreturnedInput(weakref.ref(tensor), written_input)

    def _leads_to(self, output: Any, target: Any) -> bool:
        """Whether a module's output was computed from what it has written: else it is called for the write."""
        adapter = self._adapter
        roots = (adapter.root(tensor) for tensor in self._tensors(output))
        stack = [root[0] for root in roots if root is not None]
        seen, oldest = set(stack), adapter.sequence_nr(target)
        while stack:
            node = stack.pop()
            if node is target:
                return True
            for child, _ in adapter.edges(node):
                if child is not None and child not in seen and adapter.sequence_nr(child) >= oldest:
                    seen.add(child)
                    stack.append(child)
        return False

    @guarded
    def look_at_reader(self, node: Any) -> None:
        """Report the reader of a tensor that a module has written."""
        for child, _ in self._adapter.edges(node):
            suspect = None if child is None else self.suspects.pop(self._adapter.key(child), None)
            if suspect is not None and suspect.tensor() is not None:
                name, place = self._adapter.node_name(node), self._adapter.location(node)
                self._tell(InputFacts(suspect.written_input, name, place), None)

    @guarded
    def note_write(self, write: Any, node: Any) -> None:
        """Note what is written inside a module, or while a backward runs, in which `node` is running or none."""
        running = self._backwards()
        if running:
            self._note_gradient(running[-1], write, node)
            return
        modules = self._modules()
        if not modules:
            return
        tensor, key, table = write.tensor, id(write.tensor), self._written

        def gone(reference: Any) -> None:
            if key in table and table[key].tensor is reference:
                del table[key]

        outer = tuple(identity for identity, _, _ in modules)
        _, writer, by_flag = modules[-1]
        table[key] = _ForwardWrite(weakref.ref(tensor, gone), outer, writer, by_flag, write.operator, write.location)

    # --- the backward pass ---

    def task_started(self, task: Any) -> None:
        """Note who called it."""
        self._backwards().append(_RunningBackward(task, caller()))

    def task_finished(self, task: Any) -> None:
        """Forget it, and the gradients that were held back from being reused."""
        if self._backwards():
            self.written -= len(self._backwards().pop().written)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget it."""
        self.task_finished(task)

    @guarded
    def note_shared(self, call: Any) -> None:
        """Note that a node has handed one gradient to several others."""
        backwards = self._backwards()
        if not backwards:
            return
        adapter = self._adapter
        handed: dict[Any, list[tuple[int, int]]] = {}
        for (child, number), gradient in zip(adapter.edges(call.node), call.grad_inputs, strict=False):
            if child is not None and gradient is not None:
                handed.setdefault(adapter.memory_key(gradient), []).append((adapter.key(child), number))
        backwards[-1].shared.update(handed)

    @guarded
    def look_at_entry(self, call: Any) -> None:
        """Report a node that gets a gradient which was changed for another."""
        backwards = self._backwards()
        if not (backwards and backwards[-1].written):
            return
        self._look_at(backwards[-1], call)
        for gradient in backwards[-1].written.values():
            if self._adapter.key(call.node) in gradient.below:
                self._show(gradient, call.node)

    def _show(self, gradient: _GradientWrite, node: Any) -> None:
        """Note that a node is to see the new values of a gradient, and those after it."""
        nodes = (node, *(child for child, _ in self._adapter.edges(node) if child is not None))
        gradient.below.update(map(self._adapter.key, nodes))

    def _look_at(self, running: _RunningBackward, call: Any) -> None:
        for grad in call.grad_outputs:
            gradient = None if grad is None else running.written.get(self._adapter.memory_key(grad))
            if gradient is None or gradient.told:
                continue
            key = self._adapter.key(call.node)
            if not gradient.below:
                gradient.below.add(key)  # the first node that reads it is the one whose hook wrote it
                self._look_for_others(running, gradient, call.node)
            elif key not in gradient.below:
                self._tell_of(gradient, call.node)

    def _note_gradient(self, running: _RunningBackward, write: Any, node: Any) -> None:
        location = write.location
        # The engine's own writes, which add gradients up, stand on the line that called backward(); a hook that is
        # written there is a function of its own.
        if location is None or (running.called is not None and _place(location) == _place(running.called)):
            return
        memory = self._adapter.memory_key(write.tensor)
        if memory in running.written:
            return
        gradient = running.written[memory] = _GradientWrite(write.tensor, write.operator, location)
        self.written += 1
        if node is not None:
            self._show(gradient, node)
            self._look_for_others(running, gradient, node)

    def _look_for_others(self, running: _RunningBackward, gradient: _GradientWrite, writer: Any) -> None:
        """Report a node that has been handed the gradient too, and has not yet added another to it, nor run."""
        adapter, task = self._adapter, running.task
        receivers = running.shared.get(adapter.memory_key(gradient.tensor), [])
        mine = adapter.key(writer)
        if mine not in [key for key, _ in receivers]:
            return
        by_key = {adapter.key(node): node for node in nodes_of(adapter, task)}
        for key, number in receivers:
            other = by_key.get(key)
            if key == mine or other is None or adapter.sequence_nr(other) > adapter.sequence_nr(writer):
                continue
            if adapter.task_runs(task, other) and arrivals(adapter, task, (other, number), writer) == 1:
                self._tell_of(gradient, other)
                return

    def _tell_of(self, gradient: _GradientWrite, other: Any) -> None:
        """Report a gradient that another node gets too."""
        adapter, gradient.told = self._adapter, True
        spec = adapter.spec(gradient.tensor)
        name, recorded = adapter.node_name(other), adapter.location(other)
        self._tell(GradientFacts(spec.shape, spec.dtype, gradient.operator, gradient.location, name, recorded), None)

    # --- per thread ---

    def _modules(self) -> list[tuple[int, str, bool]]:
        try:
            modules: list[tuple[int, str, bool]] = self._local.modules
        except AttributeError:
            modules = self._local.modules = []
        return modules

    def _backwards(self) -> list[_RunningBackward]:
        try:
            backwards: list[_RunningBackward] = self._local.backwards
        except AttributeError:
            backwards = self._local.backwards = []
        return backwards

    def _tensors(self, value: Any) -> Iterator[Any]:
        """Yield the tensors in an argument or a result."""
        if self._adapter.is_tensor(value):
            yield value
            return
        items: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for item in items if isinstance(value, (tuple, list, dict)) else ():
            yield from self._tensors(item)


def _child_of(frame: FrameType | None, module: Any) -> tuple[Any, str]:
    """Return the module whose method a frame runs, and as which child it has another; None where it has not."""
    owner = None if frame is None else variables_of(frame).get("self")
    children = {} if owner is None else tables_of(owner)[1]
    name = next((name for name, child in children.items() if child is module), "")
    return (owner, name) if name else (None, "")


def _place(location: Location) -> tuple[str, int, str]:
    return location.filename, location.lineno, location.function
