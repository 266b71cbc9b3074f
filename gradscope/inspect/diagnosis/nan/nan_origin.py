"""Where a NaN or an infinity comes from: who produced it, out of what, and who only passed it on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...adapters import Adapter
from ...records.module_tracking import Tracker
from ...records.naming import name_graph
from ...records.optimizer_steps import OptimizerHooks
from ...records.records import operator_name, operator_of
from ..explanation import adapter_of, adapter_of_loss
from ..flow.backward_replay import BackwardReplay
from ..no_gradient.dataflow_ledger import recorder_for
from ..watch import Watch, guarded
from .nan_causes import Cause, forward_cause
from .nan_inside import producer_inside
from .nan_producers import BackwardVisitor, ForwardVisitor, NanTraces, first_bad, producer_of, saved_values
from .nan_records import NanOrigin, NanStep, Producer

__all__ = ["NanOrigin", "NanWatch", "nan_origin", "watch_nan"]


# How a program finds out that a step is not to be taken.
_QUESTIONS = frozenset({"isfinite", "isnan", "isinf", "lt", "le", "gt", "ge"})


class _ThreadState(threading.local):
    """What happens on a thread: whether this module computes, an optimizer steps, a custom Function's backward runs."""

    busy = False
    stepping = False
    custom = False


class _WatchedBackward:
    """A backward that runs, as the watch hears of its nodes.

    Attributes
    ----------
    bad : bool
        Whether a bad value was met.
    """

    __slots__ = ("_adapter", "_is_clean", "_now", "_tell", "bad", "visitor")

    def __init__(
        self,
        adapter: Adapter,
        visitor: BackwardVisitor,
        now: _ThreadState,
        tell: Callable[[Producer | None], None],
    ) -> None:
        self.visitor = visitor
        self.bad = False
        self._adapter = adapter
        self._is_clean = visitor.is_clean  # called at every node
        self._now = now
        self._tell = tell

    def node_entered(self, call: Any) -> None:
        """Note that operators run inside of a node now: those of a custom Function's own backward."""
        if hasattr(type(call.node), "_forward_cls"):
            self._now.custom = True
            # What runs inside of a compiled region is looked at by itself, should something bad come out of it.
            self._now.busy = bool(self._adapter.inside(call.node))

    def node_exited(self, call: Any) -> None:
        """Look at what it was given and has made."""
        now = self._now
        if now.custom:
            now.custom = now.busy = False
        if self._is_clean(call):
            return
        self.bad = True
        now.busy = True
        try:
            held = self._adapter.held(call.node)
            producer = self.visitor.visit(call.node, call.grad_outputs, call.grad_inputs or (), held)
        finally:
            now.busy = False
        self._tell(producer)


