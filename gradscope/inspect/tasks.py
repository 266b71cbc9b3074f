"""One backward as the debugger sees it: its nodes in the engine's order, and what has been seen of each."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from types import FrameType
from typing import Any

from .adapters import Adapter
from .order import Wire, engine_order, walk
from .records import Location, NodeRecord, SavedRecord, operator_name
from .snapshots import bare_record, gradient_summaries, saved_records
from .tracking import Tracker, module_of_parameter

__all__ = ["CallFacts", "TaskView"]


class CallFacts:
    """What a breakpoint may ask of the node that is about to run, found when asked."""

    def __init__(self, view: TaskView, node: Any, index: int) -> None:
        self._view = view
        self._node = node
        self.index = index

    @cached_property
    def name(self) -> str:
        """The node's name."""
        return self._view.adapter.node_name(self._node)

    @cached_property
    def operator(self) -> str:
        """The operator's name."""
        return operator_name(self.name)

    @cached_property
    def parameter(self) -> str:
        """The parameter's path."""
        return self._view.parameter_of(self._node)

    @cached_property
    def module(self) -> str:
        """The module's path."""
        return self._view.tracker.module_of(self._node) or module_of_parameter(self.parameter)

    @cached_property
    def location(self) -> Location | None:
        """The user's line that made the node."""
        return self._view.adapter.location(self._node)


