"""PyTorch's compiler, which is not there: programs that ask for it run as they are.

Examples
--------
>>> import gradscope as gs
>>> gs.compiler.is_compiling()
False
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .runtime.settings import is_warn_always_enabled
from .runtime.user_warnings import warn

__all__ = ["allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "reset"]

_state = {"told": False}


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a module or function as it is, and warn of that once in a program; without one, return a decorator.

    Operators are run one by one, as they stand in the program: that is what the debugger looks at.

    Parameters
    ----------
    fullgraph, dynamic, backend, mode, options, disable
        Taken for PyTorch's sake.

    See Also
    --------
    gradscope.compiler.disable : leaves a function as it is, too.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> model = gs.nn.Linear(2, 1)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gs.compile(model) is model
    True
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if not disable and (is_warn_always_enabled() or not _state["told"]):
        _state["told"] = True
        warn("gradscope.compile() compiles nothing: what it was given runs as it is.")
    return model


def is_compiling() -> bool:
    """Return whether a compiler looks at the program: False."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function as it is; alone, return a decorator."""
    return disable if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return a function as it is."""
    return fn


def reset() -> None:
    """Forget what was compiled: nothing."""


def cudagraph_mark_step_begin() -> None:
    """Mark the begin of a step for CUDA graphs, of which there are none."""
