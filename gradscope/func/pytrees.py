"""Dicts, lists and tuples of tensors, nested as they like: pytrees, whose leaves are all else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

__all__ = ["described", "filled", "is_leaf", "leaves", "mapped", "same_form"]


def is_leaf(tree: Any) -> bool:
    """Whether a value is no container."""
    return not isinstance(tree, (dict, list, tuple))


def children(tree: Any) -> list[Any]:
    """Return what a container holds, in order."""
    return list(tree.values()) if isinstance(tree, dict) else list(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves, from left to right."""
    if is_leaf(tree):
        yield tree
        return
    for child in children(tree):
        yield from leaves(child)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with every leaf replaced by what `function` returns for it."""
    if is_leaf(tree):
        return function(tree)
    return rebuilt(tree, [mapped(function, child) for child in children(tree)])


def rebuilt(tree: Any, values: list[Any]) -> Any:
    """Return a container of the kind and the keys of `tree` that holds `values`."""
    if isinstance(tree, dict):
        found = copy(tree)  # a defaultdict has more than its items
        found.update(zip(tree, values, strict=True))
        return found
    return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)


def filled(tree: Any, values: Iterable[Any]) -> Any:
    """Return the tree with `values` for its leaves."""
    source = iter(values)
    return mapped(lambda leaf: next(source), tree)


def same_form(one: Any, other: Any) -> bool:
    """Whether two trees differ in their leaves only."""
    if is_leaf(one) or is_leaf(other):
        return is_leaf(one) and is_leaf(other)
    if type(one) is not type(other) or len(one) != len(other):
        return False
    if isinstance(one, dict) and list(one) != list(other):
        return False
    return all(same_form(a, b) for a, b in zip(children(one), children(other), strict=True))


def described(tree: Any) -> str:
    """Return a tree's form as text, a star for each leaf."""
    if is_leaf(tree):
        return "*"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {described(value)}" for key, value in tree.items()) + "}"
    inside = ", ".join(map(described, tree))
    return f"[{inside}]" if isinstance(tree, list) else f"({inside}{',' * (len(tree) == 1)})"