class TaskView:
    """What is known of a backward; it holds records, and of the live task only what a pause needs.

    Parameters
    ----------
    adapter : Adapter
    tracker : Tracker
    task : object
        The framework's graph task.
    number : int
        Which backward of the program it is, from 1.
    """

    def __init__(self, adapter: Adapter, tracker: Tracker, task: Any, number: int) -> None:
        self.adapter = adapter
        self.tracker = tracker
        self.task = task
        self.number = number
        self.index = -1
        self.call: Any = None
        self.recording = False
        self.failed = False
        self.nodes: list[NodeRecord] = []
        self._positions: dict[int, int] = {}
        self._seen: dict[int, dict[str, Any]] = {}
        self._names: dict[int, str] | None = None
        self._frame: FrameType | None = None

    # --- while it runs ---

    def entered(self, call: Any) -> None:
        """Note that a node is about to run."""
        self.index += 1
        self.call = call
        if self.recording:
            self._see_entry(call)

    def exited(self, call: Any) -> None:
        """Note that a node has run."""
        if not self.recording:
            return
        key = self.adapter.key(call.node)
        if key not in self._seen:
            self._see_entry(call)
        self._see(
            key,
            state="skipped" if getattr(self.call, "skip", False) else "done",
            grad_outputs=gradient_summaries(self.adapter, call.grad_outputs, "grad_outputs"),
            grad_inputs=gradient_summaries(self.adapter, call.grad_inputs, "grad_inputs"),
            saved=self._after(call.node, self._seen[key]["saved"]),
        )

    def fail(self) -> None:
        """Note that the node that was running raised."""
        self.failed = True
        if self.call is not None:
            self._see_entry(self.call)
            self._see(self.adapter.key(self.call.node), state="failed")

    def close(self) -> None:
        """Let go of everything alive."""
        self.task = self.call = self._frame = None

    def _see_entry(self, call: Any) -> None:
        self._see(
            self.adapter.key(call.node),
            index=self.index,
            state="current",
            grad_outputs=gradient_summaries(self.adapter, call.grad_outputs, "grad_outputs"),
            saved=saved_records(self.adapter, call.node, summaries=False),
        )

    def _see(self, key: int, **facts: Any) -> None:
        """Keep what has been seen of a node; it becomes a record once the backward has been laid out."""
        self._seen.setdefault(key, {}).update(facts)
        if self.nodes:
            self._place(key)

    def _place(self, key: int) -> None:
        """Put what has been seen where the engine ran the node, should the prediction have it elsewhere."""
        facts = self._seen[key]
        predicted = self._positions.get(key)
        if predicted is None:
            return
        record = replace(self.nodes[predicted], **facts)
        if predicted == record.index:
            self.nodes[predicted] = record
            return
        del self.nodes[predicted]
        self.nodes.insert(record.index, record)
        self._number(min(predicted, record.index))

    def _number(self, start: int) -> None:
        for index in range(start, len(self.nodes)):
            record = self.nodes[index]
            if record.index != index:
                record = self.nodes[index] = replace(record, index=index)
            self._positions[record.key] = index

    def _after(self, node: Any, saved: tuple[SavedRecord, ...]) -> tuple[SavedRecord, ...]:
        """Return the saved tensors as they were, marked released where the node let them go."""
        views = self.adapter.saved(node)
        if len(views) != len(saved):
            return tuple(replace(s, state="released", summary=None) for s in saved)
        return tuple(replace(s, state="released") if v.released else s for s, v in zip(saved, views))

    # --- when it stops ---

    def prepare(self, frame: FrameType | None) -> None:
        """Predict the whole order, once; `frame` is the user's, for names of tensors that no module has."""
        self._frame = frame
        if not self.nodes:
            self._predict()
        if self.call is not None and self.adapter.key(self.call.node) not in self._positions:
            # It came into the graph after the backward had been laid out.
            self.nodes.insert(self.index, self._bare(self.call.node, self.index))
            self._number(self.index)
        self._frame = None

    def _predict(self) -> None:
        adapter = self.adapter
        roots = [node for node, _ in adapter.task_roots(self.task)]
        wires = walk(adapter, roots)
        runs = {key for key, wire in wires.items() if adapter.task_runs(self.task, wire.node)}
        targets = {k: [c for c, _ in wires[k].edges if c is not None and c in runs] for k in runs}
        keys = [key for key in map(adapter.key, roots) if key in runs]
        order = engine_order(keys, {key: wires[key].sequence_nr for key in runs}, targets)
        nodes = []
        for index, key in enumerate(order):
            state = "done" if index < self.index else "current" if index == self.index else "pending"
            nodes.append(self._bare(wires[key].node, index, state, wires[key]))
        self._positions = {key: index for index, key in enumerate(order)}
        self.nodes = nodes
        for key in self._seen:
            self._place(key)

    def full(self, node: Any, index: int) -> NodeRecord:
        """Return the record of a live node with its saved tensors in numbers."""
        return replace(self.nodes[index], saved=saved_records(self.adapter, node, summaries=True))

    def update(self, **facts: Any) -> None:
        """Change what is known of the current node."""
        self._see(self.nodes[self.index].key, **facts)

    def live(self, key: int) -> Any:
        """Return the live node of a key, None if it has gone."""
        wires = walk(self.adapter, [node for node, _ in self.adapter.task_roots(self.task)])
        return wires[key].node if key in wires else None

    # --- names ---

    def _bare(self, node: Any, index: int, state: str = "pending", wire: Wire | None = None) -> NodeRecord:
        return bare_record(
            self.adapter,
            node,
            index=index,
            module=self.tracker.module_of(node),
            parameter=self.parameter_of(node),
            state=state,
            wire=wire,
        )

    def parameter_of(self, node: Any) -> str:
        """Return the path of an AccumulateGrad's parameter; the name of a variable where no module has it."""
        leaf = self.adapter.variable(node)
        if leaf is None:
            return ""
        if self._names is None:
            self._names = self.tracker.parameter_paths()
        name = self._names.get(id(leaf), "")
        if not name and self._frame is not None:
            name = self._names[id(leaf)] = _variable_name(self._frame, leaf)
        return name


def _variable_name(frame: FrameType, value: Any) -> str:
    for scope in (frame.f_locals, frame.f_globals):
        for name, bound in list(scope.items()):
            if bound is value:
                return name
    return ""
