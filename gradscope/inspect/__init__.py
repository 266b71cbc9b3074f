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

from .records.records import (
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
    from .debugging.history.history import HistoryPolicy
    from .debugging.session.debug_call import debug
    from .debugging.session.debugger import Debugger, SessionError
    from .debugging.session.session_records import ParameterChange, TaskRecord, ThreadRecord, WatchRecord, WhatIf
    from .debugging.session.set_trace import post_mortem, set_trace
    from .debugging.stops.breakpoints import Breakpoint, BreakpointError
    from .diagnosis.doctor import Diagnosis, Doctor
    from .diagnosis.flow.gradient_flow import GradientFlow, gradient_flow
    from .diagnosis.functions.custom_derivatives import CheckedFunction, Functions, functions
    from .diagnosis.functions.second_backward import SecondBackward, second_backward
    from .diagnosis.memory.gradient_aliasing import GradientAliasing, aliasing
    from .diagnosis.memory.graph_growth import Growth, growth
    from .diagnosis.memory.graph_memory import MemoryReport, memory
    from .diagnosis.memory.tensor_leaks import Leaks, leaks
    from .diagnosis.nan.nan_origin import NanOrigin, nan_origin, watch_nan
    from .diagnosis.no_gradient.dataflow_ledger import Ledger, ledger
    from .diagnosis.no_gradient.no_grad_records import GradientReport, NoGradient
    from .diagnosis.no_gradient.why_no_grad import why_no_grad
    from .diagnosis.optimizers.optimizer_updates import Updates, updates
    from .diagnosis.plots import plot_histogram
    from .graphs.folding import fold, fold_to_fit, unfold
    from .graphs.formats.graph_files import render_graph, write_graph
    from .graphs.graph_difference import GraphDifference, graph_difference
    from .graphs.graph_model import BackwardGraph, annotate, execution_order, graph, graph_of
    from .graphs.graph_paths import count_paths, dominators, paths, shortest_path
    from .graphs.graph_statistics import GraphStatistics, graph_statistics
    from .graphs.node_selection import NodeNotFoundError, find_node, subgraph
    from .recording.file.reader import Recording, open_recording
    from .recording.file.schema import RecordingError
    from .recording.recorder.recorder import Recorder, record
    from .recording.reports.recording_difference import Difference, difference
    from .records.module_tracking import track
    from .records.tensor_statistics import summarize

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
    "Breakpoint": "debugging.stops.breakpoints",
    "BreakpointError": "debugging.stops.breakpoints",
    "Debugger": "debugging.session.debugger",
    "SessionError": "debugging.session.debugger",
    "debug": "debugging.session.debug_call",
    "HistoryPolicy": "debugging.history.history",
    "ParameterChange": "debugging.session.session_records",
    "TaskRecord": "debugging.session.session_records",
    "ThreadRecord": "debugging.session.session_records",
    "WatchRecord": "debugging.session.session_records",
    "WhatIf": "debugging.session.session_records",
    "post_mortem": "debugging.session.set_trace",
    "set_trace": "debugging.session.set_trace",
    "BackwardGraph": "graphs.graph_model",
    "annotate": "graphs.graph_model",
    "execution_order": "graphs.graph_model",
    "fold": "graphs.folding",
    "fold_to_fit": "graphs.folding",
    "unfold": "graphs.folding",
    "graph": "graphs.graph_model",
    "render_graph": "graphs.formats.graph_files",
    "write_graph": "graphs.formats.graph_files",
    "GraphStatistics": "graphs.graph_statistics",
    "graph_statistics": "graphs.graph_statistics",
    "GraphDifference": "graphs.graph_difference",
    "graph_difference": "graphs.graph_difference",
    "count_paths": "graphs.graph_paths",
    "dominators": "graphs.graph_paths",
    "paths": "graphs.graph_paths",
    "shortest_path": "graphs.graph_paths",
    "NodeNotFoundError": "graphs.node_selection",
    "find_node": "graphs.node_selection",
    "subgraph": "graphs.node_selection",
    "graph_of": "graphs.graph_model",
    "GradientReport": "diagnosis.no_gradient.no_grad_records",
    "NoGradient": "diagnosis.no_gradient.no_grad_records",
    "why_no_grad": "diagnosis.no_gradient.why_no_grad",
    "Ledger": "diagnosis.no_gradient.dataflow_ledger",
    "ledger": "diagnosis.no_gradient.dataflow_ledger",
    "NanOrigin": "diagnosis.nan.nan_origin",
    "nan_origin": "diagnosis.nan.nan_origin",
    "watch_nan": "diagnosis.nan.nan_origin",
    "Difference": "recording.reports.recording_difference",
    "difference": "recording.reports.recording_difference",
    "Recording": "recording.file.reader",
    "open_recording": "recording.file.reader",
    "Recorder": "recording.recorder.recorder",
    "record": "recording.recorder.recorder",
    "RecordingError": "recording.file.schema",
    "GradientFlow": "diagnosis.flow.gradient_flow",
    "gradient_flow": "diagnosis.flow.gradient_flow",
    "MemoryReport": "diagnosis.memory.graph_memory",
    "memory": "diagnosis.memory.graph_memory",
    "Growth": "diagnosis.memory.graph_growth",
    "growth": "diagnosis.memory.graph_growth",
    "SecondBackward": "diagnosis.functions.second_backward",
    "second_backward": "diagnosis.functions.second_backward",
    "GradientAliasing": "diagnosis.memory.gradient_aliasing",
    "aliasing": "diagnosis.memory.gradient_aliasing",
    "Leaks": "diagnosis.memory.tensor_leaks",
    "leaks": "diagnosis.memory.tensor_leaks",
    "Updates": "diagnosis.optimizers.optimizer_updates",
    "updates": "diagnosis.optimizers.optimizer_updates",
    "Diagnosis": "diagnosis.doctor",
    "Doctor": "diagnosis.doctor",
    "CheckedFunction": "diagnosis.functions.custom_derivatives",
    "Functions": "diagnosis.functions.custom_derivatives",
    "functions": "diagnosis.functions.custom_derivatives",
    "plot_histogram": "diagnosis.plots",
    "summarize": "records.tensor_statistics",
    "track": "records.module_tracking",
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