class NanWatch(Watch):
    """Looks for NaN and Inf while the program runs, in every result and in every gradient.

    Parameters
    ----------
    tracker : Tracker
        Who follows the modules.
    stop : bool
        Raise at the first NaN.
    """

    operators_of_steps = False
    at_functions_alone = ("node_entered",)
    meant = (FloatingPointError,)

    def __init__(self, adapter: Adapter, tracker: Tracker, *, stop: bool = False) -> None:
        self.adapter = adapter
        self._tracker = tracker
        self._stop = stop
        self._traces = NanTraces()
        self._forward = ForwardVisitor(adapter, self._traces)
        self._backwards: dict[int, _WatchedBackward] = {}
        self._recovered = self._asked = self._optimized = False
        self._now = _ThreadState()
        self._hooks = OptimizerHooks(before=self._steps, after=self._stepped)

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    @property
    def origin(self) -> NanOrigin:
        """What has been found so far."""
        rejected = self._asked and self._recovered and not self._optimized
        return replace(self._traces.origin(), rejected=rejected)

    def operator_ran(self, call: Any) -> None:
        """Look at its results."""
        if self._forward.is_small_and_clean(call):
            return
        now = self._now
        if now.busy or now.stepping:
            return
        now.busy = True
        try:
            if self._forward.is_clean(call):
                return
            self._asked |= operator_of(call.name) in _QUESTIONS
            direction = "backward" if now.custom else "forward"
            producer = self._forward.visit(call, self._tracker.running_module(), direction)
        finally:
            now.busy = False
        self._tell(producer)

    def function_applied(self, function: Any, args: tuple[Any, ...]) -> None:
        """Look at the parameters that a compiled region takes: no operator inside of it is told of."""
        self._forward.looked_at_parameters([arg for arg in args if self.adapter.is_tensor(arg)])

    def task_started(self, task: Any) -> None:
        """Follow the gradients of this backward."""
        self._traces.backwards += 1
        self._hooks.look()
        tracker, adapter = self._tracker, self.adapter.of(task)
        names, arrived = tracker.parameter_paths(), self._forward.accumulated
        visitor = BackwardVisitor(adapter, self._traces, tracker.module_of, names, arrived)
        self._backwards[id(task)] = _WatchedBackward(adapter, visitor, self._now, self._tell)

    def in_backward(self, task: Any) -> _WatchedBackward | None:
        """Return what hears of the nodes of a backward that has started."""
        return self._backwards.get(id(task))

    def node_entered(self, call: Any) -> None:
        """Note whose operators run inside of a node."""
        running = self._backwards.get(id(call.task))
        if running is not None:
            running.node_entered(call)

    def compiled_ran(self, run: Any) -> None:
        """Look inside of what torch.compile has compiled, where something bad comes out of it."""
        running = self._backwards.get(id(run.task))
        if running is None:
            return
        found = producer_inside(self.adapter, run)
        if found is not None:
            running.visitor.inside[self.adapter.key(run.node)] = found

    def node_exited(self, call: Any) -> None:
        """Look at what a node was given and has made."""
        running = self._backwards.get(id(call.task))
        if running is not None:
            running.node_exited(call)

    def task_finished(self, task: Any) -> None:
        """Forget the backward, but for whether it was clean after a bad value."""
        running = self._backwards.pop(id(task), None)
        self._recovered |= bool(self._traces.traces) and not (running is not None and running.bad)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the backward."""
        self._now.custom = self._now.busy = False
        self._backwards.pop(id(task), None)

    # What an optimizer computes with bad gradients says nothing new.

    @guarded
    def _steps(self, optimizer: Any) -> None:
        self._optimized = self._now.stepping = True

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        self._now.stepping = False

    def _tell(self, producer: Producer | None) -> None:
        if self._stop and producer is not None and producer.value == "NaN":
            raise FloatingPointError(str(producer))


@contextmanager
def watch_nan(*, stop: bool = False, adapter: Adapter | None = None) -> Iterator[NanWatch]:
    """Look for NaN and Inf in every result and every gradient while the block runs.

    Parameters
    ----------
    stop : bool
        Raise ``FloatingPointError`` at the operator or node that produces the first NaN, so that a debugger stops
        there.
    adapter : Adapter, optional
        Of one framework only; all by default.

    Yields
    ------
    NanWatch
        Its ``origin`` is a :class:`NanOrigin`.

    Raises
    ------
    FloatingPointError
        With `stop`.

    See Also
    --------
    nan_origin

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.tensor([0.0, 4.0], requires_grad=True)
    >>> with gi.watch_nan() as watch:
    ...     gs.where(x > 0, x.sqrt(), 0 * x).sum().backward()
    >>> watch.origin.first.name, watch.origin.first.value
    ('SqrtBackward0', 'NaN')
    """
    chosen = adapter_of(None, adapter)
    tracker = Tracker(chosen)
    watch = NanWatch(chosen, tracker, stop=stop)
    with (
        chosen.observe(tracker, forward=True, backward=False),
        chosen.observe(watch, forward=True, backward=True, operators=True),
    ):
        try:
            yield watch
        finally:
            watch.close()


def nan_origin(loss: Any, *, params: Any = None, grad: Any = None, adapter: Adapter | None = None) -> NanOrigin:
    """Say where NaN and Inf come from in the backward of a loss, by running it beside the program.

    Nothing is accumulated, no hook runs, and the graph stays as it is. Of the forward pass only the tensors that were
    saved can be seen; :func:`watch_nan` sees every result, while the program runs.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives names.
    grad : Tensor, optional
        The gradient of the loss; ones by default.

    Raises
    ------
    RuntimeError
        If the loss has no graph, or a backward has freed it.

    See Also
    --------
    watch_nan : The same of a training loop, while it runs.
    gradient_flow : Gradients that vanish or explode, before they are NaN.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.tensor([0.0, 4.0], requires_grad=True)
    >>> loss = (0 * x.sqrt()).sum()
    >>> print(gi.nan_origin(loss, params={"x": x}).first.text)
    0 * inf: the derivative of sqrt is infinite at 0, and the gradient that arrives is 0 (MulBackward0 multiplied \
it by 0)
    """
    adapter = adapter_of_loss("nan_origin", loss, adapter)
    replay = BackwardReplay(adapter, loss)
    traces = NanTraces()
    names = name_graph(adapter, replay.links, params, tracker=recorder_for())
    tracker = Tracker(adapter)
    tracker.add_users(names.modules)
    visitor = BackwardVisitor(adapter, traces, tracker.module_of, names.paths)
    _visit_saved(adapter, replay, traces, tracker)

    def visit(node: Any, grads: list[Any], produced: Sequence[Any]) -> None:
        visitor.visit(node, grads, produced, adapter.held(node))

    replay.run(visit, grad)
    return traces.origin()


def _visit_saved(adapter: Adapter, replay: BackwardReplay, traces: NanTraces, tracker: Tracker) -> None:
    """Find the operators of the forward pass whose saved result is bad while their saved inputs are not."""
    for key in reversed(replay.order):
        node = replay.links[key].node
        arrays = {name: adapter.to_host(t) for name, t in saved_values(adapter, node).items()}
        result = arrays.pop("result", None)
        if result is None or first_bad(result) is None or any(first_bad(a) is not None for a in arrays.values()):
            continue
        if any(child is not None and _saved_bad(adapter, child) for child, _ in adapter.edges(node)):
            continue
        name = adapter.node_name(node)
        bad = first_bad(result)
        assert bad is not None
        operator = operator_name(name).lower()
        inputs = [a for a in arrays.values() if a.dtype.kind in "fc"]
        cause = forward_cause(operator, inputs, result, bad) if inputs else Cause("its result is not finite")
        step = NanStep(name, tracker.module_of(node), adapter.location(node))
        traces.add(producer_of("forward", step.name, step.module, step.location, cause, result, bad, ()))


def _saved_bad(adapter: Adapter, node: Any) -> bool:
    return any(first_bad(adapter.to_host(t)) is not None for t in saved_values(adapter, node).values())
