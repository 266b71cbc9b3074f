"""The graph of a backward that a program runs: taken as it begins, or with its gradients as it ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..adapters import Adapter, AnyAdapter, Observer, adapter_for
from ..debuggee.broadcast import OutputWriter
from ..debuggee.pause_gate import ProgramAborted
from ..debuggee.program import Program
from ..debuggee.program_thread import ProgramThread
from ..records.module_tracking import Tracker
from ..records.snapshots import gradient_summaries
from ..source.call_sites import user_frames
from ..source.frame_variables import variables_of
from .graph_model import BackwardGraph, graph_of_roots

__all__ = ["GraphCapture", "capture_graph"]

_TIMEOUT = 10.0
_AFTER_CTRL_C = 2.0


@dataclass(frozen=True, slots=True)
class GraphCapture:
    """The result of :func:`capture_graph`.

    Attributes
    ----------
    graph : BackwardGraph or None
        None if the program ended before.
    backwards : int
        How many it had begun.
    """

    graph: BackwardGraph | None
    backwards: int


def capture_graph(
    program: Program,
    *,
    backward: int = 1,
    gradients: bool = False,
    write: OutputWriter | None = None,
    adapter: Adapter | None = None,
) -> GraphCapture:
    """Run a program up to one of its backwards, return the graph of that, and end the program.

    Parameters
    ----------
    program : Program
        It runs on a thread of its own, while the caller's serves its signals (``program.signals``, for a script).
    backward : int
        Which, from 1.
    gradients : bool
        Let it run, and note of each node the time it took and the gradients in numbers: ``seconds``, ``state``,
        ``grad_outputs`` and ``grad_inputs``.
    write : callable, optional
        Takes what the program writes; nobody by default.
    adapter : Adapter, optional
        The framework; any by default.

    Returns
    -------
    GraphCapture
        What the program raised before is in ``program.error``.

    Raises
    ------
    ValueError
        If `backward` is not positive.
    KeyboardInterrupt
        After Ctrl-C, which ends the program.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.debuggee.program import CallProgram
    >>> w = gs.ones(2, requires_grad=True)
    >>> def train():
    ...     for step in range(3):
    ...         (w * step).sum().backward()
    >>> found = capture_graph(CallProgram(train), backward=2, gradients=True)
    >>> [(d["operator"], d["parameter"], d["grad_outputs"][0].norm) for _, d in found.graph.nodes(data=True)][1:]
    [('Mul', '', 1.4142135623730951), ('AccumulateGrad', 'w', 1.4142135623730951)]
    """
    if backward < 1:
        raise ValueError(f"backwards are numbered from 1, got {backward}")
    observer = _CaptureObserver(adapter or AnyAdapter(), backward, gradients)

    def run() -> None:
        try:
            with observer.adapter.observe(observer, forward=True, backward=True):
                program.run(write or _nowhere)
        finally:
            observer.ended.set()
            observer.done.set()  # the thread that waits for the graph goes on

    ProgramThread(run).start()
    try:
        # The wait goes in slices, so that a signal reaches the main thread on every platform.
        while not observer.done.wait(0.2) and not observer.ended.is_set():
            pass
    except KeyboardInterrupt:
        program.end()
        observer.ended.wait(_AFTER_CTRL_C)
        raise
    deadline = time.monotonic() + _TIMEOUT
    while not observer.ended.wait(0.2) and time.monotonic() < deadline:
        # The program may have caught what was raised in it.
        program.end()
    return GraphCapture(observer.graph, observer.count)


def _nowhere(text: str, stream: str = "stdout") -> None:
    """Take what the program writes."""


class _CaptureObserver(Observer):
    """Takes the graph when the backward that is wanted begins."""

    def __init__(self, adapter: Adapter, wanted: int, gradients: bool) -> None:
        self.adapter = adapter
        self.graph: BackwardGraph | None = None
        self.count = 0
        self.done = threading.Event()
        self.ended = threading.Event()
        self._tracker = Tracker(adapter)
        self._wanted = wanted
        self._gradients = gradients
        self._task: Any = None
        self._started = 0.0
        self._lock = threading.Lock()
        self._quiet = threading.local()

    # --- forward ---

    def module_entered(self, module: Any) -> None:
        """A module is about to run forward."""
        if self._deaf():
            return
        self._stop_if_done()
        self._tracker.module_entered(module)

    def module_left(self, module: Any) -> None:
        """A module has run forward."""
        if not self._deaf():
            self._tracker.module_left(module)

    def operator_recorded(self, node: Any) -> None:
        """A node has been made."""
        if not self._deaf():
            self._tracker.operator_recorded(node)

    # --- backward ---

    def task_started(self, task: Any) -> None:
        """A backward begins: take its graph if it is the one."""
        if self._deaf():
            return
        self._stop_if_done()
        with self._lock:
            self.count += 1
            if self.count != self._wanted:
                return
        with self._silence():
            self.graph = self._take(task)
        self._task = task
        if not self._gradients:
            self._finish()
            raise ProgramAborted

    def node_entered(self, call: Any) -> None:
        """A node is about to run: note its gradients."""
        if call.task is not self._task or self._deaf():
            return
        with self._silence():
            self._note(call.node, "current", grad_outputs=call.grad_outputs)
        self._started = time.perf_counter()

    def node_exited(self, call: Any) -> None:
        """A node has run: note what it produced."""
        if call.task is not self._task or self._deaf():
            return
        seconds = time.perf_counter() - self._started
        with self._silence():
            self._note(call.node, "done", seconds, grad_outputs=call.grad_outputs, grad_inputs=call.grad_inputs)

    def task_finished(self, task: Any) -> None:
        """A backward has ended."""
        if task is self._task and not self._deaf():
            self._finish()
            raise ProgramAborted

    def task_failed(self, task: Any, error: BaseException) -> None:
        """A backward has ended by an error: that is seen in the graph."""
        if task is not self._task:
            return
        if self.graph is not None:
            for _, data in self.graph.nodes(data=True):
                if data.get("state") == "current":
                    data["state"] = "failed"
        self._finish()

    # --- inside ---

    def _take(self, task: Any) -> BackwardGraph:
        paths = self._tracker.parameter_paths()
        variables = _variables(self.adapter)
        roots = [node for node, _ in self.adapter.task_roots(task)]
        # This is the adapter of the one framework: AnyAdapter would first find out, for each question, which one it is.
        graph = graph_of_roots(adapter_for(roots[0]), roots, {**variables, **paths})
        graph.graph["parameters"] = list(dict.fromkeys(paths.values()))
        return graph

    def _note(self, node: Any, state: str, seconds: float | None = None, **grads: Any) -> None:
        key = self.adapter.key(node)
        if self.graph is None or key not in self.graph:
            return
        facts = {name: gradient_summaries(self.adapter, found, name) for name, found in grads.items()}
        self.graph.nodes[key].update(state=state, seconds=seconds, **facts)

    def _finish(self) -> None:
        self._task = None
        self.done.set()

    def _stop_if_done(self) -> None:
        if self.done.is_set():
            raise ProgramAborted

    def _deaf(self) -> bool:
        return getattr(self._quiet, "on", False)

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Do arithmetic of our own, neither recorded nor observed."""
        self._quiet.on = True
        try:
            with self.adapter.quiet():
                yield
        finally:
            self._quiet.on = False


def _variables(adapter: Adapter) -> dict[int, str]:
    """Return the names of the user's variables that are tensors, by the id of the tensor; the innermost counts."""
    names: dict[int, str] = {}
    for frame in user_frames(sys._getframe()):
        for scope in (variables_of(frame), frame.f_globals):
            for name, value in list(scope.items()):
                # The type has the answer: to ask a lazy object itself would load it.
                if hasattr(type(value), "requires_grad") and adapter.is_tensor(value):
                    names.setdefault(id(value), name)
    return names
