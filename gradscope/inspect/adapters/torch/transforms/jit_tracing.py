"""torch.jit.trace runs a program once and keeps each operator with its line: nothing of ours may stand between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

__all__ = ["TRACED", "around_tracing"]

TRACED = "what torch.jit.trace runs in order to trace it"

# Each runs a function under a tracer: torch.jit.trace, trace_module and the exporter to ONNX come to one of them.
_TRACERS = (
    (torch._C, "_create_graph_by_tracing"),
    (torch._C, "_create_function_from_trace"),
    (torch._C, "_create_function_from_trace_with_dict"),
    (torch._C.ScriptModule, "_create_method_from_trace"),
    (torch._C.ScriptModule, "_create_method_from_trace_with_dict"),
)


def around_tracing(pause: Callable[[], AbstractContextManager[Any]]) -> Callable[[], None]:
    """Have every tracing run inside a context; return what undoes it.

    Parameters
    ----------
    pause : callable
        Returns the context.
    """
    undo = [_wrap(owner, name, pause) for owner, name in _TRACERS if hasattr(owner, name)]

    def restore() -> None:
        for step in undo:
            step()

    return restore


def _wrap(owner: Any, name: str, pause: Callable[[], AbstractContextManager[Any]]) -> Callable[[], None]:
    original = getattr(owner, name)

    def trace(*args: Any, **kwargs: Any) -> Any:
        with pause():
            return original(*args, **kwargs)

    setattr(owner, name, trace)

    def restore() -> None:
        # A function by which other code has replaced it meanwhile stays.
        if getattr(owner, name) is trace:
            setattr(owner, name, original)

    return restore
