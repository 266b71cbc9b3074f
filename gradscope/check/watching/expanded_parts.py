"""Which part of an expanded tensor an index means: all that lies at the same addresses changes with it."""

from __future__ import annotations

from typing import Any

import numpy

from ...inspect.adapters import Adapter

__all__ = ["expanded_part"]


def expanded_part(adapter: Adapter, tensor: Any, index: Any) -> tuple[int, int] | None:
    """Return the first expanded dimension of which an index leaves places out, and how many it takes.

    Returns
    -------
    tuple of int, or None
        None where it takes all of them, or nothing.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> rows = gs.zeros(3).expand(4, 3)
    >>> [expanded_part(NativeAdapter(), rows, index) for index in (0, slice(1, 3), slice(None), (..., 1))]
    [(0, 1), (0, 2), None, None]
    """
    shape = tuple(tensor.shape)
    steps = tensor.stride()
    chosen = _on_host(adapter, index)
    for dim, size in enumerate(shape):
        if size < 2 or steps[dim]:
            continue
        places = numpy.arange(size).reshape([-1 if at == dim else 1 for at in range(len(shape))])
        try:
            taken = numpy.unique(_once(numpy.broadcast_to(places, shape)[chosen]))
        except (IndexError, TypeError, ValueError):  # an index that NumPy reads in another way
            return None
        if 0 < taken.size < size:
            return dim, int(taken.size)
    return None


def _on_host(adapter: Adapter, index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_on_host(adapter, item) for item in index)
    if isinstance(index, list):
        return [_on_host(adapter, item) for item in index]
    return adapter.to_host(index) if adapter.is_tensor(index) else index


def _once(places: Any) -> Any:
    """Return a view without the repetitions that have no memory of their own."""
    return places[tuple(slice(0, 1) if not stride else slice(None) for stride in places.strides)]
