"""A backward that has failed: at which node, which line made it, and what is wrong with a custom Function."""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...adapters import Adapter
from ...records.records import Location
from ...source.call_sites import line_of, place
from ...source.source_syntax import syntax_of
from ..explanation import at

__all__ = ["FailedBackward", "arguments_of", "failed_backward", "last_return", "return_lines"]


@dataclass(frozen=True)
class FailedBackward:
    """A backward that has failed.

    Attributes
    ----------
    recorded : Location or None
        The line of the forward pass that made the node.
    location : Location or None
        The line to change: of a custom Function, what its backward returns.
    certain : bool
        Whether this says what is wrong, and not only where.
    """

    node: str
    recorded: Location | None
    location: Location | None
    text: str
    help: str = ""
    certain: bool = False

    def __str__(self) -> str:
        return "\n  ".join(filter(None, [self.text, self.help]))


def failed_backward(adapter: Adapter, error: BaseException) -> FailedBackward | None:
    """Return at which node a backward has failed.

    Returns
    -------
    FailedBackward or None
        None if `error` left no backward, or its node is not known.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][::-1]
    call = adapter.failed_call(error, frames)
    if call is None:
        return None
    name, recorded = adapter.node_name(call.node), adapter.location(call.node)
    function = getattr(type(call.node), "_forward_cls", None)
    message = str(error)
    if function is None or not any(mark in message for mark in _RETURNED):
        text = (
            f"the backward failed at {name}, recorded{at(recorded)}" if recorded else f"the backward failed at {name}"
        )
        return FailedBackward(name, recorded, recorded, text)
    returns = last_return(function.backward)
    takes = arguments_of(function)
    what = message.partition("\n")[0].partition(f"{name} ")[2] or message.partition("\n")[0]
    what += "; it has no return statement" if return_lines(function.backward) == [] else ""
    used = "" if recorded is None else f"; it was used at {place(recorded)}"
    text = f"{function.__name__}.backward {what}{at(returns)}{used}"
    if _RETURNED[0] in message:
        way_out = f"forward() takes {', '.join(takes)}: return as many, None for what has no gradient."
    else:
        way_out = "A gradient has the shape of its input: sum over what forward() has broadcast, or transpose it."
    return FailedBackward(name, recorded, returns or recorded, text, way_out, certain=True)


# The words of both frameworks for wrong gradients of a custom Function.
_RETURNED = ("returned an incorrect number of gradients", "returned an invalid gradient")


def arguments_of(function: Any) -> Sequence[str]:
    """Return the arguments of a Function's forward, as many as its backward has to return gradients for."""
    names = list(inspect.signature(function.forward).parameters)
    return names[1:] if names[:1] == ["ctx"] else names


def last_return(function: Any) -> Location | None:
    """Return the last line of a function that returns something, of a decorated one that of the function inside."""
    lines = return_lines(function)
    code = inspect.unwrap(function).__code__ if lines else None
    return None if code is None or not lines else line_of(code.co_filename, max(lines), code.co_qualname)


def return_lines(function: Any) -> list[int] | None:
    """Return the lines of a function's return statements, None where its source is not there."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    body = None if code is None else syntax_of(code)
    return None if body is None else [part.lineno for part in ast.walk(body) if isinstance(part, ast.Return)]
