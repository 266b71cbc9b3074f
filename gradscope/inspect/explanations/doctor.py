"""The doctor: all explanations at once, over a program that runs by itself."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..adapters import Adapter, Observer
from ..records import Location
from ..wording import count, format_bytes
from .aliasing import GradientAliasing, aliasing
from .base import Explanation, adapter_of, plain
from .gradient_flow import DeadUnits, GradientFlow, dead_units, gradient_flow
from .growth import Growth, GrowthWatch
from .ledger import Ledger
from .lines import place
from .memory import MemoryReport, memory_of
from .nan_origin import NanOrigin, NanWatch
from .no_grad_records import GradientReport, NoGradient, Reason
from .why_no_grad import Case

__all__ = ["Diagnosis", "Doctor", "Symptom"]

# After the first backward passes only every 2**k-th is looked into: a training run has many, and they resemble.
_FIRST = 4
# Some units rest for a batch; when so many do, they will not come back.
_DEAD = 0.5


@dataclass(frozen=True)
class Symptom:
    """Something that is wrong.

    Attributes
    ----------
    kind : str
        ``'no gradient'``, ``'NaN'``, ``'gradient flow'``, ``'growth'`` or ``'aliasing'``.
    text : str
    location : Location or None
    """

    kind: str
    text: str
    location: Location | None = None


@dataclass(frozen=True)
class Diagnosis(Explanation):
    """What the doctor found.

    Attributes
    ----------
    backwards : int
        How many backward passes were seen.
    missing : GradientReport
        Parameters that no backward gave a gradient.
    nan : NanOrigin
    flow : GradientFlow or None
        After the last backward that was looked into.
    rectifiers : tuple of DeadUnits
    growth : Growth
    aliasing : GradientAliasing or None
    memory : MemoryReport or None
        Of the largest graph.
    """

    backwards: int
    missing: GradientReport
    nan: NanOrigin
    flow: GradientFlow | None
    rectifiers: tuple[DeadUnits, ...]
    growth: Growth
    aliasing: GradientAliasing | None
    memory: MemoryReport | None

    @property
    def symptoms(self) -> tuple[Symptom, ...]:
        """What is wrong, the worst first."""
        found = [Symptom("NaN", str(self.nan), self.nan.first.location)] if self.nan.first is not None else []
        if self.missing.parameters:
            first = self.missing.parameters[0].location
            found.append(Symptom("no gradient", str(self.missing), first))
        if self.growth:
            keeper = self.growth.keepers[0].grows if self.growth.keepers else self.growth.joint
            found.append(Symptom("growth", str(self.growth), keeper))
        if self.aliasing is not None and self.aliasing.dangerous:
            text = "\n".join(entry.text for entry in self.aliasing.dangerous)
            found.append(Symptom("aliasing", text))
        return (*found, *self._flow_symptoms())

    def _flow_symptoms(self) -> Iterable[Symptom]:
        if self.flow is not None and self.flow.verdict in ("vanishing", "exploding"):
            yield Symptom("gradient flow", self.flow.findings[0])
        for p in () if self.flow is None else self.flow.parameters:
            if p.grad_norm == 0:
                yield Symptom("gradient flow", f"`{p.name}`: its gradient is zero everywhere; why_no_grad() tells why")
        for unit in self.rectifiers:
            if unit.dead >= unit.units * _DEAD:
                yield Symptom("gradient flow", str(unit), unit.location)

    def __bool__(self) -> bool:
        return bool(self.symptoms)

    def __str__(self) -> str:
        seen = "No backward pass was seen."
        if self.backwards:
            found = count(len(self.symptoms), "finding") if self.symptoms else "Nothing found"
            seen = f"{found} in {count(self.backwards, 'backward pass', 'backward passes')}."
        if self.memory is not None:
            seen += f" The largest graph held {format_bytes(self.memory.total)}."
        return "\n".join([*self._list(), seen])

    def _list(self) -> Iterable[str]:
        for symptom in self.symptoms:
            lines = symptom.text.splitlines()
            yield "\n".join([f"{symptom.kind}: {lines[0]}", *(f"  {line}" for line in lines[1:])]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and ``symptoms`` as numbers, text, lists and dictionaries.

        Returns
        -------
        dict
        """
        return {**super().to_dict(), "symptoms": plain(self.symptoms)}

    def _title(self) -> str:
        return f"{count(len(self.symptoms), 'finding')} in {count(self.backwards, 'backward pass', 'backward passes')}"

    def _columns(self) -> Sequence[str]:
        return ("kind", "line", "what")

    def _rows(self) -> Iterable[Sequence[str]]:
        for symptom in self.symptoms:
            yield (symptom.kind, place(symptom.location), symptom.text)


