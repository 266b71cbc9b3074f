"""Which custom Function a wrong gradient goes through, and whether its backward is wrong by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

__all__ = ["backward_of", "functions_behind", "place_of"]


def backward_of(function: Any) -> str:
    """Return the name and place of the backward of a custom Function, given its ``apply``; empty for anything else."""
    kind: Any = getattr(function, "__self__", None)
    code = getattr(inspect.unwrap(getattr(kind, "backward", None)), "__code__", None)  # type: ignore[arg-type]
    if code is None or getattr(function, "__name__", "") != "apply":
        return ""
    return f"{kind.__name__}.backward() at {place_of(code)}"


def place_of(code: CodeType) -> str:
    """Return ``file:line`` of a function's code, from where the program was started."""
    # The instruments load when a gradient is wrong.
    from ..inspect.source.call_sites import line_of, place
    from ..inspect.source.source_syntax import definition_line

    return place(line_of(code.co_filename, definition_line(code), code.co_name))


def functions_behind(function: Callable[..., Any], inputs: Sequence[Any]) -> list[str]:
    """Return a line for each custom Function called that is wrong by itself; if none is, for each that is called."""
    # The instruments load when a gradient is wrong.
    from ..inspect.diagnosis.functions.custom_derivatives import functions
    from ..inspect.source.call_sites import place

    with functions() as watch:
        function(*inputs)
    named = [(f"{found.name}.backward() at {place(found.location)}", found) for found in watch.result.checked]
    wrong = [f"{name} is wrong by itself" for name, found in named if found.verdict == "wrong"]
    return wrong or [f"it goes through {name}" for name, _ in named]
