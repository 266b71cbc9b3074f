"""Which custom Function a wrong gradient goes through, and whether its backward is wrong by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from ..autograd.context import FunctionNode
from ..autograd.gradcheck import gradcheck
from ..runtime import events
from ..runtime.tensor import Tensor

__all__ = ["backward_of", "functions_behind", "place_of"]


class _Call(NamedTuple):
    kind: Any
    inputs: tuple[Tensor, ...]


def backward_of(function: Any) -> str:
    """Return the name and place of the backward of a custom Function, given its ``apply``; empty for anything else.

    Parameters
    ----------
    function : callable

    Returns
    -------
    str
    """
    kind: Any = getattr(function, "__self__", None)
    code = getattr(getattr(kind, "backward", None), "__code__", None)
    if code is None or getattr(function, "__name__", "") != "apply":
        return ""
    return f"{kind.__name__}.backward() at {place_of(code)}"


def place_of(code: CodeType) -> str:
    """Return ``file:line`` of a function's code, from where the program was started.

    Parameters
    ----------
    code : code

    Returns
    -------
    str
    """
    from ..inspect.places import place
    from ..inspect.records import Location
    from ..inspect.syntax import definition_line

    return place(Location(code.co_filename, definition_line(code), code.co_name, ""))


def functions_behind(function: Callable[..., Any], inputs: Sequence[Any], **options: Any) -> list[str]:
    """Return a line for each custom Function that is called, those with a wrong gradient first.

    Parameters
    ----------
    function : callable
    inputs : sequence
    **options
        As for :func:`gradscope.autograd.gradcheck`.

    Returns
    -------
    list of str

    Notes
    -----
    A Function is checked by itself, at the inputs of its first call, if all its arguments are tensors: of others
    nobody has kept what they were.
    """
    calls: dict[Any, _Call] = {}

    def ran(event: events.Event) -> None:
        if isinstance(event, events.OperatorRecorded) and isinstance(event.node, FunctionNode):
            kind = type(event.node)._forward_cls
            calls.setdefault(kind, _Call(kind, tuple(_copy(t) for t in event.inputs)))

    with events.subscribe(ran, events.OperatorRecorded):
        function(*inputs)
    wrong, possible = [], []
    for call in calls.values():
        name = backward_of(call.kind.apply)
        if name and _is_wrong(call, options):
            wrong.append(f"{name} is wrong by itself")
        elif name:
            possible.append(f"it goes through {name}")
    return wrong or possible


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _is_wrong(call: _Call, options: dict[str, Any]) -> bool:
    try:
        return not gradcheck(call.kind.apply, call.inputs, raise_exception=False, **options)
    except Exception:  # it has other arguments too, or takes no such inputs alone
        return False
