"""What an editor knows of the ranks of a program: each has its stack and its variables; numbers say whose they are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from ..ranks.rank_group import RankGroup
from ..wire.client import RemoteDebugger
from .stack import Frame, stack_of
from .variables import VariableReferences

__all__ = ["DebuggedRank", "DebuggedRanks"]

_STRIDE = 100_000
"""How far the numbers of two ranks are apart: a program has fewer threads, and its stack fewer frames."""


@dataclass(eq=False)
class DebuggedRank:
    """One rank of a program, or the one process of it.

    Attributes
    ----------
    rank : int
        0 for the one process.
    told : tuple or None
        The stop that the editor has been told of.
    goes_to : str or None
        The reason of its next stop, where the verb knows it better.
    findings : set of (int, str)
        The findings that the editor has been told of, by their backward and title.
    """

    rank: int
    debugger: RemoteDebugger
    variables: VariableReferences
    told: tuple[Any, ...] | None = None
    goes_to: str | None = None
    findings: set[tuple[int, str]] = field(default_factory=set)
    _frames: list[Frame] | None = None

    def moves(self) -> None:
        """Forget where it stood."""
        self.told = self._frames = None
        self.variables.forget()

    def frames(self) -> list[Frame]:
        """Return its stack, read once for each stop."""
        if self._frames is None:
            self._frames = stack_of(self.debugger)
        return self._frames

    def number(self, of_its_own: int) -> int:
        """Return the editor's number for a thread or a frame, which has one of its own in each rank."""
        return self.rank * _STRIDE + of_its_own

    @property
    def followed(self) -> int:
        """The thread that is stopped, or would be."""
        return next((thread.number for thread in self.debugger.threads if thread.followed), 1)


@dataclass
class DebuggedRanks:
    """All ranks of a program; one of them has the editor's attention.

    Attributes
    ----------
    group : RankGroup
        Their debuggers as one.
    here : DebuggedRank
        The one that the editor's last request was about.
    """

    group: RankGroup
    ranks: list[DebuggedRank] = field(init=False)
    here: DebuggedRank = field(init=False)

    def __post_init__(self) -> None:
        numbers = itertools.count(1)
        members = enumerate(self.group.members)
        self.ranks = [DebuggedRank(rank, member, VariableReferences(numbers)) for rank, member in members]
        self.here = self.ranks[0]

    def turn_to(self, asked: dict[str, Any]) -> None:
        """Turn to the rank that a request is about, as the numbers in it say; stay where it has none.

        Raises
        ------
        ValueError
            If there is no such rank.
        """
        number = asked.get("threadId") or asked.get("frameId")
        if number:
            rank = number // _STRIDE
            if not 0 <= rank < len(self.ranks):
                raise ValueError(f"number {number} is of rank {rank}: they are 0 to {len(self.ranks) - 1}")
            self.here = self.ranks[rank]
        elif "variablesReference" in asked:
            owners = (rank for rank in self.ranks if asked["variablesReference"] in rank.variables)
            self.here = next(owners, self.here)
        self.group.choose(self.here.rank)

    @staticmethod
    def own(number: int) -> int:
        """Return the number that a thread or a frame has in its rank."""
        return number % _STRIDE
