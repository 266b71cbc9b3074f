"""Comparison with the same node in the iteration before: ``last.norm`` and ``changed(norm)`` in conditions.

A node lives for one iteration. What makes two nodes the same is where their backward was called, the operator, the
module or parameter, the line, and how many of that kind came before in their backward.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy

from ...records.records import TensorSummary

__all__ = ["Iterations", "LastIteration"]

_NUMBERS = ("norm", "min", "max", "mean", "std", "zeros", "nans", "infs", "numel")


class LastIteration:
    """The first incoming gradient of the same node in the iteration before, in numbers.

    False, and every number NaN, where there was none: ``norm > 2 * last.norm`` is then false.
    """

    def __init__(self, summary: TensorSummary | None) -> None:
        self._summary = summary

    def __getattr__(self, name: str) -> Any:
        if name not in _NUMBERS:
            raise AttributeError(f"`last` has no {name!r}; it has {', '.join(_NUMBERS)}")
        value = getattr(self._summary, name) if self._summary is not None else None
        return float("nan") if value is None else value

    def __bool__(self) -> bool:
        return self._summary is not None

    def __repr__(self) -> str:
        return f"<last: norm {self.norm:.4g}>" if self else "<last: nothing>"


class Iterations:
    """Counts backwards by the line that calls them, and remembers what their nodes were like."""

    def __init__(self) -> None:
        self._rounds: dict[str, int] = {}
        self._before: dict[Hashable, TensorSummary | None] = {}
        self._now: dict[str, dict[Hashable, TensorSummary | None]] = {}
        self._values: dict[Hashable, Any] = {}

    def count(self, site: str) -> int:
        """Return how many backwards have been called at `site`, with this one."""
        self._rounds[site] = number = self._rounds.get(site, 0) + 1
        return number

    def ended(self, site: str) -> None:
        """Let a backward called at `site` be the last one."""
        now = self._now.pop(site, None)
        if now is not None:
            self._before = {key: value for key, value in self._before.items() if key[0] != site}  # type: ignore[index]
            self._before.update(now)

    def identity(self, site: str, facts: Any, counts: dict[Hashable, int]) -> Hashable:
        """Return what the node has in common with itself in other iterations; `counts` is of its backward."""
        place = facts.location
        kind = (site, facts.name, facts.module, facts.parameter, None if place is None else str(place))
        counts[kind] = number = counts.get(kind, 0) + 1
        return (*kind, number)

    def note(self, site: str, identity: Hashable, summary: TensorSummary | None) -> None:
        """Remember a node of the iteration that runs."""
        self._now.setdefault(site, {})[identity] = summary

    def last(self, identity: Hashable) -> LastIteration:
        """Return the node in the iteration before."""
        return LastIteration(self._before.get(identity))

    def changed(self, asker: Hashable, identity: Hashable) -> Callable[[Any], bool]:
        """Return the function ``changed`` for one evaluation of one expression at a node."""
        calls = 0

        def changed(value: Any) -> bool:
            """Whether a value is another than in the iteration before; false the first time."""
            nonlocal calls
            calls += 1
            key = (asker, identity, calls)
            known = key in self._values
            before, self._values[key] = self._values.get(key), numpy.array(value)
            return known and not _same(before, self._values[key])

        return changed


def _same(one: Any, two: Any) -> bool:
    if one.shape != two.shape:
        return False
    numbers = one.dtype.kind in "fc" and two.dtype.kind in "fc"
    return bool(numpy.array_equal(one, two, equal_nan=numbers))
