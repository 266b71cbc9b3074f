"""Understanding a running backward pass: the graph of a loss, and a debugger that steps through it.

Examples
--------
>>> import gradscope as gs
>>> import gradscope.inspect as gi
>>> x = gs.ones(3, requires_grad=True)
>>> loss = (x * 2).sum()
>>> [data["name"] for _, data in gi.graph(loss).nodes(data=True)]
['SumBackward0', 'MulBackward0', 'AccumulateGrad']
>>> session = gi.debug(loss)
>>> session.wait().value, session.node.name
('paused before', 'SumBackward0')
>>> session.cont()
>>> session.wait().value, x.grad
('finished', tensor([2., 2., 2.]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .records import (
    DebuggerEvent,
    EdgeRecord,
    Location,
    NodeRecord,
    SavedRecord,
    SessionState,
    StopReason,
    TensorSpec,
    TensorSummary,
)

if TYPE_CHECKING:
    from .debugging.breakpoints import Breakpoint, BreakpointError
    from .debugging.debug_call import debug
    from .debugging.debugger import Debugger, SessionError
    from .debugging.history import HistoryPolicy
    from .debugging.reports import ParameterChange, TaskRecord, ThreadRecord, WatchRecord, WhatIf
    from .debugging.trace import post_mortem, set_trace
    from .explanations.aliasing import GradientAliasing, aliasing
    from .explanations.doctor import Diagnosis, Doctor
    from .explanations.formulas import CheckedFunction, Functions, functions
    from .explanations.gradient_flow import GradientFlow, gradient_flow
    from .explanations.growth import Growth, growth
    from .explanations.leaks import Leaks, leaks
    from .explanations.ledger import Ledger, ledger
    from .explanations.memory import MemoryReport, memory
    from .explanations.nan_origin import NanOrigin, nan_origin, watch_nan
    from .explanations.no_grad_records import GradientReport, NoGradient
    from .explanations.plots import plot_histogram
    from .explanations.second_backward import SecondBackward, second_backward
    from .explanations.updates import Updates, updates
    from .explanations.why_no_grad import why_no_grad
    from .export.formats import render_graph, write_graph
    from .graphs.counts import GraphStatistics, graph_statistics
    from .graphs.difference import GraphDifference, graph_difference
    from .graphs.folding import fold, fold_to_fit, unfold
    from .graphs.model import BackwardGraph, annotate, execution_order, graph, graph_of
    from .graphs.paths import count_paths, dominators, paths, shortest_path
    from .graphs.selection import NodeNotFoundError, find_node, subgraph
    from .recording.difference import Difference, difference
    from .recording.reader import Recording, open_recording
    from .recording.recorder import Recorder, record
    from .recording.schema import RecordingError
    from .statistics import summarize
    from .tracking import track

__all__ = [
    "Debugger",
    "SessionError",
    "debug",
    "set_trace",
    "post_mortem",
    "HistoryPolicy",
    "WhatIf",
    "ParameterChange",
    "WatchRecord",
    "TaskRecord",
    "ThreadRecord",
    "Breakpoint",
    "BreakpointError",
    "graph",
    "graph_of",
    "annotate",
    "BackwardGraph",
    "execution_order",
    "fold",
    "unfold",
    "fold_to_fit",
    "find_node",
    "NodeNotFoundError",
    "subgraph",
    "paths",
    "shortest_path",
    "count_paths",
    "dominators",
    "graph_difference",
    "GraphDifference",
    "graph_statistics",
    "GraphStatistics",
    "render_graph",
    "write_graph",
    "GradientReport",
    "NoGradient",
    "why_no_grad",
    "Ledger",
    "ledger",
    "NanOrigin",
    "nan_origin",
    "watch_nan",
    "record",
    "Recorder",
    "open_recording",
    "Recording",
    "RecordingError",
    "difference",
    "Difference",
    "GradientFlow",
    "gradient_flow",
    "MemoryReport",
    "memory",
    "Growth",
    "growth",
    "SecondBackward",
    "second_backward",
    "GradientAliasing",
    "aliasing",
    "Leaks",
    "leaks",
    "Updates",
    "updates",
    "Diagnosis",
    "Doctor",
    "CheckedFunction",
    "Functions",
    "functions",
    "plot_histogram",
    "summarize",
    "track",
    "DebuggerEvent",
    "EdgeRecord",
    "Location",
    "NodeRecord",
    "SavedRecord",
    "SessionState",
    "StopReason",
    "TensorSpec",
    "TensorSummary",
]

# Where a name lives that is imported when first asked for: the graph model brings networkx with it.
_LAZY = {
    "Breakpoint": "debugging.breakpoints",
    "BreakpointError": "debugging.breakpoints",
    "Debugger": "debugging.debugger",
    "SessionError": "debugging.debugger",
    "debug": "debugging.debug_call",
    "HistoryPolicy": "debugging.history",
    "ParameterChange": "debugging.reports",
    "TaskRecord": "debugging.reports",
    "ThreadRecord": "debugging.reports",
    "WatchRecord": "debugging.reports",
    "WhatIf": "debugging.reports",
    "post_mortem": "debugging.trace",
    "set_trace": "debugging.trace",
    "BackwardGraph": "graphs.model",
    "annotate": "graphs.model",
    "execution_order": "graphs.model",
    "fold": "graphs.folding",
    "fold_to_fit": "graphs.folding",
    "unfold": "graphs.folding",
    "graph": "graphs.model",
    "render_graph": "export.formats",
    "write_graph": "export.formats",
    "GraphStatistics": "graphs.counts",
    "graph_statistics": "graphs.counts",
    "GraphDifference": "graphs.difference",
    "graph_difference": "graphs.difference",
    "count_paths": "graphs.paths",
    "dominators": "graphs.paths",
    "paths": "graphs.paths",
    "shortest_path": "graphs.paths",
    "NodeNotFoundError": "graphs.selection",
    "find_node": "graphs.selection",
    "subgraph": "graphs.selection",
    "graph_of": "graphs.model",
    "GradientReport": "explanations.no_grad_records",
    "NoGradient": "explanations.no_grad_records",
    "why_no_grad": "explanations.why_no_grad",
    "Ledger": "explanations.ledger",
    "ledger": "explanations.ledger",
    "NanOrigin": "explanations.nan_origin",
    "nan_origin": "explanations.nan_origin",
    "watch_nan": "explanations.nan_origin",
    "Difference": "recording.difference",
    "difference": "recording.difference",
    "Recording": "recording.reader",
    "open_recording": "recording.reader",
    "Recorder": "recording.recorder",
    "record": "recording.recorder",
    "RecordingError": "recording.schema",
    "GradientFlow": "explanations.gradient_flow",
    "gradient_flow": "explanations.gradient_flow",
    "MemoryReport": "explanations.memory",
    "memory": "explanations.memory",
    "Growth": "explanations.growth",
    "growth": "explanations.growth",
    "SecondBackward": "explanations.second_backward",
    "second_backward": "explanations.second_backward",
    "GradientAliasing": "explanations.aliasing",
    "aliasing": "explanations.aliasing",
    "Leaks": "explanations.leaks",
    "leaks": "explanations.leaks",
    "Updates": "explanations.updates",
    "updates": "explanations.updates",
    "Diagnosis": "explanations.doctor",
    "Doctor": "explanations.doctor",
    "CheckedFunction": "explanations.formulas",
    "Functions": "explanations.formulas",
    "functions": "explanations.formulas",
    "plot_histogram": "explanations.plots",
    "summarize": "statistics",
    "track": "tracking",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
