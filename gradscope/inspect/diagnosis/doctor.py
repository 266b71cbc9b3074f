"""The doctor: all explanations at once, over a program that runs by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..adapters import Adapter, Observer
from ..output.number_format import count, format_bytes
from ..records.records import Location
from ..source.call_sites import place
from .examination import Examiner, FlowTrouble
from .explanation import Explanation, adapter_of, at, plain
from .flow.gradient_flow import DeadUnits, GradientFlow
from .flow.zero_gradients import ZeroCause
from .functions.custom_derivatives import CheckedFunction
from .functions.custom_derivatives import functions as watch_functions
from .functions.failed_backward import FailedBackward, failed_backward
from .memory.gradient_aliasing import GradientAliasing
from .memory.graph_growth import Growth, GrowthWatch
from .memory.graph_memory import MemoryReport
from .memory.reference_cycles import GraphCycle
from .nan.nan_origin import NanOrigin, NanWatch
from .no_gradient.blamed_tensor import gradients_of_none, loss_without_graph
from .no_gradient.dataflow_ledger import Ledger
from .no_gradient.loss_terms import LossTerm
from .no_gradient.no_grad_records import GradientReport, Reason
from .optimizers.optimizer_updates import Updates, UpdateWatch

__all__ = ["Diagnosis", "Doctor", "Symptom", "ZeroGradient"]

_SHOWN = 4
# Some units rest for a batch; when so many do, they will not come back.
_DEAD = 0.5


@dataclass(frozen=True)
class Symptom:
    """Something that is wrong.

    Attributes
    ----------
    kind : str
        ``'failed'``, ``'no gradient'``, ``'NaN'``, ``'wrong gradient'``, ``'constant gradient'``, ``'broadcast'``,
        ``'updates'``, ``'gradient flow'``, ``'growth'``, ``'cycle'``, ``'aliasing'``, or what another instrument calls
        it.
    """

    kind: str
    text: str
    location: Location | None = None


@dataclass(frozen=True)
class ZeroGradient:
    """Parameters whose gradient is zero for one reason."""

    names: tuple[str, ...]
    causes: tuple[ZeroCause, ...]

    def __str__(self) -> str:
        why = "; ".join(f"{cause.text}{at(cause.location)}" for cause in self.causes)
        lines = [
            f"the gradient of {_named(self.names)} is zero: {why}",
            *dict.fromkeys(c.help for c in self.causes if c.help),
        ]
        return "\n  ".join(lines)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


@dataclass(frozen=True, repr=False)
class Diagnosis(Explanation):
    """What the doctor found.

    Attributes
    ----------
    backwards : int
        How many backward passes were seen.
    missing : GradientReport
        Parameters that no backward gave a gradient.
    flow : GradientFlow or None
        After the last backward that was looked into.
    memory : MemoryReport or None
        Of the largest graph.
    updates : Updates
        What optimizers did with the gradients.
    trouble : tuple of FlowTrouble
        Gradients that vanish or explode.
    zeros : tuple of ZeroGradient
        Gradients that are zero, and what made them so.
    cycles : tuple of GraphCycle
        Custom Functions that keep their own graph.
    terms : tuple of LossTerm
        What is in a loss and does not do what it looks like.
    failed : FailedBackward or None
        Where the backward failed that ended the program.
    functions : tuple of CheckedFunction
        Custom Functions whose backward is not the derivative of their forward, where they were checked.
    others : tuple of Symptom
        What other instruments have found.
    frozen : tuple of str
        Parameters whose requires_grad is False. They are meant to be, or forgotten: no finding, but good to know.
    unseen : tuple of str
        Why parts of the program could not be looked into.
    """

    backwards: int
    missing: GradientReport
    nan: NanOrigin
    flow: GradientFlow | None
    rectifiers: tuple[DeadUnits, ...]
    growth: Growth
    aliasing: GradientAliasing | None
    memory: MemoryReport | None
    updates: Updates = field(default_factory=lambda: Updates(0))
    trouble: tuple[FlowTrouble, ...] = ()
    zeros: tuple[ZeroGradient, ...] = ()
    cycles: tuple[GraphCycle, ...] = ()
    terms: tuple[LossTerm, ...] = ()
    failed: FailedBackward | None = None
    functions: tuple[CheckedFunction, ...] = ()
    others: tuple[Symptom, ...] = ()
    frozen: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def symptoms(self) -> tuple[Symptom, ...]:
        """What is wrong, the worst first."""
        found = list(self.others)
        if self.failed is not None and not self.others:
            found.append(Symptom("failed", str(self.failed), self.failed.location))
        if self.nan.first is not None and not self.nan.first.harmless:
            found.append(Symptom("NaN", str(self.nan), self.nan.first.location))
        if self.missing.parameters:
            first = self.missing.parameters[0].location
            found.append(Symptom("no gradient", str(self.missing), first))
        found += [Symptom("wrong gradient", str(function), function.location) for function in self.functions]
        found += [Symptom(term.kind, str(term), term.location) for term in self.terms]
        found += [Symptom("updates", str(entry), entry.location) for entry in self.updates.findings]
        if self.growth:
            found.append(Symptom("growth", str(self.growth), self.growth.location))
        found += [Symptom("cycle", str(cycle), cycle.location) for cycle in self.cycles]
        if self.aliasing is not None and self.aliasing.dangerous:
            text = "\n".join(entry.text for entry in self.aliasing.dangerous)
            found.append(Symptom("aliasing", text))
        return (*found, *self._flow_symptoms())

    def _flow_symptoms(self) -> Iterable[Symptom]:
        for trouble in self.trouble:
            yield Symptom("gradient flow", str(trouble), trouble.location)
        told: set[Location | None] = set()
        for zero in self.zeros:
            told.update(cause.location for cause in zero.causes)
            yield Symptom("gradient flow", str(zero), zero.causes[0].location)
        for unit in self.rectifiers:
            if unit.dead >= unit.units * _DEAD and unit.location not in told:
                yield Symptom("gradient flow", str(unit), unit.location)

    def __bool__(self) -> bool:
        return bool(self.symptoms)

    def __str__(self) -> str:
        seen = "No backward pass was seen."
        if self.backwards:
            found = count(len(self.symptoms), "finding") if self.symptoms else "Nothing found"
            seen = f"{found} in {count(self.backwards, 'backward pass', 'backward passes')}."
        elif self.symptoms:
            seen = f"{count(len(self.symptoms), 'finding')}; no backward pass ran."
        if self.memory is not None:
            seen += f" The largest graph held {format_bytes(self.memory.total)}."
        if self.frozen and not any(entry.reason is Reason.FROZEN for entry in self.missing.parameters):
            of = f" of {self.missing.total}" if self.missing.total else ""
            seen += f"\nFrozen (requires_grad is False): {_named(self.frozen)}, {len(self.frozen)}{of} parameters."
        return "\n".join([*self._list(), seen, *(f"Not looked into: {reason}." for reason in self.unseen)])

    def _list(self) -> Iterable[str]:
        for symptom in self.symptoms:
            first, *rest = symptom.text.splitlines()
            indented = rest if all(line.startswith("  ") for line in rest) else [f"  {line}" for line in rest]
            yield "\n".join([f"{symptom.kind}: {first}", *indented, ""])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and ``symptoms`` as numbers, text, lists and dictionaries."""
        return {**super().to_dict(), "symptoms": plain(self.symptoms)}

    def _title(self) -> str:
        return f"{count(len(self.symptoms), 'finding')} in {count(self.backwards, 'backward pass', 'backward passes')}"

    def _columns(self) -> Sequence[str]:
        return ("kind", "line", "what")

    def _rows(self) -> Iterable[Sequence[str]]:
        for symptom in self.symptoms:
            yield (symptom.kind, place(symptom.location), symptom.text)


