"""The doctor's examination of each backward: its graph before it runs, its nodes, and the gradients that it left."""

from __future__ import annotations

import math
import statistics
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from ..adapters import Adapter
from ..records.optimizer_steps import OptimizerHooks, held_by
from ..records.records import Location
from ..records.tensor_statistics import norm_of
from ..source.call_sites import caller, user_frame, user_frames
from .explanation import at
from .finding_limits import Limits
from .flow.amplification import Gain, GainVisitor, loss_scale
from .flow.compiled_flow import flow_inside
from .flow.dead_units import DeadUnits, UnitsOverTime
from .flow.gradient_flow import GradientFlow, ParameterFlow, first_of, gradient_flow, in_layer_of, verdict_of
from .flow.zero_gradients import ZeroCause, ZeroVisitor
from .memory.gradient_aliasing import GradientAliasing, aliasing
from .memory.graph_memory import MemoryReport, memory_of
from .memory.reference_cycles import GraphCycle, kept_own_outputs
from .nan.nan_producers import saved_values
from .no_gradient.dataflow_ledger import Ledger
from .no_gradient.loss_terms import LossTerm, terms_of
from .no_gradient.missing_gradients import MissingGradients, ModelNames
from .no_gradient.no_grad_reasons import GradientReport
from .no_gradient.source_suspects import assigned_at
from .sampled_graphs import BackwardSampler
from .watch import Watch, guarded

__all__ = ["Examination", "Examiner", "FlowTrouble", "ZeroGradient", "named"]

_SHOWN = 4
_NO_REPORT = GradientReport(())


@dataclass(frozen=True)
class FlowTrouble:
    """Gradients that vanish or explode.

    Attributes
    ----------
    verdict : str
        ``'vanishing'`` or ``'exploding'``.
    causes : tuple of str
        The operators that do most of it.
    location : Location or None
        Of the first of them.
    parameters : tuple of str
        The one that shows it.
    since : int
        The number of the first backward that did.
    """

    verdict: str
    text: str
    causes: tuple[str, ...]
    location: Location | None
    help: str
    parameters: tuple[str, ...] = ()
    since: int = 0

    def __str__(self) -> str:
        return "\n  ".join([self.text, *self.causes, self.help])


_HELP = {
    "vanishing": "Use ReLU or GELU, residual connections, normalisation, or weights that are larger at the start.",
    "exploding": "Lower the learning rate, start with smaller weights, or clip: clip_grad_norm_(parameters, 1).",
}


@dataclass(frozen=True)
class ZeroGradient:
    """Parameters whose gradient is zero for one reason.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    causes : tuple of ZeroCause
        The nodes that made the gradient zero, each with why.
    since : int
        The number of the backward since which the gradient of one of them has been zero.
    """

    names: tuple[str, ...]
    causes: tuple[ZeroCause, ...]
    since: int = 0

    def __str__(self) -> str:
        why = "; ".join(f"{cause.text}{at(cause.location)}" for cause in self.causes)
        lines = [
            f"the gradient of {named(self.names)} is zero: {why}",
            *dict.fromkeys(c.help for c in self.causes if c.help),
        ]
        return "\n  ".join(lines)


