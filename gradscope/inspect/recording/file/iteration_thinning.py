"""Which iterations go where a recording has become too large: the newest stay, and those around what went wrong."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set

__all__ = ["around_changes", "iterations_to_leave_out"]


def iterations_to_leave_out(iterations: Sequence[int], special: Set[int]) -> list[int]:
    """Return iterations that go next: up to a fourth of the older ones, those that have others closest to them.

    So the newest quarter stays whole, and what is before stands evenly over all that has run.

    Parameters
    ----------
    iterations : sequence of int
        In order.
    special : set of int
        Those that go only where no other is left to go.

    Examples
    --------
    >>> iterations_to_leave_out(range(16), set())
    [1, 3, 5]
    >>> iterations_to_leave_out(range(16), {1, 2, 3})
    [4, 6]
    >>> iterations_to_leave_out([0, 1], set())
    []
    """
    places = range(len(iterations) - max(2, len(iterations) // 4))
    older = [at for at in places if iterations[at] not in special] or list(places)
    gaps = sorted(
        (iterations[at + 1] - iterations[max(at - 1, 0)], iterations[at]) for at in older[len(older) > 1 :: 2]
    )
    return [number for _, number in gaps[: (len(gaps) + 1) // 2]]


def around_changes(iterations: Sequence[int], facts: Mapping[int, Set[Hashable]]) -> set[int]:
    """Return the iterations in which something happened that had not in the one before, and those beside them.

    Parameters
    ----------
    iterations : sequence of int
        In order.
    facts : mapping of int to set
        What happened in an iteration, such as ``{"bad"}``; nothing in most.

    Examples
    --------
    >>> sorted(around_changes(range(9), {3: {"bad"}, 4: {"bad"}, 5: {"bad"}, 6: {"bad", "failed"}}))
    [2, 3, 4, 5, 6, 7]
    """
    found: set[int] = set()
    before: Set[Hashable] = frozenset()
    for at, number in enumerate(iterations):
        now = facts.get(number, frozenset())
        if now and now != before:
            found.update(iterations[max(at - 1, 0) : at + 2])
        before = now
    return found
