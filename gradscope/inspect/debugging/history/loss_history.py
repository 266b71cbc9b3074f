"""The values of the losses of the latest backwards, read from the variable of which the program called backward()."""

from __future__ import annotations

import ast
from collections import deque
from functools import lru_cache
from types import FrameType
from typing import Any

from ...adapters import Adapter
from ...source.call_sites import fields_of
from ...source.frame_variables import variables_of
from ...source.source_syntax import syntax_tree

__all__ = ["LossHistory", "loss_name"]

_KEPT = 120
"""Backwards that are remembered."""


class LossHistory:
    """Remembers the value of the loss of each backward, where it is a variable and one number."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_KEPT)

    def note(self, adapter: Adapter, frame: FrameType) -> None:
        """Remember the loss of the backward that a function calls; nothing where it has no name or is not one number.

        Parameters
        ----------
        adapter : Adapter
            Knows what a tensor is.
        frame : frame
            Of the function that has called backward().
        """
        name = loss_name(frame.f_code.co_filename, frame.f_lineno)
        value: Any = _bound(frame, name) if name else None
        # A tensor of many ranks would be gathered, which all ranks would have to take part in.
        if adapter.is_tensor(value) and value.numel() == 1 and not hasattr(value, "device_mesh"):
            try:
                self._values.append(float(adapter.to_host(value).reshape(()).real))
            except (RuntimeError, NotImplementedError):  # a tensor without values: on the meta device, or a fake one
                return

    def recent(self) -> tuple[float, ...]:
        """Return the values that are remembered, the oldest first."""
        return tuple(self._values)


@lru_cache(maxsize=256)
def loss_name(filename: str, lineno: int) -> str:
    """Return what a line calls the loss of which it calls backward().

    Parameters
    ----------
    filename : str
        Or the name under which a notebook's cell is known.
    lineno : int
        The line that is running.

    Returns
    -------
    str
        A variable, or attributes of one: of ``loss.backward()``, ``self.loss.backward()``,
        ``accelerator.backward(loss)`` or ``scaler.scale(loss).backward()``; empty for anything else.
    """
    tree = syntax_tree(filename)
    for call in ast.walk(tree) if tree is not None else ():
        if not (isinstance(call, ast.Call) and call.lineno <= lineno <= (call.end_lineno or 0)):
            continue
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            return _dotted(_argument(call) or _argument(call.func.value) or call.func.value)
    return ""


def _argument(node: ast.expr) -> ast.expr | None:
    """Return the first argument of a call; None of anything else."""
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _dotted(node: ast.expr) -> str:
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
