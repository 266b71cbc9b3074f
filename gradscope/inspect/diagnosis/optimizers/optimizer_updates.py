"""The use that optimizers make of gradients: stale ones, discarded ones, parameters that nobody changes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from ...adapters import Adapter
from ...output.number_format import count, format_shape
from ...records.optimizer_steps import OptimizerHooks, held_by
from ...records.records import Location, operator_of
from ...source.call_sites import caller, place
from ..explanation import Explanation, adapter_of, at
from ..finding_limits import Limits
from ..no_gradient.dataflow import RESCALING, DataflowObserver, overflowed
from ..no_gradient.dataflow_ledger import Ledger
from ..watch import Watch, guarded
from .idle_optimizers import IdleOptimizer, IdleOptimizers
from .parameters_without_optimizer import ParameterWithoutOptimizer, WithoutOptimizerWatch

__all__ = ["StaleGradients", "UnusedGradients", "UpdateWatch", "Updates", "updates"]

_SHOWN = 4
# The operators by which zero_grad() clears a gradient that it does not set to None.
_CLEARING = {"zero", "zero_", "_foreach_zero_", "detach_", "requires_grad_"}
# The operators by which clipping measures one gradient, and many at once; it scales each in place.
_NORMS = {"norm", "linalg_vector_norm", "_foreach_norm"}
_CLIPPING = {"_foreach_mul", "_foreach_clamp_min", "_foreach_clamp_max"}


@dataclass(frozen=True)
class StaleGradients:
    """Gradients that a backward adds to, though an optimizer has stepped since they were computed.

    Attributes
    ----------
    names : tuple of str
        Of the parameters; empty strings for leaves without a name.
    backward : Location or None
        The backward that adds.
    earlier : Location or None
        The backward that had left them.
    step : Location or None
        The optimizer's step between the two.
    times : int
        In how many backward passes.
    """

    names: tuple[str, ...]
    backward: Location | None
    earlier: Location | None
    step: Location | None
    times: int

    @property
    def location(self) -> Location | None:
        """The line to look at."""
        return self.backward

    def __str__(self) -> str:
        stepped = f"an optimizer has stepped{at(self.step)}"
        if self.backward == self.earlier:
            text = f"the backward{at(self.backward)} adds to the gradients of iterations before, with which {stepped}"
            way_out = "Call optimizer.zero_grad() in each iteration, before backward()."
        else:
            text = (
                f"the backward{at(self.backward)} adds to what that{at(self.earlier)} has left, "
                f"and {stepped} between the two"
            )
            way_out = "Call zero_grad() of the optimizer that holds them before this backward."
        times = f", {self.times} times" if self.times > 1 else ""
        return f"{_names(self.names)}: {text}{times}\n  {way_out}"


@dataclass(frozen=True)
class UnusedGradients:
    """Backward passes whose gradients were cleared before an optimizer used any of them.

    Attributes
    ----------
    backward : Location or None
        Who called them.
    times, of : int
        How often, of how many.
    step : Location or None
        The step that came when they were cleared, where one came.
    """

    backward: Location | None
    times: int
    of: int
    step: Location | None = None

    @property
    def location(self) -> Location | None:
        """The line to look at."""
        return self.backward

    def __str__(self) -> str:
        passes = f"{self.times} of {count(self.of, 'backward pass', 'backward passes')}{at(self.backward)}"
        if self.step is not None:
            return (
                f"the gradients of {passes} were cleared before the optimizer's step{at(self.step)}, which had none\n"
                "  Call zero_grad() before backward() or after step(), not between the two."
            )
        return (
            f"the gradients of {passes} were cleared before an optimizer used them\n"
            "  To accumulate gradients call zero_grad() once for each step(), before the first backward()."
        )


@dataclass(frozen=True, repr=False)
class Updates(Explanation):
    """The gradients that optimizers used twice, or not at all.

    Attributes
    ----------
    steps : int
        How often an optimizer has stepped.
    unheld : tuple of ParameterWithoutOptimizer
        Parameters that get gradients, and that no optimizer holds.
    idle : tuple of IdleOptimizer
        Optimizers that never step.

    See Also
    --------
    updates : watches a block, and has them as its result.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Linear(2, 1)
    >>> optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    >>> with gi.updates() as watch:
    ...     model(gs.ones(1, 2)).sum().backward()
    ...     optimizer.step()
    >>> watch.result.steps, watch.result.unheld, bool(watch.result)
    (1, (), False)
    """

    steps: int
    stale: tuple[StaleGradients, ...] = ()
    unused: tuple[UnusedGradients, ...] = ()
    unheld: tuple[ParameterWithoutOptimizer, ...] = ()
    idle: tuple[IdleOptimizer, ...] = ()

    @property
    def findings(self) -> tuple[StaleGradients | UnusedGradients | ParameterWithoutOptimizer | IdleOptimizer, ...]:
        """All that is wrong."""
        return (*self.stale, *self.unheld, *self.unused, *self.idle)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __str__(self) -> str:
        if not self.findings and not self.steps:
            return "No optimizer has stepped."
        if not self.findings:
            return f"Nothing found in {count(self.steps, 'step')} of optimizers."
        return "\n".join(map(str, self.findings))

    def _title(self) -> str:
        return f"Updates: {count(self.steps, 'step')}"

    def _columns(self) -> Sequence[str]:
        return ("what", "line", "parameters")

    def _rows(self) -> Iterable[Sequence[str]]:
        for stale in self.stale:
            yield ("gradients used before", place(stale.backward), _names(stale.names))
        for unheld in self.unheld:
            yield ("in no optimizer", place(unheld.location), _names(unheld.names))
        for unused in self.unused:
            yield ("gradients not used", place(unused.backward), "")
        for idle in self.idle:
            yield ("never stepped", "", _names(idle.names))


def _names(names: Sequence[str]) -> str:
    shown = [f"`{name}`" if name else "a leaf" for name in names[:_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


@dataclass(eq=False)
class _BackwardRun:
    """A backward: where it was called, how many leaves it filled, of how many the gradient was thrown away.

    `step` is the step that came when they had been.
    """

    location: Location | None
    filled: int = 0
    thrown_away: int = 0
    step: Location | None = None


@dataclass
class _LeafGradient:
    """A leaf's gradient: which backward filled it last, after how many steps, whether the program has looked at it.

    `version` is that of the leaf by then: a step that torch.compile has compiled is told by what it has written.

    `stale` is the backward before that one, and the step between the two, where there was a step; `met` says whether
    an optimizer that holds the leaf has stepped since. Of a gradient that was read, `rewritten` says whether that was
    to scale or clip it, and `used` whether it may have been for something else.
    """

    leaf: weakref.ref[Any]
    run: _BackwardRun
    steps: int
    version: int | None
    read: bool = False
    rewritten: bool = False
    used: bool = False
    met: bool = False
    stale: tuple[Location | None, Location | None] | None = None

    def note(self, call: Any, gradient: Any) -> None:
        """Note that an operator was given the gradient."""
        name = operator_of(call.name)
        rewrites = name in _CLIPPING or any(output is gradient for output in call.outputs)
        self.read = True
        self.rewritten |= rewrites
        self.used |= not rewrites and name not in _NORMS

    @property
    def wasted(self) -> bool:
        """Whether nothing has been done with it that would come to something without a step."""
        return not self.used and (self.rewritten or not self.read)


@dataclass
class _StaleCalls:
    """The stale gradients of one pair of backward calls."""

    step: Location | None
    names: dict[str, None] = field(default_factory=dict)
    runs: set[int] = field(default_factory=set)


class UpdateWatch(Watch):
    """Follows each gradient from the backward that fills it to the step that uses it.

    Parameters
    ----------
    recorder : DataflowObserver
        Of an open ledger.
    names : callable
        Returns the paths of parameters by id.
    cleared : int
        How often gradients are cleared before an optimizer that never steps is one that was forgotten.
    """

    operators_of_steps = False
    at_leaves_alone = ("node_entered", "node_exited")

    def __init__(
        self, recorder: DataflowObserver, names: Callable[[], Mapping[int, str]], cleared: int = Limits.cleared
    ) -> None:
        self.adapter: Adapter = recorder.adapter
        self._recorder = recorder
        self._names = names
        self._idle = IdleOptimizers(cleared)
        self._hooks = OptimizerHooks(before=self._steps_now, after=self._stepped)
        self._steps = 0
        self._last_step: Location | None = None
        self._runs: dict[int, _BackwardRun] = {}
        self._all_runs: list[_BackwardRun] = []
        self._gradients: dict[int, _LeafGradient] = {}
        # Gradients by the id of their tensor, with their parameter: an operator that reads one uses the gradient.
        self._owners: dict[int, int] = {}
        self._stale: dict[tuple[Location | None, Location | None], _StaleCalls] = {}
        self._unheld = WithoutOptimizerWatch(self.adapter)

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    # --- what the observer passes on ---

    def operator_ran(self, call: Any) -> None:
        """Note which gradients the program looks at itself."""
        owners = self._owners
        for tensor in call.inputs:
            if id(tensor) in owners:
                self._looked_at(tensor, call)
        if RESCALING in call.name:
            overflow = overflowed(self.adapter, call)
            for gradient in self._gradients.values():
                gradient.read = True
                gradient.used |= overflow  # a bad gradient is why the step was left out

    def _looked_at(self, tensor: Any, call: Any) -> None:
        """Note that an operator was given what has been a gradient, if it is one still."""
        gradient = self._gradients.get(self._owners[id(tensor)])
        leaf = None if gradient is None or call.name in _CLEARING else gradient.leaf()
        if gradient is not None and leaf is not None and self.adapter.leaf_grad(leaf) is tensor:
            gradient.note(call, tensor)

    def task_started(self, task: Any) -> None:
        """Note that a backward starts, and on which line."""
        self._hooks.look()
        run = self._runs[id(task)] = _BackwardRun(caller())
        self._all_runs.append(run)

    def node_entered(self, call: Any) -> None:
        """Compare the gradient of a leaf with what it was when it was last filled."""
        run, leaf = self._runs.get(id(call.task)), self.adapter.variable(call.node)
        if run is None or leaf is None:
            return
        arriving = next((g for g in call.grad_outputs if g is not None), None)
        if arriving is None or not self._any(arriving):
            return
        before, kept = self._gradient_of(leaf), self._any(self.adapter.leaf_grad(leaf))
        again = before is not None and before.run is not run and not before.read
        if before is None:
            self._idle.filled(leaf)
        elif before.run is not run and not kept:
            unchanged = self._steps == before.steps and self.adapter.version(leaf) == before.version
            before.run.thrown_away += again and unchanged
            if before.wasted:
                self._idle.cleared(leaf)
        run.filled += 1
        now = self._gradients[id(leaf)] = _LeafGradient(weakref.ref(leaf), run, self._steps, self.adapter.version(leaf))
        if before is not None and kept:
            stepped = self._steps > before.steps
            now.stale = (before.run.location, self._last_step) if stepped else before.stale
        if again or self.adapter.is_parameter(leaf):
            used = self._used_at(call)
            self._unheld.filled(leaf, call.node, self._recorder.made_at(leaf), used)

    def node_exited(self, call: Any) -> None:
        """Note which gradient lies in a leaf now."""
        leaf = self.adapter.variable(call.node)
        grad = None if leaf is None else self.adapter.leaf_grad(leaf)
        if grad is not None:
            self._owners[id(grad)] = id(leaf)

    def _used_at(self, call: Any) -> Location | None:
        """Return the line that used the leaf of an AccumulateGrad: that runs right after the last who sends to it."""
        adapter, running = self.adapter, self._recorder.in_backward(call.task)
        key = adapter.key(call.node)
        for sender in () if running is None else reversed(running.ran):
            if any(child is not None and adapter.key(child) == key for child, _ in adapter.edges(sender)):
                return adapter.location(sender)
        return None

    def task_finished(self, task: Any) -> None:
        """Forget the task."""
        self._runs.pop(id(task), None)
        self._idle.ran(self._names())

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the task."""
        self._runs.pop(id(task), None)

    @guarded
    def _steps_now(self, optimizer: Any) -> None:
        self._idle.steps(optimizer)
        for leaf in held_by(optimizer):
            gradient = self._gradient_of(leaf)
            if gradient is None or gradient.met:
                continue
            gradient.met = True
            if not gradient.read and not self._any(self.adapter.leaf_grad(leaf)):
                gradient.run.thrown_away += 1
                gradient.run.step = caller()

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        self._steps += 1
        self._last_step = caller()
        held = held_by(optimizer)
        names = self._names()
        for leaf in held:
            gradient = self._gradient_of(leaf)
            if gradient is not None:
                gradient.read = gradient.used = True
            if gradient is not None and gradient.stale is not None and self._any(self.adapter.leaf_grad(leaf)):
                earlier, step = gradient.stale
                stale = self._stale.setdefault((gradient.run.location, earlier), _StaleCalls(step))
                stale.names[names.get(id(leaf), f"a leaf of shape {format_shape(tuple(leaf.shape))}")] = None
                stale.runs.add(id(gradient.run))
        idle = [leaf for leaf in held if self._recorder.accumulated(leaf) is None]
        self._unheld.stepped(held, idle, names)

    # --- what is known ---

    def _any(self, gradient: Any) -> bool:
        return gradient is not None and bool(numpy.any(self.adapter.to_host(gradient)))

    def _gradient_of(self, leaf: Any) -> _LeafGradient | None:
        found = self._gradients.get(id(leaf))
        return found if found is not None and found.leaf() is leaf else None

    @property
    def updates(self) -> Updates:
        """What has been seen so far."""
        idle = tuple(self._idle.found())
        if not self._steps:
            return Updates(0, idle=idle)
        stale = tuple(
            StaleGradients(tuple(found.names), backward, earlier, found.step, len(found.runs))
            for (backward, earlier), found in self._stale.items()
        )
        return Updates(self._steps, stale, self._unused(), self._unheld.found(), idle)

    def _unused(self) -> tuple[UnusedGradients, ...]:
        by_line: dict[Location | None, list[_BackwardRun]] = {}
        for run in self._all_runs:
            by_line.setdefault(run.location, []).append(run)
        found = []
        for location, runs in by_line.items():
            wasted = [run for run in runs if run.filled and run.thrown_away >= run.filled]
            if len(wasted) > 1:
                found.append(UnusedGradients(location, len(wasted), len(runs), wasted[-1].step))
        return tuple(found)


class updates:  # noqa: N801 - a context manager, called like a function
    """Context manager: say what optimizers do with the gradients of the block.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.

    Attributes
    ----------
    result : Updates
        What has been seen so far.

    See Also
    --------
    gradient_flow

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Linear(2, 1)
    >>> optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    >>> with gi.updates() as watch:
    ...     for _ in range(3):
    ...         model(gs.ones(1, 2)).sum().backward()
    ...         optimizer.step()
    >>> watch.result.stale[0].names, watch.result.stale[0].times
    (('weight', 'bias'), 2)
    """

    def __init__(self, *, adapter: Adapter | None = None) -> None:
        self._adapter = adapter_of(None, adapter)
        self._ledger = Ledger(adapter=self._adapter)
        self._watch = UpdateWatch(self._ledger.recorder, self._ledger.recorder.parameter_paths)
        self._observation: Any = None

    @property
    def result(self) -> Updates:
        """What has been seen so far."""
        return self._watch.updates

    def __enter__(self) -> updates:
        self._ledger.__enter__()
        self._observation = self._adapter.observe(self._watch, forward=False, backward=True, operators=True)
        self._watch._hooks.look()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()
        self._watch.close()
        self._ledger.__exit__(kind, error, trace)
