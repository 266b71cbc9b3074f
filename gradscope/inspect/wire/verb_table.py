"""The method of a debugger that answers each request, and the type of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..debuggee.whereabouts import main_thread_stack, whereabouts
from ..debugging.session.session_records import (
    BackwardFinding,
    FrameRecord,
    ModuleRecord,
    ParameterRecord,
    VariableRecord,
    WatchRecord,
    WhatIf,
)
from ..records.node_records import NodeRecords
from ..records.object_search import no_collection
from ..records.records import NodeRecord, TensorPage, TensorSummary
from . import messages as m
from .standing import StandingSource

if TYPE_CHECKING:
    from ..debugging.session.debugger import Debugger

__all__ = ["AT_ONCE", "GOING_ON", "OF_AN_ORDER", "VERBS", "Answered", "result_type"]

_QUESTIONS = ("memory", "gradient_flow", "why_no_grad")
_LARGEST_PAGE = 1 << 20


class Answered(NamedTuple):
    """How a verb is answered.

    Attributes
    ----------
    answer : callable
        Takes the debugger and the verb, or for verbs that name an order what knows the orders that were sent.
    result : type
        Of what it returns.
    """

    answer: Callable[[Any, Any], Any]
    result: Any = None


def _plain(name: str, result: Any = None) -> Answered:
    """Return how a verb is answered whose fields are the arguments of a method."""

    def answer(debugger: Debugger, verb: Any) -> Any:
        found = getattr(debugger, name)(*(getattr(verb, field) for field in verb.__struct_fields__))
        return None if result is None else found

    return Answered(answer, result)


def _add_breakpoint(debugger: Debugger, verb: m.AddBreakpoint) -> int:
    options = {"condition": verb.condition, "temporary": verb.temporary, "log": verb.log}
    return debugger.add_breakpoint(verb.spec, **options).id  # type: ignore[arg-type]


def _record_always(debugger: Debugger, verb: m.RecordAlways) -> None:
    debugger.record_always = verb.on


def _ask(debugger: Debugger, verb: m.Ask) -> str:
    if verb.question not in _QUESTIONS:
        raise ValueError(f"a question is one of {', '.join(_QUESTIONS)}, got {verb.question!r}")
    return str(getattr(debugger, verb.question)(verb.argument))


def _conclude(debugger: Debugger, verb: m.Conclude) -> m.Conclusion:
    return m.Conclusion(*debugger.conclusion(), debugger.traceback)


VERBS: dict[type[m.Verb], Answered] = {
    m.Start: _plain("start"),
    m.Step: _plain("step"),
    m.Into: _plain("into"),
    m.Out: _plain("out"),
    m.Continue: _plain("cont"),
    m.RunTo: _plain("run_to"),
    m.Until: _plain("until"),
    m.NextBackward: _plain("next_backward"),
    m.Pause: _plain("pause"),
    m.Abort: _plain("abort"),
    m.Back: _plain("back"),
    m.ReverseContinue: _plain("reverse_continue"),
    m.Goto: _plain("goto"),
    m.GoLive: _plain("go_live"),
    m.RecordAlways: Answered(_record_always),
    m.AddBreakpoint: Answered(_add_breakpoint, int),
    m.RemoveBreakpoint: _plain("remove_breakpoint"),
    m.EnableBreakpoint: _plain("enable_breakpoint"),
    m.IgnoreBreakpoint: _plain("ignore_breakpoint"),
    m.Catch: _plain("catch"),
    m.AddWatch: Answered(lambda debugger, verb: debugger.add_watch(verb.expression), WatchRecord),
    m.RemoveWatch: _plain("remove_watch"),
    m.FollowThread: _plain("follow_thread"),
    m.SetLimit: _plain("set_limit"),
    m.Records: Answered(lambda debugger, verb: debugger.records(verb.start, verb.stop), list[NodeRecord]),
    m.Inspect: Answered(lambda debugger, verb: debugger.inspect(verb.index), NodeRecord),
    m.Evaluate: Answered(lambda debugger, verb: debugger.evaluate_text(verb.expression), str),
    m.Elements: _plain("elements", TensorPage),
    m.PageOfTensor: _plain("tensor_page", TensorPage),
    m.SummaryOfTensor: _plain("tensor_summary", TensorSummary),
    m.FindElement: _plain("find_element", int | None),
    m.Derivative: _plain("derivative", tuple[tuple[str, str], ...]),
    m.SaveTensor: _plain("save_tensor", str),
    m.Execute: _plain("execute"),
    m.Variables: Answered(lambda debugger, verb: debugger.variables(), list[VariableRecord]),
    m.Frames: Answered(lambda debugger, verb: debugger.frames(), tuple[FrameRecord, ...]),
    m.Losses: Answered(lambda debugger, verb: debugger.losses(), tuple[float, ...]),
    m.Where: Answered(lambda debugger, verb: debugger.where(), str),
    m.Whereabouts: Answered(lambda debugger, verb: whereabouts(), str),
    m.MainThreadStack: Answered(lambda debugger, verb: main_thread_stack(), str),
    m.Explain: Answered(lambda debugger, verb: debugger.explain(), str),
    m.Findings: Answered(lambda debugger, verb: debugger.findings(), tuple[BackwardFinding, ...]),
    m.BackwardRecords: _plain("backward_records", list[NodeRecord]),
    m.Modules: _plain("modules", tuple[ModuleRecord, ...]),
    m.Parameters: _plain("parameters", tuple[ParameterRecord, ...]),
    m.Ask: Answered(_ask, str),
    m.ParameterNames: Answered(lambda debugger, verb: debugger.parameter_names(), list[str]),
    m.Conclude: Answered(_conclude, m.Conclusion),
    m.SetGrad: _plain("set_grad"),
    m.ZeroGrad: _plain("zero_grad_slot"),
    m.ScaleGrad: _plain("scale_grad"),
    m.Skip: _plain("skip"),
    m.WhatIfAsked: Answered(lambda debugger, verb: debugger.what_if(verb.slot, verb.expression), WhatIf),
}
"""Every verb but those that are about the connection itself, or name an order of nodes."""


def _nodes(source: StandingSource, verb: m.Nodes) -> list[NodeRecord]:
    found = source.nodes(verb.arrangement)
    with no_collection():
        return list(found[max(0, verb.start) : max(0, min(verb.stop, verb.start + _LARGEST_PAGE))])


def _norms(source: StandingSource, verb: m.Norms) -> Mapping[int, float]:
    found = source.nodes(verb.arrangement)
    return found.known_norms() if isinstance(found, NodeRecords) else {}  # there is an empty list before a backward


OF_AN_ORDER: dict[type[m.Verb], Answered] = {
    m.Nodes: Answered(_nodes, list[NodeRecord]),
    m.Norms: Answered(_norms, dict[int, float]),
}
"""The verbs that name one of the orders of nodes that were sent."""

AT_ONCE = (m.Pause, m.Abort, m.Whereabouts)
"""Verbs that do not wait until those before them have been answered."""

GOING_ON = (m.Start, m.Step, m.Into, m.Out, m.Continue, m.RunTo, m.Until, m.NextBackward, m.Pause, m.Abort)
"""Verbs that return at once, and let the program go on."""


def result_type(verb: type[m.Verb]) -> Any:
    """Return the type of the answer to a verb."""
    answered = OF_AN_ORDER.get(verb) or VERBS.get(verb)
    return None if answered is None else answered.result
