"""TorchScript, which is not there: what asks about it is answered, what needs it is refused.

Examples
--------
>>> import gradscope as gs
>>> gs.jit.is_scripting()
False
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["export", "freeze", "ignore", "is_scripting", "is_tracing", "load", "save", "script", "trace", "unused"]


def is_scripting() -> bool:
    """Return whether the code runs as TorchScript: False."""
    return False


def is_tracing() -> bool:
    """Return whether the code is traced: False."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function as it is; with options, return a decorator."""
    return drop if callable(drop) else (lambda fn: fn)


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as it is."""
    return fn


unused = export


def _refuse(name: str, way_out: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"gradscope.jit.{name}() is not there: gradscope has no TorchScript\n{way_out}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise NotImplementedError: there is no TorchScript."
    return refuse


script = _refuse("script", "Call the module or function itself.")
trace = _refuse("trace", "Call the module or function itself.")
freeze = _refuse("freeze", "Call the module itself, after eval().")
load = _refuse("load", "Save the state_dict() of the module with torch.save(), and read it with gradscope.load().")
save = _refuse("save", "Save the state_dict() of the module with gradscope.save().")
