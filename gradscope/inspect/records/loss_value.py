"""The value of the loss of a backward, read from the variable of which the program called backward()."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import FrameType
from typing import Any

from ..adapters import Adapter
from ..source.call_sites import fields_of
from ..source.frame_variables import variables_of
from ..source.source_syntax import syntax_tree

__all__ = ["loss_names", "loss_value"]


def loss_value(adapter: Adapter, frame: FrameType, line: int | None = None, *, waits: bool = True) -> float | None:
    """Return the loss of the backward that a function calls; None where it has no name or is not one number.

    Parameters
    ----------
    adapter : Adapter
        Knows what a tensor is.
    frame : frame
        Of the function that has called backward().
    line : int, optional
        Of the call, where that is not what runs now.
    waits : bool
        Whether to wait for a device, whose loss is not known otherwise.
    """
    called = frame.f_lineno if line is None else line
    bound = (_bound(frame, name) for name in loss_names(frame.f_code.co_filename, called))
    value: Any = next(filter(adapter.is_tensor, bound), None)
    # A tensor of many ranks would be gathered, which all ranks would have to take part in.
    if value is None or value.numel() != 1 or hasattr(value, "device_mesh"):
        return None
    if not waits and adapter.spec(value).device != "cpu":
        return None
    number = adapter.to_host(value)
    return float(number.real.item()) if number.size else None  # of a tensor on the meta device, or a fake one


@lru_cache(maxsize=256)
def loss_names(filename: str, lineno: int) -> tuple[str, ...]:
    """Return what a line may call the loss of which it calls backward(); it is the first that is a tensor.

    Parameters
    ----------
    filename : str
        Or the name under which a notebook's cell is known.
    lineno : int
        The line that is running.

    Returns
    -------
    tuple of str
        Variables, or attributes of them: of ``loss.backward()``, ``self.loss.backward()`` or
        ``scaler.scale(loss).backward()`` one, of ``accelerator.backward(loss)`` two; none for anything else.
    """
    tree = syntax_tree(filename)
    for call in ast.walk(tree) if tree is not None else ():
        if not (isinstance(call, ast.Call) and call.lineno <= lineno <= (call.end_lineno or 0)):
            continue
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            owner = _argument(call.func.value) or call.func.value
            names = _dotted(owner), _dotted(_argument(call))
            return tuple(filter(None, names))
    return ()


def _argument(node: ast.expr) -> ast.expr | None:
    """Return the first argument of a call; None of anything else."""
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _dotted(node: ast.expr | None) -> str:
    """Return a name with its attributes as it is written; empty for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _bound(frame: FrameType, name: str) -> Any:
    """Return what a name is bound to in a frame, None where it is to nothing; no code of the program runs."""
    first, *attributes = name.split(".")
    local = variables_of(frame)
    value = local[first] if first in local else frame.f_globals.get(first)
    for attribute in attributes:
        value = fields_of(value).get(attribute)
    return value