def named(names: Sequence[str]) -> str:
    """Return the first few of many names, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


@dataclass(frozen=True)
class Examination:
    """The facts about the backward passes of a program.

    Attributes
    ----------
    missing : GradientReport
        Parameters that no backward gave a gradient.
    missing_since : int
        The number of the backward that was first asked for one of them.
    frozen : tuple of str
        Parameters whose requires_grad is False.
    spare : tuple of str
        Parameters that a model of an installed package has and does not use itself.
    flow : GradientFlow or None
        After the last backward that was looked into.
    rectifiers : tuple of DeadUnits
        The layers whose units were not active for a single example of the latest batches.
    sharing : GradientAliasing or None
        Which gradients share memory: the last sharing that is dangerous, else the first that was looked at; None
        where no backward has left gradients.
    assigned : tuple of Location
        The lines that assign to the ``.grad`` of something, where a sharing is dangerous.
    memory : MemoryReport or None
        Of the largest graph that was looked at.
    trouble : tuple of FlowTrouble
        Gradients that vanish or explode.
    zeros : tuple of ZeroGradient
        Gradients that are zero, and what made them so.
    cycles : tuple of GraphCycle
        Custom Functions that keep their own graph.
    terms : tuple of LossTerm
        What is in a loss and does not do what it looks like.
    """

    missing: GradientReport = _NO_REPORT
    missing_since: int = 0
    frozen: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    flow: GradientFlow | None = None
    rectifiers: tuple[DeadUnits, ...] = ()
    sharing: GradientAliasing | None = None
    assigned: tuple[Location, ...] = ()
    memory: MemoryReport | None = None
    trouble: tuple[FlowTrouble, ...] = ()
    zeros: tuple[ZeroGradient, ...] = ()
    cycles: tuple[GraphCycle, ...] = ()
    terms: tuple[LossTerm, ...] = ()


@dataclass
class _RunningBackward:
    """A backward that runs."""

    root: Any
    location: Location | None
    zeros: ZeroVisitor
    gains: GainVisitor
    scale: float
    filled: bool = False


class Examiner(Watch):
    """Looks into backward passes before they run, while they run, and at what they left.

    Parameters
    ----------
    ledger : Ledger
        Which is open.
    limits : Limits
        Beyond which a gradient vanishes or explodes, and how many backward passes are looked into.

    Attributes
    ----------
    trouble : dict of str to FlowTrouble
        By verdict.
    zeros : dict of int to (str, tuple of ZeroCause, int)
        By the id of a leaf whose gradient was zero the last time: its name, what made it so, and since which backward.
    units : UnitsOverTime
        Which of the rectifiers' were active.
    cycles : dict of GraphCycle to None
        Custom Functions that keep their own graph.
    terms : dict of LossTerm
        What is in a loss and does not do what it looks like, by kind and line.
    sharing, memory, flow
        The latest, or the largest, of each.
    """

    def __init__(self, adapter: Adapter, ledger: Ledger, limits: Limits) -> None:
        self.adapter = adapter
        self._wild, self._ratio = limits.wild_gradient, limits.flow_ratio
        self.recorder = ledger.recorder
        self.names = ModelNames(self.recorder)
        self.missing = MissingGradients(self.recorder, self.names)
        self.flow: GradientFlow | None = None
        self.trouble: dict[str, FlowTrouble] = {}
        self.zeros: dict[int, tuple[str, tuple[ZeroCause, ...], int]] = {}
        self.units = UnitsOverTime(adapter, limits.dead_batches)
        self.cycles: dict[GraphCycle, None] = {}
        self.terms: dict[tuple[str, Location | None], LossTerm] = {}
        self.sharing: GradientAliasing | None = None
        self._assigned: tuple[Location, ...] = ()
        self.memory: MemoryReport | None = None
        self._hooks = OptimizerHooks(after=self._stepped)
        self._sampler = BackwardSampler(limits.sampled_backwards)
        self._graphs_sampler = BackwardSampler(1)  # what a graph holds takes as long as the backward itself
        self._open: dict[int, _RunningBackward] = {}
        self._saved = threading.local()
        self._latest: Location | None = None

    @property
    def examination(self) -> Examination:
        """The facts so far."""
        return Examination(
            missing=self.missing.report(),
            missing_since=self.missing.since(),
            frozen=self.missing.frozen(),
            spare=self.missing.spare(),
            flow=self.flow,
            rectifiers=self.units.dead(),
            sharing=self.sharing,
            assigned=self._assigned,
            memory=self.memory,
            trouble=tuple(self.trouble.values()),
            zeros=_zero_gradients(self.zeros.values()),
            cycles=tuple(self.cycles),
            terms=tuple(self.terms.values()),
        )

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        self._hooks.look()
        roots = list(self.adapter.task_roots(task))
        self._latest = caller()
        if not roots or not self._sampler.is_due(self.adapter.location(roots[0][0])):
            return
        nodes = [node for node, _ in roots]
        if self._graphs_sampler.is_due(self.adapter.location(nodes[0])):
            memory = memory_of(self.adapter, nodes, self.recorder.parameters(), self.recorder)
            if self.memory is None or memory.total > self.memory.total:
                self.memory = memory
        self.units.look(nodes)
        frame = user_frame()
        if frame is not None:
            self.names.look(frame)
        adapter = self.adapter.of(task)  # asked at every node
        zeros, gains, scale = ZeroVisitor(adapter), GainVisitor(adapter), loss_scale(adapter, nodes[0])
        self._open[id(task)] = _RunningBackward(roots[0], self._latest, zeros, gains, scale)

    def looks_into(self, task: Any) -> bool:
        """Whether this backward is one of those that are looked into."""
        return id(task) in self._open

    def node_entered(self, call: Any) -> None:
        """Keep its saved tensors until it has run."""
        if id(call.task) in self._open:
            self._saved.now = saved_values(self.adapter, call.node)
            # A compiled region's: PyTorch copies a gradient that somebody holds where a leaf would take it over.
            self._saved.given = call.grad_outputs if hasattr(type(call.node), "_forward_cls") else ()
            self.cycles.update(dict.fromkeys(kept_own_outputs(self.adapter, call.node)))

    def compiled_ran(self, run: Any) -> None:
        """Look inside of what torch.compile has compiled, where a gradient vanishes, explodes or becomes zero in it."""
        running = self._open.get(id(run.task))
        flow = None if running is None else flow_inside(self.adapter, run, self._saved.given, self._ratio)
        if running is None or flow is None:
            return
        key = self.adapter.key(run.node)
        running.gains.inside[key] = flow.gains
        if flow.zero is not None:
            running.zeros.inside[key] = flow.zero

    def node_exited(self, call: Any) -> None:
        """Look at what it made."""
        running = self._open.get(id(call.task))
        saved, self._saved.now = getattr(self._saved, "now", {}), {}
        if running is not None:
            produced = call.grad_inputs or ()
            sizes = running.gains.visit(call.node, call.grad_outputs, produced)
            running.zeros.visit(call.node, call.grad_outputs, produced, saved, sizes)
            running.filled = running.filled or self.adapter.variable(call.node) is not None

    def task_finished(self, task: Any) -> None:
        """Look at the gradients."""
        running = self._open.pop(id(task), None)
        # What autograd.grad() returns lies in no leaf.
        if running is None or not running.filled:
            return
        end = self.recorder.entry_of_node(running.root[0])
        for term in () if end is None else terms_of(end, running.location):
            self.terms.setdefault((term.kind, term.location), term)
        paths = self.names.paths()
        parameters = [(paths.get(id(tensor), name), tensor) for name, tensor in self.recorder.parameters()]
        if not parameters:
            return
        flow = gradient_flow(parameters, adapter=self.adapter)
        if any(p.grad_norm is not None for p in flow.parameters):
            self.flow = flow
        # The gradients that another loss has left are no ends of this backward.
        reached = [running.gains.reached(tensor) for _, tensor in parameters]
        tensors = [tensor for _, tensor in parameters]
        self._note_trouble([*compress(zip(flow.parameters, tensors), reached)], running)
        self._note_zeros(parameters, running.zeros)
        sharing = aliasing(parameters, adapter=self.adapter)
        self.sharing = sharing if sharing.dangerous or self.sharing is None else self.sharing
        if sharing.dangerous and not self._assigned:
            self._assigned = assigned_at("grad", list(user_frames(sys._getframe())))
        self.missing.ran(running.root, running.location)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the backward, but for whom it would have reached."""
        self._open.pop(id(task), None)
        self.missing.failed(self.adapter.task_roots(task))

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        self.missing.stepped(held_by(optimizer), self._latest)

    def _note_zeros(self, parameters: Iterable[tuple[str, Any]], visitor: ZeroVisitor) -> None:
        for name, tensor in parameters:
            grad = self.adapter.leaf_grad(tensor)
            if id(tensor) in visitor.found and grad is not None and not norm_of(self.adapter.to_host(grad)):
                since = self.zeros[id(tensor)][2] if id(tensor) in self.zeros else self.recorder.backwards
                self.zeros[id(tensor)] = name, visitor.found[id(tensor)], since
            elif grad is not None:
                self.zeros.pop(id(tensor), None)

    def _note_trouble(self, reached: Sequence[tuple[ParameterFlow, Any]], running: _RunningBackward) -> None:
        """Keep what a backward shows of gradients that vanish or explode, by the parameters that it has reached."""
        flows = [flow for flow, _ in reached]
        tensors = {flow.name: tensor for flow, tensor in reached}
        verdict, ends, first = verdict_of(_on_one_way(reached, running.gains), self._ratio)
        text, name = (ends[0], first) if ends else ("", "")
        wild = _wild(flows, self._wild * running.scale)
        if wild is not None:
            verdict, name = "exploding", wild.name
            text = f"gradients explode: that of `{name}` is {wild.ratio:.1e} times the size of the weight"
        if not text:
            # There is nothing to tell. Gradients that did in an earlier backward and do no longer need no mending.
            if verdict == "ok":
                gone = [kind for kind, trouble in self.trouble.items() if set(trouble.parameters) <= set(tensors)]
                for kind in gone:
                    del self.trouble[kind]
            return
        found = running.gains.towards(tensors[name])
        worst = found[:1] if verdict == "vanishing" else _growing(found)
        place = worst[0].location if worst else None
        since = self.recorder.backwards
        found_here = FlowTrouble(verdict, text, tuple(map(str, worst)), place, _HELP[verdict], (name,), since)
        self.trouble.setdefault(verdict, found_here)