class _Examiner(Observer):
    """Looks into backward passes before they run, and at what they left."""

    def __init__(self, adapter: Adapter, ledger: Ledger) -> None:
        self.adapter = adapter
        self.recorder = ledger.recorder
        self.flow: GradientFlow | None = None
        self.rectifiers: dict[tuple[Any, ...], DeadUnits] = {}
        self.sharing: GradientAliasing | None = None
        self.memory: MemoryReport | None = None
        self._seen: dict[Location | None, int] = {}
        self._missing: dict[int, tuple[weakref.ref[Any], NoGradient]] = {}
        self._total = 0
        self._open: dict[int, Any] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        roots = list(self.adapter.task_roots(task))
        location = None if not roots else self.adapter.location(roots[0][0])
        times = self._seen[location] = self._seen.get(location, 0) + 1
        if times > _FIRST and times & (times - 1):
            return
        nodes = [node for node, _ in roots]
        memory = memory_of(self.adapter, nodes, self.recorder.parameters(), self.recorder)
        if self.memory is None or memory.total > self.memory.total:
            self.memory = memory
        for unit in dead_units(self.adapter, nodes):
            self.rectifiers[unit.node, unit.module, unit.location] = unit
        self._open[id(task)] = roots[0] if roots else None

    def task_finished(self, task: Any) -> None:
        """Look at the gradients."""
        root = self._open.pop(id(task), None)
        parameters = self.recorder.parameters()
        if root is None or not parameters:
            return
        self._total = max(self._total, len(parameters))
        flow = gradient_flow(parameters, adapter=self.adapter)
        if any(p.grad_norm is not None for p in flow.parameters):
            self.flow = flow
        sharing = aliasing(parameters, adapter=self.adapter)
        self.sharing = sharing if sharing.dangerous or self.sharing is None else self.sharing
        for model in self.recorder.models():
            self._look_for_missing(model, root)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the backward."""
        self._open.pop(id(task), None)

    def _look_for_missing(self, model: Any, root: Any) -> None:
        names = self.recorder.parameter_paths()
        case = None
        for path, tensor in self.adapter.named_parameters(model):
            if self.recorder.accumulated(tensor) is not None or self._known(tensor):
                continue
            if case is None:
                end = self.recorder.entry_of_node(root[0])
                case = Case(self.adapter, self.recorder, model, root=root, end=end)
            found = case.explain(tensor, names.get(id(tensor), path))
            if found.reason is not Reason.FROZEN:
                self._missing[id(tensor)] = (weakref.ref(tensor), found)

    def _known(self, tensor: Any) -> bool:
        found = self._missing.get(id(tensor))
        return found is not None and found[0]() is tensor

    def missing(self) -> GradientReport:
        """Return the parameters that no backward has given a gradient."""
        kept = []
        for reference, found in self._missing.values():
            tensor = reference()
            if tensor is None or self.recorder.accumulated(tensor) is None:
                kept.append(found)
        return GradientReport(tuple(kept), self._total)


class Doctor:
    """Context manager: watch a program, and say what is wrong with its gradients.

    Parameters
    ----------
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

    def __init__(self, *, adapter: Adapter | None = None) -> None:
        self._adapter = adapter_of(None, adapter)
        self._ledger = Ledger(adapter=self._adapter)
        self._examiner = _Examiner(self._adapter, self._ledger)
        self._nan = NanWatch(self._adapter)
        self._growth = GrowthWatch(self._adapter)
        self._observations: list[Any] = []

    @property
    def diagnosis(self) -> Diagnosis:
        """What has been found so far."""
        examiner = self._examiner
        flow = examiner.flow
        rectifiers = tuple(examiner.rectifiers.values())
        return Diagnosis(
            backwards=self._ledger.recorder.backwards,
            missing=examiner.missing(),
            nan=self._nan.origin,
            flow=flow,
            rectifiers=rectifiers,
            growth=self._growth.growth,
            aliasing=examiner.sharing,
            memory=examiner.memory,
        )

    def __enter__(self) -> Doctor:
        self._ledger.__enter__()
        observe = self._adapter.observe
        self._observations = [
            observe(self._examiner, forward=False, backward=True),
            observe(self._nan, forward=True, backward=True, operators=True),
            observe(self._growth, forward=True, backward=True),
        ]
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        while self._observations:
            self._observations.pop().close()
        self._ledger.__exit__(kind, error, trace)
