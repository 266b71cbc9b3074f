"""Optimizers that never step, while the gradients of what they hold are computed and cleared."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...output.number_format import count
from ...records.optimizer_steps import held_by, living_optimizers
from ..finding_limits import Limits

__all__ = ["IdleOptimizer", "IdleOptimizers"]

_SHOWN = 4
# Each search goes through all living objects; where every leaf is stepped, there is no search.
_MOST_LOOKS = 8


@dataclass(frozen=True)
class IdleOptimizer:
    """An optimizer that has never stepped.

    Attributes
    ----------
    kind : str
        Its class.
    names : tuple of str
        What it holds and what got gradients, which were cleared; empty strings for leaves without a name.
    times : int
        How often they were cleared.
    """

    kind: str
    names: tuple[str, ...]
    times: int
    location = None

    def __str__(self) -> str:
        shown = ", ".join(f"`{name}`" if name else "a leaf" for name in self.names[:_SHOWN])
        more = f" and {len(self.names) - _SHOWN} more" if len(self.names) > _SHOWN else ""
        return (
            f"{self.kind}, which holds {shown}{more}, has never stepped; their gradients were cleared "
            f"{count(self.times, 'time')}\n  Call optimizer.step() after backward(), before zero_grad()."
        )


@dataclass
class _UnsteppedOptimizer:
    """An optimizer that has not stepped so far."""

    reference: weakref.ref[Any]
    kind: str
    held: list[tuple[int, str]]


class IdleOptimizers:
    """Collects the optimizers that have not stepped, and how often the gradients of what they hold were cleared.

    Parameters
    ----------
    least : int
        How often, for an optimizer to be one that was forgotten.
    """

    def __init__(self, least: int = Limits.cleared) -> None:
        self._least = least
        self._cleared: dict[int, int] = {}
        self._versions: dict[int, int] = {}
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        self._changed: set[int] = set()
        # The ids of leaves whose gradients were cleared again and again, with nothing done.
        self._wasted: set[int] = set()
        self._waiting: dict[int, _UnsteppedOptimizer] = {}
        self._backwards = 0
        self._next_look = 0
        self._looks = 0

    def filled(self, leaf: Any) -> None:
        """Note that a leaf has a gradient for the first time: its id may have been another's."""
        self._cleared[id(leaf)] = 0
        self._versions[id(leaf)] = leaf._version
        self._changed.discard(id(leaf))
        self._wasted.discard(id(leaf))

    def cleared(self, leaf: Any) -> None:
        """Note that the gradient of a leaf has been cleared, and that nothing had been done with it but to clip it."""
        self._cleared[id(leaf)] += 1
        if leaf._version != self._versions[id(leaf)]:  # a compiled step, or the program's own line, has updated it
            self._changed.add(id(leaf))
        if self._cleared[id(leaf)] >= self._least:
            self._wasted.add(id(leaf))

    def ran(self, names: Mapping[int, str]) -> None:
        """Note that a backward has run; look for optimizers where gradients go to waste, while the program has them."""
        self._backwards += 1
        if self._looks >= _MOST_LOOKS or self._backwards < self._next_look or self._wasted <= self._changed:
            return
        self._looks += 1
        self._next_look = 2 * self._backwards
        for optimizer in living_optimizers():
            if optimizer not in self._stepped:
                held = [(id(leaf), names.get(id(leaf), "")) for leaf in held_by(optimizer)]
                self._waiting[id(optimizer)] = _UnsteppedOptimizer(
                    weakref.ref(optimizer), type(optimizer).__name__, held
                )

    def steps(self, optimizer: Any) -> None:
        """Note that an optimizer steps."""
        if optimizer not in self._stepped:
            self._stepped.add(optimizer)
            self._waiting.pop(id(optimizer), None)
        self._changed.update(map(id, held_by(optimizer)))

    def found(self) -> Iterable[IdleOptimizer]:
        """Yield the optimizers that should have stepped."""
        for waiting in self._waiting.values():
            idle = [(self._cleared.get(i, 0), name) for i, name in waiting.held if i not in self._changed]
            wasted = [(times, name) for times, name in idle if times >= self._least]
            if wasted:
                yield IdleOptimizer(waiting.kind, tuple(name for _, name in wasted), max(wasted)[0])
