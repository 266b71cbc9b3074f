"""Which iterations go where a recording has become too large: the newest stay, and those around what went wrong."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set

__all__ = ["around_changes", "iterations_to_leave_out"]


def iterations_to_leave_out(iterations: Sequence[int], special: Set[int], numbers: Mapping[int, int]) -> list[int]:
    """Return iterations that go next: up to a fourth of the older ones, those first whose numbers 2 divides least.

    So the newest quarter stays whole, and of what is before every second, fourth or 2**n-th stays, evenly over all that
    has run. The numbers alone decide, so that ranks which let iterations go at other moments keep the same ones.

    Parameters
    ----------
    iterations : sequence of int
        In order.
    special : set of int
        Those that go only where no other is left to go.
    numbers : mapping of int to int
        Which of its run each is, from 1.

    Examples
    --------
    >>> numbers = {iteration: iteration for iteration in range(1, 17)}
    >>> iterations_to_leave_out(range(1, 17), set(), numbers)
    [1, 3, 5]
    >>> iterations_to_leave_out([2, 4, 6, 8, 10, 12, 14, 16], {2}, numbers)
    [6]
    >>> iterations_to_leave_out([1, 2], set(), numbers)
    []
    """
    older = iterations[: len(iterations) - max(2, len(iterations) // 4)]
    candidates = [iteration for iteration in older if iteration not in special] or list(older)
    order = sorted(candidates, key=lambda iteration: (_power_of_two_in(numbers[iteration]), iteration))
    return order[: max(1, len(candidates) // 4)]


def _power_of_two_in(number: int) -> int:
    """Return the largest power of two that divides a number; 0 of 0, which no iteration has."""
    return number & -number


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
