"""Reference cycles through the graph, which keep it until the garbage collector runs, or for ever."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from ...adapters import Adapter
from ...records.object_search import living
from ...records.records import Location
from ...source.call_sites import fields_of, line_of
from ...source.source_syntax import syntax_tree
from ..explanation import at

__all__ = ["GraphCycle", "have_graphs", "kept_own_outputs", "tied_gradients"]


@dataclass(frozen=True)
class GraphCycle:
    """A cycle that keeps a graph alive.

    Attributes
    ----------
    text : str
        Who refers to whom.
    location : Location or None
        The line that ties it.
    """

    text: str
    location: Location | None
    help: str

    def __str__(self) -> str:
        return f"{self.text}{at(self.location)}\n  {self.help}"


def kept_own_outputs(adapter: Adapter, node: Any) -> list[GraphCycle]:
    """Return the attributes of a custom Function's node that hold what it has returned."""
    function = getattr(type(node), "_forward_cls", None)
    if function is None:
        return []
    found = []
    for name, value in list(fields_of(node).items()):
        if not adapter.is_tensor(value) or not value.requires_grad or adapter.is_leaf(value) is not False:
            continue
        root = adapter.root(value)
        if root is not None and adapter.key(root[0]) == adapter.key(node):
            text = f"`{name}` on the ctx of {function.__name__} is its own result, and keeps the graph that keeps it"
            location = _stored_at(function, name) or adapter.location(node)
            found.append(GraphCycle(text, location, "Use ctx.save_for_backward(), which makes no cycle."))
    return found


def _stored_at(function: type, name: str) -> Location | None:
    """Return the line of a Function that stores an attribute on its ctx."""
    try:
        filename, (lines, first) = inspect.getfile(function), inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    tree = syntax_tree(filename)
    for node in () if tree is None else ast.walk(tree):
        stores = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == name
        if stores and first <= node.lineno < first + len(lines):  # type: ignore[attr-defined]
            return line_of(filename, node.lineno, f"{function.__qualname__}.forward")  # type: ignore[attr-defined]
    return None


def have_graphs(adapter: Adapter) -> bool:
    """Return whether a parameter holds a gradient that has a graph, as ``backward(create_graph=True)`` leaves it."""
    leaves = (t for t in living(adapter.tensor_classes()) if adapter.is_parameter(t) and adapter.is_leaf(t))
    return any(grad is not None and grad.requires_grad for grad in map(adapter.leaf_grad, leaves))


def tied_gradients(location: Location | None) -> GraphCycle:
    """Return the cycle that ``backward(create_graph=True)`` makes.

    Parameters
    ----------
    location : Location or None
        Where it was called.
    """
    text = "the gradients in .grad have a graph, which leads to the parameters again: backward(create_graph=True)"
    way_out = "Use autograd.grad(create_graph=True), or set .grad to None when the second backward is done."
    return GraphCycle(text, location, way_out)
