"""What is known of gradients that nodes have made, for the nodes to which they are given next."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

__all__ = ["MOST_RECENT", "RecentNorms"]

_KEPT = 32
"""Gradients that are remembered at least: what one node makes is given to the next few."""

MOST_RECENT = 64
"""Gradients that are remembered before those of long ago are forgotten: seldom, so that it costs little."""

Known = TypeVar("Known")


class RecentNorms(dict[int, tuple["weakref.ref[Any]", Known]]):
    """Remembers the norms of the latest gradients, or more of each, and keeps none of them alive.

    Held by a reference that counts, a gradient would be copied where it can be taken as it is. By the identity of each
    it has a weak reference to it and what is known, for those that ask at every node.

    Examples
    --------
    >>> import numpy
    >>> recent, grad = RecentNorms(), numpy.ones(4)
    >>> recent.note(grad, 2.0)
    >>> recent.of(grad), recent.of(numpy.ones(4))
    (2.0, None)
    """

    __slots__ = ()

    def note(self, gradient: Any, known: Known) -> None:
        """Remember what is known of a gradient.

        Parameters
        ----------
        gradient : object
            Something that a weak reference can refer to.
        known : object
            Its norm, or what tells besides whether it is still that.
        """
        self[id(gradient)] = weakref.ref(gradient), known  # in the place of one which has died, perhaps
        if len(self) > MOST_RECENT:
            self.forget()

    def forget(self) -> None:
        """Forget the gradients of long ago."""
        for identity in list(self)[:-_KEPT]:
            del self[identity]

    def of(self, gradient: Any) -> Known | None:
        """Return what is known of a gradient, None where it is not among the latest."""
        kept = self.get(id(gradient))
        return None if kept is None or kept[0]() is not gradient else kept[1]
