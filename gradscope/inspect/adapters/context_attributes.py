"""What a custom Function has put on its ``ctx`` beside what it saved by ``save_for_backward()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["context_tensors"]

_OWN = {
    "dirty_tensors", "non_differentiable", "s_saved_tensors", "saved_for_forward", "to_save", "v_saved_tensors",
}  # fmt: skip
"""Where a ctx holds what was given to ``save_for_backward()`` and its kin."""


def context_tensors(attributes: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors among the attributes of a ``ctx``, and in its lists, tuples and dictionaries, by their names.

    Examples
    --------
    >>> ctx = {"x": 1.5, "_hidden": 2.5, "both": (3.5, None), "named": {"y": 4.5}}
    >>> list(context_tensors(ctx, lambda value: isinstance(value, float)))
    [('x', 1.5), ('both[0]', 3.5), ("named['y']", 4.5)]
    """
    for name, value in attributes.items():
        if name.startswith("_") or name in _OWN:
            continue
        if is_tensor(value):
            yield name, value
        else:
            yield from ((f"{name}[{key!r}]", part) for key, part in _parts(value) if is_tensor(part))


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    return list(value.items()) if isinstance(value, dict) else ()
