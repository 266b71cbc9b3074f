"""The norms of the gradients that the latest backwards have brought to their leaves."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["NormHistory"]

_KEPT = 120
"""Backwards that are remembered."""

_MOST_REACHED = 100_000
"""Leaves of which it is remembered that they have been reached, before those of long ago are forgotten."""


class NormHistory:
    """Remembers what each backward has brought to its leaves, and keeps no leaf alive.

    A leaf has a number, since its id is that of another once it has died.

    Parameters
    ----------
    kept : int
        How many backwards are remembered.

    Examples
    --------
    >>> import gradscope as gs
    >>> w, b = gs.ones(2), gs.ones(1)
    >>> history = NormHistory()
    >>> history.note([(w, 1.0), (b, 2.0)]), history.note([(w, 0.5), (b, 2.0)]), history.note([(w, 4.0)])
    (True, False, False)
    >>> history.norms([history.number_of(w), history.number_of(b)])
    [(1.0, 0.5, 4.0), (2.0, 2.0)]
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._rows: deque[tuple[tuple[int, ...], tuple[float, ...]]] = deque(maxlen=kept)
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._reached: set[int] = set()
        self._count = 0

    def note(self, norms: Iterable[tuple[Any, float | None]]) -> bool:
        """Remember what a backward has brought to its leaves; nothing of leaves whose norm is not known.

        Returns
        -------
        bool
            Whether there is one among them that no backward has reached before.
        """
        pairs = [(leaf, norm) for leaf, norm in norms if norm is not None]
        if not pairs:
            return False
        leaves, values = tuple([self.number_of(leaf) for leaf, _ in pairs]), tuple([norm for _, norm in pairs])
        before = self._rows[-1][0] if self._rows else ()
        # Training brings the same leaves again and again: their numbers are kept once for all backwards that do.
        self._rows.append((before if leaves == before else leaves, values))
        new = not self._reached.issuperset(leaves)
        if new and len(self._reached) > _MOST_REACHED:  # leaves that are made anew in each iteration
            self._reached = {number for known, _ in self._rows for number in known}
        self._reached.update(leaves)
        return new

    def number_of(self, leaf: Any) -> int:
        """Return the number of a leaf."""
        known = self._numbers.get(id(leaf))
        return self._meet(leaf) if known is None else known[1]

    def norms(self, numbers: Sequence[int], most: int = _KEPT) -> list[tuple[float, ...]]:
        """Return for each leaf, given by its number, its latest norms, the oldest first: at most so many."""
        found: dict[int, list[float]] = {number: [] for number in numbers}
        for leaves, norms in self._rows:
            for leaf, norm in zip(leaves, norms):
                if leaf in found:
                    found[leaf].append(norm)
        return [tuple(found[number][-most:]) for number in numbers]

    def _meet(self, leaf: Any) -> int:
        identity, numbers = id(leaf), self._numbers

        def forget(reference: weakref.ref[Any]) -> None:
            if identity in numbers and numbers[identity][0] is reference:
                del numbers[identity]

        self._count += 1
        numbers[identity] = weakref.ref(leaf, forget), self._count
        return self._count
