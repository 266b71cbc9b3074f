"""How far the steps of optimizers move the weights, and what makes them so large or small."""

from __future__ import annotations

import statistics
import sys
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from ...adapters import Adapter
from ...records.object_search import living
from ...records.optimizer_steps import OptimizerHooks, held_by
from ...records.records import Location, operator_name
from ...records.snapshots import norm_of_tensor
from ...records.tensor_statistics import combined_norm, norm_of
from ...source.call_sites import caller
from ..nan.nan_producers import saved_values
from ..program_facts import EXAMINATION, Fact, WatchedProgram
from ..sampled_graphs import BackwardSampler, is_sampled
from ..watch import Watch, guarded

__all__ = ["UPDATE_SIZES", "LossSum", "OptimizerRun", "StepSample", "UpdateSizeWatch", "schedulers_of"]

# Losses of which each element's gradient is at most 1 before it is divided by their number.
_BOUNDED = {"NllLoss", "NllLoss2d", "BinaryCrossEntropyWithLogits"}


@dataclass(frozen=True)
class LossSum:
    """A loss that is a sum over many elements.

    Attributes
    ----------
    operator : str
        The node's name.
    elements : int
        How many it adds.
    """

    operator: str
    elements: int
    location: Location | None


@dataclass(frozen=True)
class StepSample:
    """A step of an optimizer that was looked at.

    Attributes
    ----------
    rate : float
        The largest learning rate of its groups.
    ratio : float
        By how much it has moved a matrix, as a share of the norm that this had at first: the median of all.
    size : float
        The norm of all these matrices before it.
    clipped : float
        The norm of the gradients, as a share of what the backward had left.
    """

    rate: float
    ratio: float
    size: float
    clipped: float


@dataclass
class OptimizerRun:
    """The steps of one optimizer.

    Attributes
    ----------
    name : str
        Its class.
    location : Location or None
        Where it steps.
    rates : list of float
        The largest learning rate of its groups, at every step.
    decay : float
        The largest weight decay of its groups.
    samples : list of StepSample
        The steps that were looked at.
    schedules : tuple of (str, int)
        The schedulers of its learning rate, by their class, and how often each has stepped.
    sums : dict of LossSum to None
        The losses that are sums.
    added : int
        How many backward passes have filled the gradients of a step, at least.
    planned : float
        The learning rate that its schedule multiplies; 0 where there is no schedule.
    parameters : tuple of str
        The paths of those that it holds, at its last step.
    """

    name: str
    location: Location | None
    rates: list[float] = field(default_factory=list)
    decay: float = 0.0
    samples: list[StepSample] = field(default_factory=list)
    schedules: tuple[tuple[str, int], ...] = ()
    sums: dict[LossSum, None] = field(default_factory=dict)
    added: int = 0
    planned: float = 0.0
    parameters: tuple[str, ...] = ()


@dataclass(eq=False)
class _FollowedOptimizer:
    run: OptimizerRun
    reference: weakref.ref[Any]
    before: list[tuple[Any, Any, float]] = field(default_factory=list)
    first_sizes: dict[int, float] = field(default_factory=dict)
    clipped: float = 1.0
    schedulers: list[weakref.ref[Any]] = field(default_factory=list)

    def note_rate(self, optimizer: Any) -> None:
        """Note the learning rate, and whose schedule it follows once it has changed."""
        rates = self.run.rates
        rates.append(_largest(optimizer, "lr"))
        self.run.planned = _largest(optimizer, "initial_lr")
        if not self.schedulers and rates[-1] != rates[0]:
            self.schedulers = [weakref.ref(scheduler) for scheduler in schedulers_of(optimizer)]
        alive = [scheduler for scheduler in (reference() for reference in self.schedulers) if scheduler is not None]
        self.run.schedules = tuple((type(s).__name__, int(getattr(s, "last_epoch", 0))) for s in alive)


