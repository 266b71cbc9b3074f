"""The norms of gradients that nodes have made, for the nodes to which they are given next."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["RecentNorms"]

_KEPT = 16
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
        self._known: dict[int, tuple[weakref.ref[Any], int, float]] = {}  # by identity, the oldest first

    def note(self, gradient: Any, norm: float, version: int = 0) -> None:
        """Remember the norm of a gradient.

        Parameters
        ----------
        gradient : object
            Something that a weak reference can refer to.
        version : int
            That of its memory; written since, it has another norm.
        """
        known, identity = self._known, id(gradient)
        known.pop(identity, None)  # that of one which has died, perhaps
        known[identity] = weakref.ref(gradient), version, norm
        if len(known) > _KEPT:
            del known[next(iter(known))]

    def of(self, gradient: Any, version: int = 0) -> float | None:
        """Return the norm of a gradient, None where it is not among the latest."""
        known = self._known.get(id(gradient))
        if known is None or known[1] != version or known[0]() is not gradient:
            return None
        return known[2]
