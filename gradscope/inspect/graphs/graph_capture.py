"""The graph of a backward that a program runs: taken as it begins, or with its gradients as it ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..adapters import Adapter, AnyAdapter, adapter_for
from ..adapters.guarded_observer import GuardedObserver
from ..debuggee.broadcast import OutputWriter
from ..debuggee.pause_gate import ProgramAborted
from ..debuggee.program import Program
from ..records.module_tracking import Tracker
from ..records.snapshots import gradient_summaries
from ..source.call_sites import user_frames
from ..source.frame_variables import variables_of
from .graph_model import BackwardGraph, graph_of_roots

__all__ = ["GraphCapture"]


class GraphCapture(GuardedObserver):
    """Runs a program up to one of its backwards, takes the graph of that, and ends the program.

    Parameters
    ----------
    program : Program
        It runs on the thread that calls :meth:`run`.
    backward : int
        Which, from 1.
    gradients : bool
        Let it run, and note of each node the time it took and the gradients in numbers: ``seconds``, ``state``,
        ``grad_outputs`` and ``grad_inputs``.
    taken : callable, optional
        Called with the graph as soon as it is whole, on the thread of the backward. From then on
        :class:`.ProgramAborted` is raised in the program, again and again where it catches it.

    Attributes
    ----------
    graph : BackwardGraph or None
        None until then. What the program raised before is in ``program.error``.
    backwards : int
        How many it has begun.

    Raises
    ------
    ValueError
        If `backward` is not positive.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.debuggee.program import CallProgram
    >>> w = gs.ones(2, requires_grad=True)
    >>> def train():
    ...     for step in range(3):
    ...         (w * step).sum().backward()
    >>> capture = GraphCapture(CallProgram(train), backward=2, gradients=True)
    >>> capture.run()
    >>> nodes = [data for _, data in capture.graph.nodes(data=True)]
    >>> [(data["operator"], data["parameter"], data["grad_outputs"][0].norm) for data in nodes][1:]
    [('Mul', '', 1.4142135623730951), ('AccumulateGrad', 'w', 1.4142135623730951)]
    """

    def __init__(
        self,
        program: Program,
        *,
        backward: int = 1,
        gradients: bool = False,
        taken: Callable[[BackwardGraph], None] | None = None,
    ) -> None:
        if backward < 1:
            raise ValueError(f"backwards are numbered from 1, got {backward}")
        self.graph: BackwardGraph | None = None
        self.backwards = 0
        self._adapter = AnyAdapter()
        self._program = program
        self._tracker = Tracker(self._adapter)
        self._tracker.report_fault = self.give_up  # type: ignore[method-assign]
        self._wanted = backward
        self._gradients = gradients
        self._taken = taken
        self._done = False
        self._task: Any = None
        self._started = 0.0
        self._lock = threading.Lock()
        self._quiet = threading.local()

    def run(self, write: OutputWriter | None = None) -> None:
        """Run the program; return when it has ended.

        Parameters
        ----------
        write : callable, optional
            Takes what is said of its end; nobody by default.
        """
        with self._adapter.observe(self, forward=True, backward=True):
            self._program.run(write or _nowhere)

    def report_fault(self, fault: str) -> None:
        """End the program, which runs for the graph alone."""
        self._done = True
        self._program.end()
        raise ProgramAborted

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
            self.backwards += 1
            if self.backwards != self._wanted:
                return
        with self._silence():
            self.graph = self._take(task)
        self._task = task
        if not self._gradients:
            self._finish()

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

    def task_failed(self, task: Any, error: BaseException) -> None:
        """A backward has ended by an error: that is seen in the graph."""
        if task is not self._task or self.graph is None:
            return
        for _, data in self.graph.nodes(data=True):
            if data.get("state") == "current":
                data["state"] = "failed"
        self._hand_over()

    # --- inside ---

    def _take(self, task: Any) -> BackwardGraph:
        paths = self._tracker.parameter_paths()
        variables = _variables(self._adapter)
        roots = [node for node, _ in self._adapter.task_roots(task)]
        # This is the adapter of the one framework: AnyAdapter would first find out, for each question, which one it is.
        graph = graph_of_roots(adapter_for(roots[0]), roots, {**variables, **paths})
        graph.graph["parameters"] = list(dict.fromkeys(paths.values()))
        return graph

    def _note(self, node: Any, state: str, seconds: float | None = None, **grads: Any) -> None:
        key = self._adapter.key(node)
        if self.graph is None or key not in self.graph:
            return
        facts = {name: gradient_summaries(self._adapter, found, name) for name, found in grads.items()}
        self.graph.nodes[key].update(state=state, seconds=seconds, **facts)

    def _finish(self) -> None:
        self._hand_over()
        raise ProgramAborted

    def _hand_over(self) -> None:
        self._task, self._done = None, True
        assert self.graph is not None
        if self._taken is not None:
            with self._silence():
                self._taken(self.graph)
        self._program.end()  # its main thread may be another than that of this backward

    def _stop_if_done(self) -> None:
        if self._done:
            raise ProgramAborted

    def _deaf(self) -> bool:
        # A child process that the program has forked has neither this capture to serve nor anybody to tell.
        return self._program.gate.gone or getattr(self._quiet, "on", False)

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Do arithmetic of our own, neither recorded nor observed."""
        self._quiet.on = True
        try:
            with self._adapter.quiet():
                yield
        finally:
            self._quiet.on = False


def _nowhere(text: str, stream: str = "stdout") -> None:
    """Take what nobody wants to read."""


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
