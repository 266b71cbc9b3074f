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
>>> session.wait().value, session.nodes[session.current].name
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
    from .breakpoints import Breakpoint, BreakpointError
    from .debug_call import debug
    from .debugger import Debugger, SessionError
    from .graph_model import execution_order, graph
    from .statistics import summarize
    from .tracking import track

__all__ = [
    "Debugger",
    "SessionError",
    "debug",
    "Breakpoint",
    "BreakpointError",
    "graph",
    "execution_order",
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
    "Breakpoint": "breakpoints",
    "BreakpointError": "breakpoints",
    "Debugger": "debugger",
    "SessionError": "debugger",
    "debug": "debug_call",
    "execution_order": "graph_model",
    "graph": "graph_model",
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