class Doctor:
    """Context manager: watch a program, and say what is wrong with its gradients.

    Parameters
    ----------
    functions : bool, optional
        Also compare the backward of each custom Function with its forward, which runs it again on copies once the
        diagnosis is asked for: see :class:`functions`.
    adapter : Adapter, optional
        Of one framework only; all by default.

    Attributes
    ----------
    diagnosis : Diagnosis
        What has been found so far.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Sequential(gs.nn.Linear(2, 2), gs.nn.Linear(2, 1))
    >>> with gi.Doctor() as doctor:
    ...     whole = model(gs.ones(1, 2))
    ...     hidden = model[0](gs.ones(1, 2)).detach()
    ...     model[1](hidden).sum().backward()
    >>> [entry.reason.value for entry in doctor.diagnosis.missing.parameters]
    ['detached', 'detached']
    """

    def __init__(self, *, functions: bool = False, adapter: Adapter | None = None) -> None:
        self._adapter = adapter_of(None, adapter)
        self._functions = watch_functions(adapter=self._adapter) if functions else None
        self._ledger = Ledger(adapter=self._adapter)
        self._examiner = Examiner(self._adapter, self._ledger)
        self._updates = UpdateWatch(self._ledger.recorder, self._examiner.names.paths)
        self._nan = NanWatch(self._adapter)
        self._growth = GrowthWatch(self._adapter)
        self._blind = _BlindRegions()
        self._failed: FailedBackward | None = None
        self._observations: list[Any] = []

    @property
    def diagnosis(self) -> Diagnosis:
        """What has been found so far."""
        examiner = self._examiner
        return Diagnosis(
            backwards=self._ledger.recorder.backwards,
            missing=examiner.missing.report(),
            nan=self._nan.origin,
            flow=examiner.flow,
            rectifiers=tuple(examiner.rectifiers.values()),
            growth=self._growth.growth,
            aliasing=examiner.sharing,
            memory=examiner.memory,
            updates=self._updates.updates,
            trouble=tuple(examiner.trouble.values()),
            zeros=_zero_gradients(examiner.zeros.values()),
            cycles=tuple(examiner.cycles),
            terms=tuple(examiner.terms.values()),
            failed=self._failed,
            functions=() if self._functions is None else self._functions.result.wrong,
            frozen=examiner.missing.frozen(),
            unseen=tuple(self._blind.reasons),
        )

    def explain(self, error: BaseException | None) -> bool:
        """Look into what has ended the program; return whether the diagnosis says where it comes from."""
        if error is None or isinstance(error, KeyboardInterrupt):  # which does not come from the gradients
            return False
        missing = self._examiner.missing
        refused, of_none = loss_without_graph(self._adapter, error), gradients_of_none(self._adapter, error)
        if refused is not None:
            missing.refused(refused)
            return bool(missing.report().parameters)
        if of_none:
            missing.none(of_none)
            return True
        self._failed = failed_backward(self._adapter, error)
        return self._failed is not None and self._failed.certain

    def __enter__(self) -> Doctor:
        self._ledger.__enter__()
        observe = self._adapter.observe
        self._observations = [
            observe(self._examiner, forward=False, backward=True),
            observe(self._updates, forward=False, backward=True, operators=True),
            observe(self._nan, forward=True, backward=True, operators=True),
            observe(self._growth, forward=True, backward=True),
            observe(self._blind, forward=True, backward=True),
        ]
        if self._functions is not None:
            self._functions.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        while self._observations:
            self._observations.pop().close()
        if self._functions is not None:
            self._functions.__exit__(kind, error, trace)
        self._examiner.close()
        self._updates.close()
        self._nan.close()
        self._ledger.__exit__(kind, error, trace)


class _BlindRegions(Observer):
    """Collects why parts of the program cannot be looked into."""

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}

    def blind_region(self, reason: str) -> None:
        """Keep the reason."""
        self.reasons[reason] = None

    blind_call = blind_region


def _zero_gradients(found: Iterable[tuple[str, tuple[ZeroCause, ...]]]) -> tuple[ZeroGradient, ...]:
    """Return zero gradients by their cause; where contributions cancel there is none, and nothing to mend."""
    groups: dict[tuple[ZeroCause, ...], list[str]] = {}
    for name, causes in found:
        if causes:
            groups.setdefault(causes, []).append(name)
    return tuple(ZeroGradient(tuple(names), causes) for causes, names in groups.items())
