"""The norms of gradients that nodes have made, for the nodes to which they are given next."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

__all__ = ["RecentNorms"]

_KEPT = 8
"""Gradients that are remembered: what one node makes is given to the next few."""


class RecentNorms:
    """Remembers the norms of the latest gradients, and keeps none of them alive.

    Held by a reference that counts, a gradient would be copied where it can be taken as it is.

    Examples
    --------
    >>> import numpy
    >>> recent, grad = RecentNorms(), numpy.ones(4)
    >>> recent.note(grad, 2.0)
    >>> recent.of(grad), recent.of(grad, version=1), recent.of(numpy.ones(4))
    (2.0, None, None)
    """

    def __init__(self) -> None:
        self._known: deque[tuple[weakref.ref[Any], int, float]] = deque(maxlen=_KEPT)

    def note(self, gradient: Any, norm: float, version: int = 0) -> None:
        """Remember the norm of a gradient.

        Parameters
        ----------
        gradient : object
            Something that a weak reference can refer to.
        version : int
            That of its memory; written since, it has another norm.
        """
        self._known.appendleft((weakref.ref(gradient), version, norm))

    def of(self, gradient: Any, version: int = 0) -> float | None:
        """Return the norm of a gradient, None where it is not among the latest."""
        for known, noted, norm in self._known:
            if known() is gradient:
                return norm if noted == version else None
        return None
