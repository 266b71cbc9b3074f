"""Which tensor an error of the program is about: the loss without a graph, the gradient that is None."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ....program_files import is_library_file
from ...adapters import Adapter
from ...records.records import Location
from ...source.call_sites import location_at
from ...source.frame_variables import variables_of
from ...source.source_syntax import syntax_tree
from .detaching_calls import dotted

__all__ = ["RefusedBackward", "gradients_of_none", "leaves_in", "loss_without_graph"]

# What the functions that start a backward call the tensor that they are given.
_GIVEN = ("self", "tensor", "tensors", "outputs")


@dataclass(frozen=True)
class RefusedBackward:
    """A backward that was refused: its tensor does not require grad.

    Attributes
    ----------
    location : Location
        The line that asked.
    frames : list of frame
        The user's, innermost first.
    """

    loss: Any
    location: Location
    frames: list[FrameType]


def _users_steps(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the user's frames that an error has left, innermost first, each with its line."""
    steps = traceback.walk_tb(error.__traceback__)
    return [step for step in steps if not is_library_file(step[0].f_code.co_filename)][::-1]


def loss_without_graph(adapter: Adapter, error: BaseException) -> RefusedBackward | None:
    """Return the tensor whose backward was refused because it does not require grad.

    Parameters
    ----------
    error : BaseException
        What the program has raised.

    Returns
    -------
    RefusedBackward or None
        None for another error.
    """
    if not isinstance(error, RuntimeError) or "does not require grad" not in str(error):
        return None
    users = _users_steps(error)
    if not users:
        return None
    asking, lineno = users[0]
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in frames[frames.index(asking) + 1 :]:
        for tensor in _given_to(adapter, frame):
            return RefusedBackward(tensor, location_at(asking, lineno), [frame for frame, _ in users])
    return None


def _given_to(adapter: Adapter, frame: FrameType) -> Iterable[Any]:
    """Yield the tensors without a graph that a function was given."""
    variables = variables_of(frame)
    for name in _GIVEN:
        value: Any = variables.get(name)
        for item in value if type(value) in (tuple, list) else (value,):
            if adapter.is_tensor(item) and not item.requires_grad:
                yield item


def leaves_in(adapter: Adapter, frames: Iterable[FrameType]) -> list[tuple[str, Any]]:
    """Return the variables of some functions that are leaves which require grad.

    Returns
    -------
    list of (str, Tensor)
        Each leaf once, by its innermost name.
    """
    found: dict[int, tuple[str, Any]] = {}
    for frame in frames:
        for name, value in variables_of(frame).items():
            if adapter.is_tensor(value) and value.requires_grad and adapter.is_leaf(value):
                found.setdefault(id(value), (name, value))
    return list(found.values())


def gradients_of_none(adapter: Adapter, error: BaseException) -> list[tuple[str, Any]]:
    """Return the tensors without a gradient whose ``.grad`` stands in the line that raised because of a None.

    Each comes with the expression that names it in that line.
    """
    if not isinstance(error, (TypeError, AttributeError)) or "NoneType" not in str(error):
        return []
    found: dict[str, Any] = {}
    for frame, lineno in _users_steps(error)[:1]:
        variables = {**frame.f_globals, **variables_of(frame)}
        for name in _with_grad(frame.f_code.co_filename, lineno):
            tensor = _value_of(name, variables)
            if adapter.is_tensor(tensor) and (not adapter.is_leaf(tensor) or adapter.leaf_grad(tensor) is None):
                found[name] = tensor
    return list(found.items())


def _with_grad(filename: str, lineno: int) -> Iterator[str]:
    """Yield what ``.grad`` is asked of in a line: ``'self.weight'``."""
    tree = syntax_tree(filename)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and node.lineno <= lineno <= (node.end_lineno or 0):
            name = dotted(node.value)
            if name:
                yield name


def _value_of(name: str, variables: dict[str, Any]) -> Any:
    first, *attributes = name.split(".")
    value = variables.get(first)
    for attribute in attributes:
        value = getattr(value, attribute, None)
    return value
