"""The context of a pause, in which any node can be looked at, expressions evaluated and gradients changed.

Everything here runs on the program's own thread, through the gate.
"""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy

from ....program_files import source_name
from ...adapters import Adapter, expected_spec
from ...records.records import NodeRecord
from ...source.call_sites import location_at
from ...source.frame_variables import run_in, variables_of
from ..history.what_if import what_if
from ..stops import condition_names
from .debugged_backward import CallFacts, TaskView
from .session_records import FrameRecord, VariableRecord, WhatIf

__all__ = ["About", "PauseContext"]

_MOST_FRAMES, _MOST_VARIABLES = 30, 200
_DEFINITIONS = (ModuleType, FunctionType, BuiltinFunctionType, type)
_ARRAYS = (numpy.ndarray, numpy.generic, int, float, complex)
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 400

About = Callable[[Hashable], dict[str, Callable[[], Any]]]
"""Gives an expression (named by who asks) the names that compare with the iteration before."""


class PauseContext:
    """A program at a node, or in the user's code.

    Parameters
    ----------
    view : TaskView or None
        The backward; None outside of one.
    call : object or None
        The node's call, None where no node is running.
    produced : object or None
        The call after the node has run, None before.
    frames : list of frame
        The user's, innermost first.
    inside : bool
        Whether the node is in the middle of running.

    Attributes
    ----------
    elsewhere : callable or None
        Returns the place of another node, by its number and that of its backward.
    """

    def __init__(
        self,
        adapter: Adapter,
        view: TaskView | None,
        call: Any,
        produced: Any,
        frames: list[FrameType],
        about: About | None = None,
        *,
        inside: bool = False,
    ) -> None:
        self._adapter = adapter
        self._view: Any = view
        self._call = call
        self._produced = produced
        self.frames = frames
        self.about = about
        self.elsewhere: Callable[[int, int | None], PauseContext] | None = None
        self._inside = inside
        self._index = -1 if view is None else view.index

    # --- looking ---

    @property
    def has_node(self) -> bool:
        """Whether this is at a node of a backward."""
        return self._index >= 0

    def record(self, index: int) -> NodeRecord:
        """Return the record of a node, with everything in numbers."""
        record: NodeRecord = self._view.full(index)
        return record

    def roots(self) -> list[Any]:
        """Return the nodes where the backward began; none outside of one, and when it has ended."""
        view = self._view
        return [] if view is None or not view.live else [node for node, _ in self._adapter.task_roots(view.task)]

    def arrivals(self, leaves: Iterable[Any]) -> list[int]:
        """Return the nodes ahead that will accumulate into some leaves, in the engine's order."""
        view, wanted = self._view, {id(leaf) for leaf in leaves}
        if view is None or not view.live:
            return []
        variable, order = self._adapter.variable, view.order
        return [i for i in range(view.index, len(order)) if id(variable(view.live_node(order[i]))) in wanted]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, tensors as copied arrays."""
        return self._copied(self.value(expression))

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value."""
        return repr(self.value(expression))

    def array(self, expression: str) -> Any:
        """Return a tensor, an array or a number as an array, of what it is and not of a copy; None for nothing.

        Raises
        ------
        TypeError
            If the expression is something else.
        """
        if not expression:
            return None
        value = self.value(expression)
        if not (self._adapter.is_tensor(value) or isinstance(value, _ARRAYS)):
            raise TypeError(f"`{expression}` is a {type(value).__name__}, and no tensor")
        return condition_names.host(self._adapter, value)

    def at_node(self, index: int, backward: int | None = None) -> condition_names.NodeNames:
        """Return the tensors of a node; `backward` is the number of its backward, by default of this one."""
        if index == self._index and backward is None:
            return condition_names.NodeNames(index, self._makers())
        if self.elsewhere is None:
            raise ValueError("no backward is shown here")
        return condition_names.NodeNames(index, self.elsewhere(index, backward)._makers())

    def execute(self, statement: str) -> None:
        """Run a Python statement in the frame of the user's function, as if it stood there."""
        if not self.frames:
            raise ValueError("no function of the program is paused here")
        run_in(self.frames[0], compile(statement, "<debugger>", "single"))

    def namespace(self, asker: Hashable = "eval") -> condition_names.Namespace:
        """Return what expressions know here; `asker` tells one expression from another."""
        names = self._makers()
        names["at_node"] = lambda: self.at_node
        if self.about is not None:
            names.update(self.about(asker))
        view = self._view
        counts = {} if view is None else {"iteration": view.iteration, "backward": view.number}
        return condition_names.Namespace(names, self.frames[0] if self.frames else None, counts)

    def _makers(self) -> dict[str, Callable[[], Any]]:
        view, call, index = self._view, self._call, self._index
        if call is None:
            return {"np": lambda: numpy}
        return condition_names.makers(
            self._adapter,
            record=lambda: view.record(index) if view.order else CallFacts(view, call.node, index),
            index=index,
            grads=self._incoming,
            produced=lambda: None if self._produced is None else self._produced.grad_inputs,
            saved=lambda: condition_names.SavedNamespace(list(self._adapter.saved(call.node))),
        )

    def where(self) -> str:
        """Return the user's frames, outermost first, as a traceback has them."""
        frames = [
            traceback.FrameSummary(source_name(f.f_code.co_filename), f.f_lineno, f.f_code.co_name) for f in self.frames
        ]
        return "".join(traceback.StackSummary.from_list(frames[::-1]).format())

    def value(self, expression: str, asker: Hashable = "eval") -> Any:
        """Return the value of an expression as it is; it must not leave the program's thread."""
        return eval(expression.strip(), self.namespace(asker))

    def _copied(self, value: Any) -> Any:
        if self._adapter.is_tensor(value):
            return self._adapter.to_host(value).copy()
        if type(value) in (list, tuple) and any(self._adapter.is_tensor(v) for v in value):
            return type(value)(self._copied(v) for v in value)
        return value

    def what_if(self, slot: int, value: Any) -> WhatIf:
        """Return what would become of the leaves if an incoming gradient of this node were another."""
        grads = self._incoming()
        if not 0 <= slot < len(grads):
            raise ValueError(f"there is no incoming gradient {slot}: this node has {len(grads)}")
        if isinstance(value, str):
            value = self.value(value)
        return what_if(self._adapter, self._view, self._index, grads, slot, value)

    def _incoming(self) -> list[Any]:
        if self._call is None:
            raise ValueError("no node is running here, so there is no gradient to ask about")
        if self._call.grad_outputs is None:
            raise ValueError(
                "the gradients that arrived here are not known\n"
                "Run the program under `gradscope debug`, which stops where a backward fails."
            )
        return list(self._call.grad_outputs)

    def variables(self) -> list[VariableRecord]:
        """Return the variables of the user's function that is paused, in the order in which they were made."""
        found = variables_of(self.frames[0]) if self.frames else {}
        return [_described(name, value) for name, value in found.items() if not name.startswith("__")]

    def frame_records(self) -> tuple[FrameRecord, ...]:
        """Return the user's functions that wait, the innermost first, with their variables."""
        return tuple(_frame_record(frame) for frame in self.frames[:_MOST_FRAMES])

    # --- changing ---

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace a gradient: an incoming one before the node, a produced one after it."""
        grads, specs, name = self._slots(slot)
        if isinstance(value, str):
            value = self.value(value)
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

    def skip(self) -> None:
        """Leave the node out: what it would have produced is undefined."""
        self._slots(0)
        if self._produced is not None:
            raise ValueError("this node has run: a node is skipped before it runs")
        if not hasattr(self._call, "skip"):
            raise ValueError(
                f"{self._adapter.name} cannot leave a node out\nSet its incoming gradients to zero instead."
            )
        self._call.skip = True

    def _slots(self, slot: int) -> tuple[list[Any], list[Any], str]:
        """Return the gradients that can be changed here, what they must look like, and what they are called."""
        adapter = self._adapter
        if self._produced is not None:
            grads, name = self._produced.grad_inputs, "grad_inputs"
            targets = adapter.edges(self._produced.node)
            specs = [None if node is None else expected_spec(adapter, node, nr) for node, nr in targets]
        elif self._call is None or self._inside or self._view.failed:
            raise ValueError("gradients can be changed before a node runs or right after it, not after a failure")
        else:
            grads, name = self._call.grad_outputs, "grad_outputs"
            specs = [expected_spec(adapter, self._call.node, nr) for nr in range(len(grads))]
        if not 0 <= slot < len(grads):
            side = "produced" if self._produced is not None else "incoming"
            raise ValueError(f"there is no {side} gradient {slot}: this node has {len(grads)}")
        return grads, specs, name

    def _show(self, name: str, grads: list[Any]) -> None:
        seen = self._view.seen(self._index)
        seen.edited = True
        group = self._view.group(grads, name)
        if name == "grad_outputs":
            seen.incoming = group
        else:
            seen.produced = group


def _frame_record(frame: FrameType) -> FrameRecord:
    found = (
        (name, value)
        for name, value in variables_of(frame).items()
        if not name.startswith("__") and not isinstance(value, _DEFINITIONS)
    )
    described = tuple(_described(name, value) for name, value in islice(found, _MOST_VARIABLES))
    return FrameRecord(location_at(frame, frame.f_lineno), described)


def _described(name: str, value: Any) -> VariableRecord:
    shape = getattr(value, "shape", None) if hasattr(value, "dtype") else None
    return VariableRecord(name, type(value).__name__, _SHORT.repr(value), None if shape is None else tuple(shape))
