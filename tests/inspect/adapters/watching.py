"""Observers for the tests of adapters."""

from __future__ import annotations

from typing import Any

from gradscope.inspect.adapters import Observer


class Heard(Observer):
    """Keeps what it hears, in words: (event, name, ...)."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.events: list[tuple[Any, ...]] = []

    def of(self, *kinds: str) -> list[Any]:
        """Return what was said of some kinds of event, bare where there is but one thing."""
        found = [event[1:] for event in self.events if event[0] in kinds]
        return [rest[0] if len(rest) == 1 else rest for rest in found]

    def module_entered(self, module):
        self.events.append(("module", type(module).__name__))

    def module_left(self, module):
        self.events.append(("left", type(module).__name__))

    def operator_recorded(self, node):
        self.events.append(("recorded", self.adapter.node_name(node)))

    def operator_ran(self, call):
        self.events.append(("ran", call.name, len(call.inputs), call.grad_enabled))

    def tensor_written(self, write):
        self.events.append(("written", write.operator, write.version))

    def task_started(self, task):
        self.events.append(("started", len(self.adapter.task_roots(task))))

    def node_entered(self, call):
        self.events.append(("entered", self.adapter.node_name(call.node)))

    def node_exited(self, call):
        self.events.append(("exited", self.adapter.node_name(call.node)))

    def task_finished(self, task):
        self.events.append(("finished",))

    def task_failed(self, task, error):
        self.events.append(("failed", type(error).__name__))

    def violation(self, error):
        self.events.append(("violation", error.saved_name, error.saved_version, error.current_version))

    def blind_region(self, reason):
        self.events.append(("blind", reason))


class Nosy(Observer):
    """Asks everything about everything it is shown, and changes nothing."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.asked = 0

    def _node(self, node):
        adapter = self.adapter
        with adapter.quiet():
            adapter.key(node), adapter.node_name(node), adapter.sequence_nr(node), adapter.location(node)
            adapter.outputs(node), adapter.blind(node)
            for child, _ in adapter.edges(node):
                if child is not None:
                    adapter.key(child)
            for saved in adapter.saved(node):
                _ = (saved.name, saved.shape, saved.dtype, saved.nbytes, saved.saved_version, saved.current_version)
                if not saved.released and adapter.is_tensor(saved.data):
                    adapter.to_host(saved.data).sum()
            leaf = adapter.variable(node)
            if leaf is not None:
                adapter.leaf_grad(leaf), adapter.version(leaf)
        self.asked += 1

    def operator_recorded(self, node):
        self._node(node)

    def operator_ran(self, call):
        assert call.name
        _ = call.location

    def tensor_written(self, write):
        _ = write.location

    def node_entered(self, call):
        self._node(call.node)
        for grad in call.grad_outputs:
            if grad is not None:
                with self.adapter.quiet():
                    self.adapter.to_host(grad).sum(), self.adapter.spec(grad), self.adapter.copy(grad)

    def node_exited(self, call):
        self._node(call.node)
