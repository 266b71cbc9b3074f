"""What can be done where a program stands still: look at any node, evaluate, change a gradient.

Everything here runs on the program's own thread, through the gate.
"""

from __future__ import annotations

import traceback
from types import FrameType
from typing import Any

from . import expressions
from .adapters import Adapter
from .records import NodeRecord
from .snapshots import gradient_summaries
from .tasks import CallFacts, TaskView

__all__ = ["Standing"]


class Standing:
    """A program at a node.

    Parameters
    ----------
    adapter : Adapter
    view : TaskView
        The backward.
    call : object or None
        The node's call, None where no node is running.
    produced : object or None
        The call after the node has run, None before.
    frames : list of frame
        The user's, innermost first.
    """

    def __init__(self, adapter: Adapter, view: TaskView, call: Any, produced: Any, frames: list[FrameType]) -> None:
        self._adapter = adapter
        self._view = view
        self._call = call
        self._produced = produced
        self._frames = frames

    # --- looking ---

    def record(self, index: int) -> NodeRecord:
        """Return the record of a node; of one that has not run, with its saved tensors in numbers."""
        record = self._view.nodes[index]
        if record.state != "pending":
            return record
        node = self._view.live(record.key)
        return record if node is None else self._view.full(node, index)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, tensors as copied arrays."""
        return self._copied(self._value(expression))

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value."""
        return repr(self._value(expression))

    def namespace(self) -> expressions.Namespace:
        """Return what expressions know here."""
        view, call, index = self._view, self._call, self._view.index
        if call is None:
            raise RuntimeError("no node is running here, so there is no gradient to ask about")
        makers = expressions.makers(
            self._adapter,
            call.node,
            lambda: view.nodes[index] if view.nodes else CallFacts(view, call.node, index),
            index,
            call.grad_outputs,
            None if self._produced is None else self._produced.grad_inputs,
        )
        return expressions.Namespace(makers, self._frames[0] if self._frames else None)

    def where(self) -> str:
        """Return the user's frames, outermost first, as a traceback has them."""
        frames = [traceback.FrameSummary(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in self._frames]
        return "".join(traceback.StackSummary.from_list(frames[::-1]).format())

    def _value(self, expression: str) -> Any:
        return eval(expression.strip(), self.namespace())

    def _copied(self, value: Any) -> Any:
        if self._adapter.is_tensor(value):
            return self._adapter.to_host(value).copy()
        if type(value) in (list, tuple) and any(self._adapter.is_tensor(v) for v in value):
            return type(value)(self._copied(v) for v in value)
        return value

    # --- changing ---

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace a gradient: an incoming one before the node, a produced one after it."""
        grads, specs, name = self._slots(slot)
        if isinstance(value, str):
            value = self._value(value)
        spec = self._adapter.spec(grads[slot]) if grads[slot] is not None else specs[slot]
        if spec is None:
            raise ValueError(f"{name}[{slot}] is undefined: no gradient goes there")
        grads[slot] = self._adapter.tensor_like(value, spec)
        self._show(name, grads)

    def scale_grad(self, slot: int, factor: float) -> None:
        """Multiply a gradient by a number."""
        grads, _, name = self._slots(slot)
        if grads[slot] is None:
            raise ValueError(f"{name}[{slot}] is undefined: there is nothing to scale")
        scaled = self._adapter.to_host(grads[slot]) * factor
        grads[slot] = self._adapter.tensor_like(scaled, self._adapter.spec(grads[slot]))
        self._show(name, grads)

    def _slots(self, slot: int) -> tuple[list[Any], list[Any], str]:
        """Return the gradients that can be changed here, what they must look like, and what they are called."""
        adapter = self._adapter
        if self._produced is not None:
            grads, name = self._produced.grad_inputs, "grad_inputs"
            targets = adapter.edges(self._produced.node)
            specs = [None if node is None else adapter.outputs(node)[nr] for node, nr in targets]
        elif self._call is None or self._view.failed:
            raise ValueError("gradients can be changed before a node runs or right after it, not after a failure")
        else:
            grads, name = self._call.grad_outputs, "grad_outputs"
            specs = list(adapter.outputs(self._call.node))
        if not 0 <= slot < len(grads):
            side = "produced" if self._produced is not None else "incoming"
            raise ValueError(f"there is no {side} gradient {slot}: this node has {len(grads)}")
        return grads, specs, name

    def _show(self, name: str, grads: list[Any]) -> None:
        self._view.update(**{name: gradient_summaries(self._adapter, grads, name)})
