"""The doctor: all explanations at once, over a program that runs by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..adapters import Adapter
from ..adapters.event_guards import fault_of, not_looked_into
from ..output.number_format import count, format_bytes
from ..records.records import Location
from ..source.call_sites import place
from .examination import Examination, FlowTrouble, ZeroGradient, named
from .explanation import Explanation, adapter_of, plain
from .finding_limits import Limits
from .flow.dead_units import DeadUnits
from .flow.gradient_flow import GradientFlow
from .functions.custom_derivatives import CheckedFunction
from .functions.failed_backward import FailedBackward, failed_backward
from .memory.gradient_aliasing import GradientAliasing
from .memory.graph_growth import Growth
from .memory.graph_memory import MemoryReport
from .memory.reference_cycles import GraphCycle
from .nan.nan_origin import NanOrigin
from .no_gradient.loss_terms import LossTerm
from .no_gradient.no_grad_reasons import GradientReport, Reason
from .no_gradient.tensor_in_error import gradients_of_none, loss_without_graph
from .optimizers.optimizer_updates import Updates
from .program_facts import (
    BLIND_REGIONS,
    EXAMINATION,
    FAILURE,
    FUNCTIONS,
    GROWTH,
    LIMITS,
    NAN,
    OTHERS,
    UPDATES,
    WatchedProgram,
)
from .rule_registry import Found, Rule, load_rules
from .step_limit import EnoughSeen, step_limit

__all__ = ["Diagnosis", "Doctor", "Symptom"]

_RULES = load_rules(f"{__package__}.rules")
_WORST_FIRST = ("error", "silent-wrong", "warning")
# The facts that every diagnosis reports, whether a rule needs them or not.
_ALWAYS = (EXAMINATION, UPDATES, NAN, GROWTH, BLIND_REGIONS, FAILURE)


@dataclass(frozen=True)
class Symptom:
    """Something that is wrong.

    Attributes
    ----------
    kind : str
        ``'failed'``, ``'no gradient'``, ``'NaN'``, ``'wrong gradient'``, ``'constant gradient'``, ``'broadcast'``,
        ``'updates'``, ``'gradient flow'``, ``'growth'``, ``'cycle'``, ``'aliasing'``, or what another instrument calls
        it.
    code : str
        Of the rule that found it, such as ``'D303'``.
    certainty : str
        ``'certain'``: it was seen; ``'likely'``: a number was beyond one of the :class:`~.finding_limits.Limits`, or
        what was seen may be meant.
    since : int
        The number, from 1, of the backward pass with which it was first seen; 0 where that is not known.
    """

    kind: str
    text: str
    location: Location | None = None
    code: str = ""
    certainty: str = "certain"
    since: int = 0


@dataclass(frozen=True, repr=False)
class Diagnosis(Explanation):
    """The findings of the doctor.

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
    spare : tuple of str
        Parameters that a model of an installed package has and does not use itself: nothing that the program can mend.
    unseen : tuple of str
        Why parts of the program could not be looked into.

    See Also
    --------
    Doctor : makes it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Linear(2, 1)
    >>> with gi.Doctor() as doctor:
    ...     model(gs.ones(1, 2)).sum().backward()
    >>> doctor.diagnosis.backwards, bool(doctor.diagnosis.missing)
    (1, True)
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
    spare: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    _facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def symptoms(self) -> tuple[Symptom, ...]:
        """The findings, the worst first; what another finding explains is left out."""
        found = [(rule, one) for rule, told in self._judged if not isinstance(told, str) for one in told]
        unexplained = (
            Symptom(rule.kind, one.text, one.location, rule.code, _certainty_of(rule), one.since)
            for rule, one in found
            if not any(rule.code in cause.explains and told.leads_to(one) for cause, told in found)
        )
        return (*self.others, *unexplained)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """The rules that failed by an error of gradscope's own, each with it."""
        return tuple(not_looked_into(rule.code, told) for rule, told in self._judged if isinstance(told, str))

    @cached_property
    def _judged(self) -> Sequence[tuple[Rule, Sequence[Found] | str]]:
        """Each rule, the worst first, with what it found, or the error that it failed by."""
        facts = {**self._facts, OTHERS.name: self.others}
        rules = sorted(_RULES, key=lambda rule: _WORST_FIRST.index(rule.severity))
        return [(rule, _judge(rule, facts)) for rule in rules if all(fact.name in facts for fact in rule.needs)]

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
            seen += f"\nFrozen (requires_grad is False): {named(self.frozen)}, {len(self.frozen)}{of} parameters."
        if self.spare:
            seen += (
                f"\nNot used by the package that has it: {named(self.spare)}, {count(len(self.spare), 'parameter')}."
            )
        unseen = (f"Not looked into: {reason}." for reason in (*self.unseen, *self.unjudged))
        return "\n".join([*self._list(), seen, *unseen])

    def _list(self) -> Iterable[str]:
        for symptom in self.symptoms:
            first, *rest = symptom.text.splitlines()
            indented = rest if all(line.startswith("  ") for line in rest) else [f"  {line}" for line in rest]
            head = f"{symptom.code} {symptom.kind}".strip()
            yield "\n".join([f"{head}{_how_sure(symptom)}: {first}", *indented, ""])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and ``symptoms`` as numbers, text, lists and dictionaries."""
        unseen = plain((*self.unseen, *self.unjudged))
        return {**super().to_dict(), "unseen": unseen, "symptoms": plain(self.symptoms)}

    def _title(self) -> str:
        return f"{count(len(self.symptoms), 'finding')} in {count(self.backwards, 'backward pass', 'backward passes')}"

    def _columns(self) -> Sequence[str]:
        return ("code", "kind", "line", "what")

    def _rows(self) -> Iterable[Sequence[str]]:
        for symptom in self.symptoms:
            yield (symptom.code, f"{symptom.kind}{_how_sure(symptom)}", place(symptom.location), symptom.text)


def _how_sure(symptom: Symptom) -> str:
    """Say how sure a finding is, and when it was first seen where that is not at once."""
    sure = ["likely"] if symptom.certainty == "likely" else []
    told = symptom.since <= 1 or "first seen" in symptom.text
    since = [] if told else [f"first seen in backward {symptom.since}"]
    return f" ({', '.join(sure + since)})" if sure or since else ""


def _judge(rule: Rule, facts: Mapping[str, Any]) -> Sequence[Found] | str:
    """Return what a rule finds, or the error that it failed by."""
    try:
        return [Found(*judged) for judged in rule.judge(*(facts[fact.name] for fact in rule.needs))]
    except Exception as error:
        return fault_of(error)


def _certainty_of(rule: Rule) -> str:
    return "likely" if LIMITS in rule.needs else rule.certainty


class Doctor:
    """Context manager: watch a program, and say what is wrong with its gradients.

    Parameters
    ----------
    functions : bool, optional
        Compare the backward of each custom Function with its forward one input at a time, as soon as the diagnosis is
        asked for: see :class:`functions`. Otherwise all inputs are moved at once when the block has ended, and
        Functions that were given more than tensors, numbers and text are left alone.
    limits : Limits, optional
        The numbers beyond which something is said.
    steps : int, optional
        End the block by :class:`~.step_limit.EnoughSeen` after so many steps of one optimizer.
    adapter : Adapter, optional
        Of one framework only; all by default.

    Attributes
    ----------
    diagnosis : Diagnosis
        What has been found so far.

    See Also
    --------
    why_no_grad, nan_origin

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

    def __init__(
        self,
        *,
        functions: bool = False,
        limits: Limits | None = None,
        steps: int | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        self._adapter = adapter_of(None, adapter)
        needed = dict.fromkeys((*_ALWAYS, *(fact for rule in _RULES for fact in rule.needs)))
        if steps is not None:
            if steps < 1:
                raise ValueError(f"steps must be at least 1, got {steps}\nIt is how many steps of an optimizer to see.")
            needed[step_limit(steps)] = None  # this fact comes last, when all others have heard of the step
        self._program = WatchedProgram(self._adapter, needed, limits)
        self._program.watch_of(FUNCTIONS).each_input = functions

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis of the program so far."""
        facts = self._program.known()
        seen: Examination = facts.get(EXAMINATION.name, Examination())
        return Diagnosis(
            backwards=self._program.ledger.recorder.backwards,
            missing=seen.missing,
            nan=facts.get(NAN.name, NanOrigin(())),
            flow=seen.flow,
            rectifiers=seen.rectifiers,
            growth=facts.get(GROWTH.name, Growth((), "steady", 0, None, ())),
            aliasing=seen.sharing,
            memory=seen.memory,
            updates=facts.get(UPDATES.name, Updates(0)),
            trouble=seen.trouble,
            zeros=seen.zeros,
            cycles=seen.cycles,
            terms=seen.terms,
            failed=facts.get(FAILURE.name),
            functions=facts.get(FUNCTIONS.name, ()),
            frozen=seen.frozen,
            spare=seen.spare,
            unseen=(*facts.get(BLIND_REGIONS.name, ()), *self._program.faults()),
            _facts=facts,
        )

    def explain(self, error: BaseException | None) -> bool:
        """Look into what has ended the program; return whether the diagnosis says where it comes from."""
        # These do not come from the gradients.
        if error is None or isinstance(error, (KeyboardInterrupt, EnoughSeen)):
            return False
        try:
            return self._explains(error)
        except Exception as own:  # the program's error is told as it is
            self._program.watch_of(FAILURE).fault = fault_of(own)
            return False

    def _explains(self, error: BaseException) -> bool:
        missing = self._program.watch_of(EXAMINATION).missing
        refused, of_none = loss_without_graph(self._adapter, error), gradients_of_none(self._adapter, error)
        if refused is not None:
            missing.refused(refused)
            return bool(missing.report().parameters)
        if of_none:
            missing.none(of_none)
            return True
        failed = self._program.watch_of(FAILURE).failed = failed_backward(self._adapter, error)
        return failed is not None and failed.certain

    def __enter__(self) -> Doctor:
        self._program.open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._program.close()