def _growing(gains: Sequence[Gain]) -> list[Gain]:
    """Return the two that make a gradient largest; one alone where no other makes it larger."""
    return [gain for number, gain in enumerate(gains[:-3:-1]) if not number or gain.factor > 1]


def _wild(flows: Sequence[ParameterFlow], limit: float) -> ParameterFlow | None:
    """Return the first matrix whose gradient is far larger than itself, and than it would be with elements as usual.

    A token or an embedding that starts next to zero before a norm layer gets a gradient many times its own size.
    """
    matrices = [flow for flow in flows if flow.ratio and len(flow.shape) > 1 and not flow.bad]
    if not matrices:
        return None
    usual = statistics.median(flow.weight_norm / math.sqrt(math.prod(flow.shape)) for flow in matrices)
    sizes = ((flow, max(flow.weight_norm, usual * math.sqrt(math.prod(flow.shape)))) for flow in matrices)
    return next((flow for flow, size in sizes if (flow.grad_norm or 0.0) > limit * size), None)


def _on_one_way(reached: Sequence[tuple[ParameterFlow, Any]], gains: GainVisitor) -> list[ParameterFlow]:
    """Return the parameters on the way from the loss to the first one, and those of its layer.

    Two branches, as a policy's and a value's, are not the two ends of a model.
    """
    first = first_of([flow for flow, _ in reached])
    if first is None:
        return [flow for flow, _ in reached]
    passed = gains.passed_by(next(tensor for flow, tensor in reached if flow is first))
    return [flow for flow, tensor in reached if id(tensor) in passed or in_layer_of(first, flow)]


def _zero_gradients(found: Iterable[tuple[str, tuple[ZeroCause, ...], int]]) -> tuple[ZeroGradient, ...]:
    """Return zero gradients by their cause; where contributions cancel there is none, and nothing to mend."""
    groups: dict[tuple[ZeroCause, ...], list[tuple[str, int]]] = {}
    for name, causes, since in found:
        if causes:
            groups.setdefault(causes, []).append((name, since))
    return tuple(
        ZeroGradient(tuple(name for name, _ in zero), causes, min(since for _, since in zero))
        for causes, zero in groups.items()
    )
