"""The in-place sanitizer: watches a program of gradscope, PyTorch or both, and collects findings.

One kind of observer (:mod:`.watcher`) follows either framework through its adapter, and tells what it has seen as facts
(:mod:`.violation_facts`), which the rules judge (:mod:`.rules`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, TypeVar

from ..inspect.adapters import AnyAdapter, NativeAdapter
from ..inspect.adapters.both_frameworks import load_torch_adapter, warn_too_old
from ..inspect.adapters.event_guards import fault_of, not_looked_into, own_error
from ..inspect.adapters.guarded_observer import GuardedObserver
from ..inspect.adapters.import_watch import when_imported
from ..inspect.diagnosis.rule_registry import Rule
from ..inspect.output.terminal_text import report
from ..inspect.records.records import Location
from ..runtime import call_sites, events
from .exact.line_finder import SavedOnce
from .findings.finding_codes import CODES
from .findings.finding_records import Finding
from .suppression.silences import SilenceReason, Silences
from .watching.continuing_watcher import ContinuingWatcher
from .watching.early_writes import EarlyWriteWatch
from .watching.shared_writes import SharedWriteWatch
from .watching.violation_facts import ChangedFacts, Violation
from .watching.watcher import Watcher
from .watching.wrong_gradients import WrongGradient, largest_first

__all__ = ["Sanitizer"]

W = TypeVar("W", bound=GuardedObserver)

_WRITES, _SHARED, _EARLY = "in-place writes", "writes into what others read too", "writes into results"
"""What the watches look into, as it is said of one whose own code has failed."""

_REPORTED_BY = "_gradscope_reported_by"
_SILENCED_BY = "_gradscope_silenced_by"


class Sanitizer:
    """Context manager: collects findings while its block runs.

    PyTorch is watched from the moment it has been imported; it is not imported for it.

    Parameters
    ----------
    silences : Silences, optional
        Which findings are not told; by default those on lines with a ``# gradscope: ignore[...]`` comment.
    first : bool
        Whether the program ends, by SystemExit, at the first finding.
    keep_going : bool
        Whether what was saved is kept when somebody writes over it, so that backward() computes with it instead of
        failing.
    torch : bool
        Whether PyTorch is watched too.

    Attributes
    ----------
    findings : list of Finding
        One per write that is to blame, in the order they were met.
    suppressed, known : int
        How many more there were that a comment or the suppressions file has silenced, and that a baseline knows; those
        of one write count as one.
    backwards, writes : int
        How many backward passes and in-place writes (other than into gradients that accumulate) were watched.
    frameworks : tuple of str
        What the program has used: ``'gradscope'``, ``'PyTorch'``.
    gradients : list of WrongGradient
        With `keep_going`: how wrong the gradients of leaves would have been, the largest difference first.
    unseen : tuple of str
        Why parts of the program could not be looked into; `faults` among it.
    faults : tuple of str
        What of it an error of gradscope's own has cost, which is said on stderr as it happens.

    See Also
    --------
    Finding, make_report

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer
    >>> x = gs.ones(3, requires_grad=True)
    >>> with Sanitizer() as sanitizer:
    ...     y = x.exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> sanitizer.findings[0].code, sanitizer.findings[0].node
    ('GS101', 'ExpBackward0')
    """

    _open: ClassVar[list[Sanitizer]] = []

    def __init__(
        self,
        silences: Silences | None = None,
        *,
        first: bool = False,
        keep_going: bool = False,
        torch: bool = True,
    ) -> None:
        self._silences = silences or Silences()
        self._first = first
        self._watches_torch = torch
        self._watch: type[Watcher] = ContinuingWatcher if keep_going else Watcher
        self._found: dict[tuple[Any, ...], Finding] = {}
        self._silenced: dict[SilenceReason, set[tuple[Any, ...]]] = {reason: set() for reason in SilenceReason}
        # The saved tensors whose write no event told of, by the key of the finding: a second run looks for the line.
        self._unheard: dict[tuple[Any, ...], SavedOnce] = {}
        self._lock = threading.Lock()
        self._native: Watcher | None = None
        self._native_used = False
        self._first_operator: events.Subscription | None = None
        self._torch: Watcher | None = None
        self._shared_writes: SharedWriteWatch | None = None
        self._early_writes: EarlyWriteWatch | None = None
        self._too_old = ""
        self._faults: dict[str, str] = {}
        self._give_up: Callable[[], None] = lambda: None

    @property
    def findings(self) -> list[Finding]:
        """The findings so far."""
        with self._lock:
            return list(self._found.values())

    @property
    def suppressed(self) -> int:
        """How many more there were that a comment or the suppressions file has silenced."""
        return len(self._silenced[SilenceReason.SUPPRESSED])

    @property
    def known(self) -> int:
        """How many more there were that a baseline knows."""
        return len(self._silenced[SilenceReason.KNOWN])

    @property
    def backwards(self) -> int:
        """How many backward passes were watched."""
        return sum(watch.backwards for watch in (self._native, self._torch) if watch is not None)

    @property
    def writes(self) -> int:
        """How many in-place writes were watched."""
        return sum(watch.writes for watch in (self._native, self._torch) if watch is not None)

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The frameworks that the program has used."""
        torch = self._torch is not None or bool(self._too_old)
        return ("gradscope",) * self._native_used + ("PyTorch",) * torch

    @property
    def unseen(self) -> tuple[str, ...]:
        """Why parts of the program could not be looked into."""
        watches = [watch for watch in (self._native, self._torch) if watch is not None]
        reasons = dict.fromkeys(reason for watch in watches for reason in watch.unseen)
        for watch in self._continuing():
            reasons |= watch.gradients.unmeasured
        return (*filter(None, [self._too_old]), *reasons, *self.faults)

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be looked into since gradscope's own code has failed."""
        return tuple(not_looked_into(what, fault) for what, fault in self._faults.items())

    @property
    def gradients(self) -> list[WrongGradient]:
        """How wrong gradients would have been, the largest difference first."""
        return largest_first(wrong for watch in self._continuing() for wrong in watch.gradients.found)

    def _continuing(self) -> list[ContinuingWatcher]:
        return [watch for watch in (self._native, self._torch) if isinstance(watch, ContinuingWatcher)]

    @classmethod
    def opened(cls) -> Sanitizer | None:
        """Return the sanitizer that watches this process now, the newest of several."""
        return cls._open[-1] if cls._open else None

    def __enter__(self) -> Sanitizer:
        adapter = AnyAdapter() if self._watches_torch else NativeAdapter()
        self._following = call_sites.following_libraries()
        self._following.__enter__()
        shared_writes = self._shared_writes = self._begin(_SHARED, lambda: SharedWriteWatch(self._judge, adapter))
        if shared_writes is not None:
            watch = partial(self._watch, NativeAdapter(), self._judge, shared_writes)
            self._native = self._begin(f"{_WRITES} in gradscope", watch)
        self._first_operator = events.subscribe(self._operator_ran, events.OperatorRecorded)
        if self._silences.looks_for("GS112"):  # it costs a checksum of each result
            self._early_writes = self._begin(_EARLY, lambda: EarlyWriteWatch(self._judge, adapter))
        if self._watches_torch and shared_writes is not None:
            self._give_up = when_imported("torch", partial(self._torch_imported, shared_writes))
        Sanitizer._open.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        Sanitizer._open.remove(self)
        self._give_up()
        if self._first_operator is not None:
            self._first_operator.unsubscribe()
        for watch in (self._torch, self._early_writes, self._shared_writes, self._native):
            if watch is not None:
                self._close(watch)
        self._following.__exit__(None, None, None)

    def take(self) -> list[Finding]:
        """Return what was found since the last time; what is known of the program's writes is kept."""
        with self._lock:
            found, self._found = list(self._found.values()), {}
        return found

    @contextmanager
    def errors_meant(self) -> Iterator[None]:
        """Forget the errors that the block has met, where none leaves it: it has caught them, as a test means to."""
        before = dict(self._found)
        yield
        with self._lock:
            kept = {cause: before.get(cause) if one.severity == "error" else one for cause, one in self._found.items()}
            self._found = {cause: one for cause, one in kept.items() if one is not None}

    def place_writes(self, find: Callable[[Iterable[SavedOnce]], dict[SavedOnce, Location]]) -> None:
        """Name the lines of writes that nobody has heard of.

        Parameters
        ----------
        find : callable
            Returns the lines that it knows; not called where there is nothing to look for.
        """
        unheard = {key: self._unheard[key] for key in self._found if key in self._unheard}
        lines = find(unheard.values()) if unheard else {}
        for key, saved in unheard.items():
            if saved in lines:
                self._add(self._found.pop(key).written_at(lines[saved]), None)

    def explains(self, error: BaseException | None) -> bool:
        """Whether `error` has become a finding that is not suppressed."""
        return error is not None and vars(error).get(_REPORTED_BY) is self

    def silenced(self, error: BaseException | None) -> Finding | None:
        """Return the finding that `error` is, where that is silenced; else None."""
        by, finding = (None, None) if error is None else vars(error).get(_SILENCED_BY, (None, None))
        return finding if by is self and not self.explains(error) else None

    def _operator_ran(self, event: events.Event) -> None:
        """Note that the program uses gradscope; the first operator tells."""
        self._native_used = True
        if self._first_operator is not None:  # None while another thread is in subscribe()
            self._first_operator.unsubscribe()

    def _torch_imported(self, shared_writes: SharedWriteWatch) -> None:
        try:
            watch = partial(self._watch, load_torch_adapter(), self._judge, shared_writes)
        except ImportError as error:
            self._too_old = str(error).partition("\n")[0]
            warn_too_old(error)
        except Exception as error:
            self._failed(f"{_WRITES} in PyTorch", fault_of(error))
        else:
            self._torch = self._begin(f"{_WRITES} in PyTorch", watch)

    def _judge(self, facts: Violation, error: BaseException | None) -> None:
        for code, rule in CODES.items():
            if type(facts) in rule.needs and code not in self._faults:
                try:
                    self._judge_by(rule, facts, error)
                except Exception as own:  # the other rules are not lost with it
                    self._failed(code, fault_of(own))

    def _judge_by(self, rule: Rule, facts: Violation, error: BaseException | None) -> None:
        for finding in rule.judge(facts):
            if isinstance(facts, ChangedFacts) and not facts.writes:
                unheard = SavedOnce(facts.framework, facts.number, facts.node, facts.saved_name)
                self._unheard.setdefault(finding.key, unheard)
            self._add(finding, error)

    def _begin(self, what: str, begin: Callable[[], W]) -> W | None:
        """Return a watch, which says what is no longer looked into once its own code has failed; None if that has."""
        try:
            watch = begin()
        except Exception as error:
            self._failed(what, fault_of(error))
            return None
        watch.report_fault = partial(self._failed, what)  # type: ignore[method-assign]
        return watch

    def _failed(self, what: str, fault: str) -> None:
        """Say that an error of gradscope's own has cost a part of what is looked into."""
        self._faults.setdefault(what, fault)
        report(f"gradscope: no longer looked into: {what}: {own_error(fault)}\nThe program goes on.")

    def _close(self, watch: Watcher | EarlyWriteWatch | SharedWriteWatch) -> None:
        """Have a watch hear no more, whatever its own code does."""
        try:
            watch.close()
        except Exception as error:
            watch.fail(error)

    def _add(self, finding: Finding, error: BaseException | None) -> None:
        with self._lock:
            reason = self._silences.reason(finding)
            if reason is not None:
                self._silenced[reason].add(finding.cause)
                if error is not None:
                    vars(error)[_SILENCED_BY] = self, finding
                return
            if error is not None:
                vars(error)[_REPORTED_BY] = self
            cause = self._cause(finding)
            known = self._found.get(cause)
            self._found[cause] = finding if known is None else known.joined(finding)
        if self._first:
            raise SystemExit(1)

    def _cause(self, finding: Finding) -> tuple[Any, ...]:
        """Return under which cause a finding stands: that of one that explains it, where the same write is to blame."""
        _, *write = finding.cause
        explaining = ((code, *write) for code, rule in CODES.items() if finding.code in rule.explains)
        return next((cause for cause in explaining if cause in self._found), finding.cause)