class UpdateSizeWatch(Watch):
    """Compares the weights before a step with those after it."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._first = program.limits.sampled_steps
        self._few = program.limits.few_weights
        self._names = program.watch_of(EXAMINATION).names
        self._hooks = OptimizerHooks(before=self._steps, after=self._stepped)
        self._followed: dict[int, _FollowedOptimizer] = {}
        self._sampler = BackwardSampler(program.limits.sampled_backwards)
        self._looked_at: set[int] = set()
        self._sums: dict[LossSum, None] = {}
        self._norms: dict[int, tuple[weakref.ref[Any], float]] = {}
        self._errors = 0.0
        self._filled: Counter[int] = Counter()

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    @property
    def runs(self) -> tuple[OptimizerRun, ...]:
        """The optimizers that have stepped."""
        return tuple(followed.run for followed in self._followed.values())

    def task_started(self, task: Any) -> None:
        """Note whether the backward is one to look into."""
        self._hooks.look()
        roots = self._adapter.task_roots(task)
        if roots and self._sampler.is_due(self._adapter.location(roots[0][0])):
            self._looked_at.add(id(task))

    def looks_into(self, task: Any) -> bool:
        """Whether this backward is one of those that are looked into."""
        return id(task) in self._looked_at

    def node_entered(self, call: Any) -> None:
        """Measure the errors of which a loss is made: when it has run, they are gone."""
        if id(call.task) in self._looked_at and operator_name(self._adapter.node_name(call.node)) == "MseLoss":
            saved = {name: self._adapter.to_host(t) for name, t in saved_values(self._adapter, call.node).items()}
            self._errors = norm_of(saved["self"] - saved["target"]) if {"self", "target"} <= set(saved) else 0.0

    def node_exited(self, call: Any) -> None:
        """Count who fills a gradient, and look for losses that are sums."""
        leaf = self._adapter.variable(call.node)
        if leaf is not None:
            self._filled[id(leaf)] += 1
        elif id(call.task) in self._looked_at:
            elements = _summed(self._adapter, call, self._errors)
            if elements:
                name = self._adapter.node_name(call.node)
                self._sums[LossSum(name, elements, self._adapter.location(call.node))] = None

    def task_finished(self, task: Any) -> None:
        """Note the norms of the gradients that it has left."""
        self._looked_at.discard(id(task))
        for followed in self._followed.values():
            optimizer = followed.reference()
            if optimizer is not None and is_sampled(len(followed.run.rates) + 1, self._first):
                for leaf in _matrices(optimizer, self._few):
                    grad = self._adapter.leaf_grad(leaf)
                    if grad is not None:
                        self._norms[id(leaf)] = weakref.ref(leaf), norm_of_tensor(self._adapter, grad)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget it."""
        self._looked_at.discard(id(task))

    def _follow(self, optimizer: Any) -> _FollowedOptimizer:
        known = self._followed.get(id(optimizer))
        if known is None or known.reference() is not optimizer:
            known = _FollowedOptimizer(OptimizerRun(type(optimizer).__name__, caller()), weakref.ref(optimizer))
            self._followed[id(optimizer)] = known
        return known

    @guarded
    def _steps(self, optimizer: Any) -> None:
        followed = self._follow(optimizer)
        run = followed.run
        followed.note_rate(optimizer)
        run.decay = _largest(optimizer, "weight_decay")
        added = max((self._filled.pop(id(leaf), 0) for leaf in held_by(optimizer)), default=0)
        run.added = min(added, run.added) if len(run.rates) > 1 else added
        run.sums.update(self._sums)
        if is_sampled(len(run.rates), 1):
            paths = self._names.paths()
            run.parameters = tuple(paths[id(leaf)] for leaf in held_by(optimizer) if id(leaf) in paths)
        followed.before, followed.clipped = [], 1.0
        if not is_sampled(len(run.rates), self._first):
            return
        now: list[float] = []
        then: list[float] = []
        for leaf in _matrices(optimizer, self._few):
            grad = self._adapter.leaf_grad(leaf)
            if grad is None:
                continue
            values = numpy.array(self._adapter.to_host(leaf))
            size = norm_of(values)
            # A weight that starts at zero, as in an adapter, moves by more than its norm at any learning rate.
            if followed.first_sizes.setdefault(id(leaf), size):
                followed.before.append((leaf, values, size))
            reference, norm = self._norms.get(id(leaf), (None, 0.0))
            if reference is not None and reference() is leaf:
                now.append(norm_of_tensor(self._adapter, grad))
                then.append(norm)
        followed.clipped = _ratio(combined_norm(now), combined_norm(then))

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        followed = self._follow(optimizer)
        moved = [
            norm_of(numpy.asarray(self._adapter.to_host(leaf)) - values) / followed.first_sizes[id(leaf)]
            for leaf, values, _ in followed.before
        ]
        if moved:
            size = combined_norm(size for *_, size in followed.before) or 0.0
            ratio = statistics.median(moved)
            followed.run.samples.append(StepSample(followed.run.rates[-1], ratio, size, followed.clipped))
        followed.before = []


def _largest(optimizer: Any, setting: str) -> float:
    """Return the largest value of a setting in its groups; 0 where no group has it."""
    return max((float(group.get(setting) or 0.0) for group in optimizer.param_groups), default=0.0)


def _ratio(now: float | None, then: float | None) -> float:
    """Return by what gradients have been multiplied since; 1 where that is not known."""
    return now / then if now is not None and then else 1.0


def _matrices(optimizer: Any, few: int) -> Sequence[Any]:
    leaves = [leaf for group in optimizer.param_groups for leaf in group["params"]]
    return [leaf for leaf in leaves if len(leaf.shape) > 1 and leaf.numel() >= few]


def schedulers_of(optimizer: Any) -> list[Any]:
    """Return the schedules of an optimizer's learning rate that there are."""
    kinds = [kind for kind in map(_scheduler_class, type(optimizer).__mro__) if kind is not None]
    return [scheduler for scheduler in living(kinds) if getattr(scheduler, "optimizer", None) is optimizer]


def _scheduler_class(base: type) -> Any:
    package = base.__module__.removesuffix(".optimizer")
    module = sys.modules.get(f"{package}.lr_scheduler") if base.__name__ == "Optimizer" else None
    return getattr(module, "LRScheduler", None)


def _summed(adapter: Adapter, call: Any, errors: float) -> int:
    """Return over how many elements a node is a sum that is a loss; 0 where it is none, or a mean.

    Parameters
    ----------
    errors : float
        The norm of what a squared error squares.
    """
    name = operator_name(adapter.node_name(call.node))
    produced = call.grad_inputs[0] if call.grad_inputs else None
    arriving = next((g for g in call.grad_outputs if g is not None), None)
    if produced is None or arriving is None or arriving.ndim:
        return 0
    weights = adapter.to_host(arriving)
    if weights.size != 1:  # inside of a vmap: one loss for each sample
        return 0
    gradient, weight = adapter.to_host(produced), abs(weights.item())
    if name == "Sum" and weight:
        return gradient.size
    if name in _BOUNDED and weight:
        rows = gradient.size // gradient.shape[1] if name.startswith("Nll") and gradient.ndim > 1 else gradient.size
        return rows if rows > 1 and abs(gradient).max() > 1.5 * weight / rows else 0
    if name == "MseLoss" and errors:
        return gradient.size if norm_of(gradient) > weight * errors else 0
    return 0


UPDATE_SIZES = Fact("update sizes", UpdateSizeWatch, lambda watch: watch.runs, backward=True)
"""How far steps move the weights: a tuple of :class:`OptimizerRun`."""
