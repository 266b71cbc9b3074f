"""What is wrong with the backward at hand, ranked, and why a tensor has no gradient: at a stop, and after the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...adapters import SavedView
from ...diagnosis.finding_limits import DEBUGGER, Limits, limits_from, limits_of
from ...diagnosis.flow.trend_findings import MOST_NODES, trend_findings
from ...output.error_text import error_text
from ...output.number_format import several
from ...records.module_tracking import join
from ...records.records import DebuggerEvent, Location, SessionState, StopReason
from ...source.call_sites import raised_at
from ..history.kept_reasons import kept_reason, path_called
from .debugged_backward import TaskView
from .model_records import known_parameters, parameter_records
from .pause_context import PauseContext
from .session_queries import SessionQueries, Told
from .session_records import BackwardFinding

if TYPE_CHECKING:
    from ...diagnosis.no_gradient.no_grad_reasons import GradientReport, NoGradient

__all__ = ["SessionFindings"]

_MOST_AT_STEPS = 2_000
"""Nodes up to which the gradients are looked at after each step: each look is felt."""

_STEPS = frozenset({"step", "replay"})
_RANKS = ("exception", "violation", "nan", "inf", "modified", "unreached", "exploding", "faded", "vanishing", "zero",
          "slope", "bounded")  # fmt: skip
_BAD = frozenset({"nan", "inf"})
_STOPS = _BAD | {"exception", "violation"}


class SessionFindings(SessionQueries):
    """What a session finds wrong with the backward that it shows."""

    _of_graph: tuple[object, tuple[BackwardFinding, ...]] = (None, ())
    _left_out: tuple[object, frozenset[str]] = (None, frozenset())
    _limits = Limits()

    @property
    def limits(self) -> dict[str, float]:
        """The numbers beyond which the gradients are findings; see :meth:`set_limit`."""
        return limits_of(DEBUGGER, self._limits)

    def set_limit(self, setting: str) -> None:
        """Set a number beyond which there is a finding.

        Parameters
        ----------
        setting : str
            ``'NAME=VALUE'``, as for ``--limit``: ``'faded_signal=1e-6'``.

        Raises
        ------
        ValueError
            If no finding here has a limit of that name, or the value is no number above 0.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> w = gs.tensor([2.0], requires_grad=True)
        >>> session = gi.debug((w * w).sum())
        >>> session.set_limit("norm_spread=100")
        >>> session.limits["norm_spread"]
        100.0
        >>> session.abort()
        >>> state = session.wait()
        """
        self._limits = limits_from([setting], DEBUGGER, self._limits)
        if self._state.paused:
            self._of_graph = None, ()
        self._broadcast.tell(DebuggerEvent("limits", self._state))

    def findings(self) -> tuple[BackwardFinding, ...]:
        """Return what is wrong with the backward that is shown, the worst first.

        All but what the gradients show is known at its first node: parameters that are not reached and the line that
        cuts them off, chains that must make the gradient vanish, derivatives that will be infinite, saved tensors that
        have been written. What ran while nobody looked counts too. A backward of more than 20,000 nodes is not
        searched; why the program has stopped is told of each.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> w = gs.tensor([0.0, 4.0], requires_grad=True)
        >>> session = gi.debug((w * w).sqrt().sum())
        >>> state = session.wait()
        >>> [finding.title for finding in session.findings()]
        ['the gradient of Sqrt will be infinite where its result is 0 (1 of 2 elements)']
        >>> session.abort()
        >>> state = session.wait()
        """
        if self.ended:
            # What else was found was still ahead, and what has been reached since is no finding.
            lost = {one.path for one in self._session.parameters() if one.unreached}
            known = [
                one
                for one in self._of_graph[1]
                if one.kind == "faded" or (one.kind == "unreached" and lost.issuperset(one.parameters))
            ]
            stops = [*self._of_stop(Told()), *_bad_values(self._session.shown[0])]
            stops = [*_raised(self.error, stops), *stops]
            return _ranked(stops, [*known, *trend_findings(self._session.nodes, self._limits)])
        if not self._state.paused:
            return self._of_graph[1]
        return self._at_stop(self._findings_at)

    def why_no_grad(self, subject: str) -> NoGradient | GradientReport:
        """Return why a tensor has no gradient, or one that is zero; see :func:`gradscope.inspect.why_no_grad`.

        A program that has ended is not asked: what was kept tells of its parameters, by their paths or that of a
        module, how the last backward left them.

        Parameters
        ----------
        subject : str
            The path of a parameter (``'fc1.weight'``), or the end of one alone, or an expression for a tensor or a
            module; ``', LOSS'`` may follow, by default the variable ``loss`` if there is one.

        Returns
        -------
        NoGradient or GradientReport
            A report of all parameters for a module.

        Raises
        ------
        NotParkedError, SessionError, Exception
            As for :meth:`memory`; also where the program has ended, and has no parameter of that name.
        """

        def ask(place: PauseContext) -> NoGradient | GradientReport:
            # The diagnosis loads when it is asked for.
            from ...diagnosis.no_gradient.no_grad_reasons import NoGradient
            from ...diagnosis.no_gradient.why_no_grad import why_no_grad

            parameters = self._parameters()
            path = path_called(subject.strip(), list(parameters))
            found = (parameters[path],) if path else place.value(f"({subject},)")
            answer = why_no_grad(*found, **({} if len(found) > 1 else self._loss_at(place)))
            answer = replace(answer, name=path) if path and isinstance(answer, NoGradient) else answer
            return _in_progress(answer, place.arrivals(found[:1])) if place.roots() else answer

        if self._state.ended:
            return kept_reason(subject, self._session.parameters(), self.findings())
        return self._at_stop(ask)

    def _loss_at(self, place: PauseContext) -> dict[str, Any]:
        """Return the variable ``loss`` as an argument, if there is such a tensor."""
        try:
            value = place.value("loss")
        except NameError:
            return {}
        return {"loss": value} if self._adapter.is_tensor(value) else {}

    def _findings_at(self, place: PauseContext) -> tuple[BackwardFinding, ...]:
        view = self._session.shown[0]
        stop = [*self._of_stop(self._told_if_kept(place)), *_bad_values(view)]
        if view is None or not view.order or len(view.order) > MOST_NODES:
            return _ranked(stop)
        stepping = self._reason is not None and self._reason.kind in _STEPS
        if view.live and (self._of_graph[0] is not view or not stepping):
            self._of_graph = view, (*self._unreached(place, view), *self._ahead(view))
        at_stop = {finding.index for finding in stop}
        graph = self._of_graph[1] if self._of_graph[0] is view else ()
        coming = [one for one in graph if one.index not in at_stop and _stands(one, view.index)]
        trend = [] if stepping and len(view.order) > _MOST_AT_STEPS else trend_findings(view.nodes, self._limits)
        # Where a bad value comes from the forward pass, the node that had it there may still be ahead.
        handed_on = all(one.kind in _BAD and view.record(one.index).inherited for one in stop)
        return _ranked(stop, [*coming, *trend], slopes=handed_on)

    def _stopped(self, state: SessionState, reason: StopReason) -> None:
        view = self._session.shown[0]
        if state.paused and reason.kind in _BAD and view is not None:
            told = self._session.at_stop(self._told_if_kept)
            view.bad_values.append(self._finding_of(reason, told))
        super()._stopped(state, reason)

    def _told_if_kept(self, place: PauseContext) -> Told:
        try:
            return self._told_at(place)
        except RuntimeError:  # what it was made of has been let go
            return Told()

    def _of_stop(self, told: Told) -> list[BackwardFinding]:
        """Return why the program has stopped, where that is trouble other than a NaN or an infinity."""
        reason = self._last_trouble()
        return [] if reason is None or reason.kind in _BAD else [self._finding_of(reason, told)]

    def _finding_of(self, reason: StopReason, told: Told) -> BackwardFinding:
        view, index = self._session.shown
        node = view.record(index) if view is not None and 0 <= index < len(view.order) else None
        # The diagnosis loads when it is asked for.
        from .backward_outlook import line_of, writes_text

        text = told.text or writes_text(reason.writes)
        where = told.location or (None if node is None else line_of(reason.writes, node))
        title = reason.text
        if node is not None and reason.writes:
            write = reason.writes[-1]
            title = f"`{write.name}`, which {node.operator} had saved, was written by {write.operator}"
            text = f"{reason.text}\n{text}"
        return BackwardFinding(reason.kind, "error", title, text, where, -1 if node is None else index)

    def _last_trouble(self) -> StopReason | None:
        reason = self._last_stop if self.ended and self.error is not None else self._reason
        return reason if reason is not None and reason.kind in _STOPS else None

    # --- the graph, before it has run ---

    def _unreached(self, place: PauseContext, view: TaskView) -> tuple[BackwardFinding, ...]:
        """Return the parameters of the modules that have run which this backward does not reach, by module."""
        named, session = self._parameters(), self._session
        known = known_parameters(self._adapter, session.tracker, view, session.norm_history)
        records = parameter_records(known, view, session.norm_history)
        absent = self._absent(view, {one.path for one in records if not one.unreached and one.requires_grad})
        missing = {one.path: named[one.path] for one in records if one.unreached}
        groups: dict[str, list[str]] = {}
        for name in missing:
            groups.setdefault(name.partition(".")[0] if "." in name else "", []).append(name)
        reasons = {group[0]: self._reason_of(place, view, missing[group[0]], group[0]) for group in groups.values()}
        meant = [group for group in groups.values() if absent.issuperset(group) and _is_meant(reasons[group[0]])]
        self._left_out = view, frozenset(name for group in meant for name in group)
        return tuple(
            _not_reached(group, len(named), reasons[group[0]]) for group in groups.values() if group not in meant
        )

    def _left_out_at(self, place: PauseContext) -> frozenset[str]:
        """Return the parameters that the backward which is shown leaves out on purpose, as the first one of a GAN does.

        They are those of which :meth:`findings` says nothing.
        """
        view = self._session.shown[0]
        if view is not None and view.live and self._left_out[0] is not view and 0 < len(view.order) <= MOST_NODES:
            self._unreached(place, view)
        return self._left_out[1] if self._left_out[0] is view else frozenset()

    def _absent(self, view: TaskView, reached: set[str]) -> set[str]:
        """Return the parameters of models that may have a backward of their own, as the two of a GAN have.

        That is a whole model none of whose parameters is reached, while another's are; only until the same line calls
        backward() again.
        """
        models = [
            {join(label, path) for path, _ in self._adapter.named_parameters(root)}
            for label, root in self._session.tracker.roots().items()
        ]
        if view.iteration > 1 or all(model.isdisjoint(reached) for model in models):
            return set()
        return {path for model in models if model.isdisjoint(reached) for path in model}

    def _reason_of(self, place: PauseContext, view: TaskView, tensor: Any, name: str) -> NoGradient:
        """Return why a backward does not reach a parameter."""
        # The diagnosis loads when it is asked for.
        from ...diagnosis.no_gradient.dataflow_ledger import recorder_for
        from ...diagnosis.no_gradient.why_no_grad import LossDiagnosis

        adapter = self._adapter.of(tensor)
        root = adapter.task_roots(view.task)[0]
        known = LossDiagnosis(adapter, recorder_for(None), tensor, root=root, end=None, frames=place.frames)
        return known.explain(tensor, name)

    def _ahead(self, view: TaskView) -> Iterator[BackwardFinding]:
        # The diagnosis loads when it is asked for.
        from .backward_outlook import bounded_gradients, faded_signals, infinite_slopes, written_tensors

        yield from written_tensors(self._adapter, view, self._session.writes_into)
        yield from infinite_slopes(self._adapter, view)
        yield from faded_signals(self._adapter, view, self._initialised_at, self._limits.faded_signal)
        yield from bounded_gradients(self._adapter, view, self._limits.bounded_chain)

    def _initialised_at(self, weight: SavedView) -> Location | None:
        """Return the line that has written a weight last, before an optimizer may have."""
        first = self._session.shown[0] is not None and self._session.shown[0].iteration <= 1
        write = self._session.written_before(weight) if first else None
        return None if write is None else write.location


def _stands(finding: BackwardFinding, index: int) -> bool:
    """Whether what the graph showed is so at a node: what a node would do is over when it has run."""
    return finding.kind == "faded" or finding.index < 0 or finding.index >= index


def _is_meant(answer: NoGradient) -> bool:
    """Whether the line that cuts a parameter off says itself that it does: ``fake.detach()``, ``with no_grad()``."""
    return any(word in str(answer) for word in ("detach()", "no_grad"))


def _not_reached(names: Sequence[str], total: int, answer: NoGradient) -> BackwardFinding:
    title = f"{len(names)} of {total} parameters get no gradient: {several(names)}"
    likely = answer.location is None and bool(answer.suspects)
    location = answer.suspects[0].location if likely else answer.location
    _, _, reason = str(answer).partition(": ")
    return BackwardFinding("unreached", "warning", title, reason, location, parameters=tuple(names), likely=likely)


def _raised(error: BaseException | None, stops: Sequence[BackwardFinding]) -> Iterator[BackwardFinding]:
    """Yield the error with which the program has failed, unless a stop in its backward has told of it."""
    if error is None or any(stop.kind in ("exception", "violation") for stop in stops):
        return
    first, _, more = (error_text(error) or "no message").partition("\n")
    yield BackwardFinding("exception", "error", f"{type(error).__name__}: {first}", more.strip(), raised_at(error))


def _bad_values(view: TaskView | None) -> Sequence[BackwardFinding]:
    """Return the NaNs and infinities at which a backward has stopped: what came first may be the cause of the rest."""
    return () if view is None else view.bad_values


def _ranked(
    stops: Sequence[BackwardFinding], findings: Sequence[BackwardFinding] = (), *, slopes: bool = False
) -> tuple[BackwardFinding, ...]:
    """Put the stops first and then the worst, and leave out what another finding says better.

    Parameters
    ----------
    slopes : bool
        Whether derivatives that will be infinite are told beside stops.
    """
    kinds = {finding.kind for finding in findings}
    said = {"nan", "inf"} if stops else set()
    said |= {"slope"} if stops and not slopes else set()
    said |= {"bounded"} if "vanishing" in kinds else set()
    said |= {"vanishing", "bounded"} if "faded" in kinds else set()
    others = [finding for finding in findings if finding.kind not in said]
    return (*stops, *sorted(others, key=lambda finding: _RANKS.index(finding.kind)))


def _in_progress(answer: NoGradient | GradientReport, ahead: Sequence[int]) -> NoGradient | GradientReport:
    """Return an answer that knows of the backward in progress; `ahead` is where the gradient will arrive, if known."""
    # The diagnosis loads when it is asked for.
    from ...diagnosis.no_gradient.no_grad_reasons import GradientReport

    if isinstance(answer, GradientReport):
        return replace(answer, parameters=tuple(_on_its_way(parameter) for parameter in answer.parameters))
    return _on_its_way(answer, ahead)


def _on_its_way(answer: NoGradient, ahead: Sequence[int] = ()) -> NoGradient:
    # The diagnosis loads when it is asked for.
    from ...diagnosis.no_gradient.no_grad_reasons import Reason

    if answer.reason is not Reason.NOT_RUN:
        return answer
    if not ahead:
        return replace(answer, message="reached, and this backward has not come to it yet", help="")
    message = f"reached: its gradient arrives at node {ahead[0]} of this backward, which has not run yet"
    return replace(answer, message=message, help=f"`run-to {ahead[0]}` goes there.")
