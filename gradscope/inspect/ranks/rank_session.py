"""All ranks of a program as a session that nobody waits for: when one stops, it is shown, and the others stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ..debuggee.broadcast import Listener
from ..debugging.session.session_errors import SessionError
from ..records.records import DebuggerEvent, NodeRecord, SessionState
from ..wire.client import RemoteDebugger
from .rank_comparison import RankComparison, compare_ranks
from .rank_group import RankGroup, ends_by_itself

__all__ = ["RankSession"]


class RankSession(RankGroup):
    """A session with all ranks, of which one is looked at.

    A rank that stops, or dies, is looked at where the one that is looked at runs on, and stops the others unless they
    are to go on.

    Parameters
    ----------
    members : sequence of RemoteDebugger
        By rank.
    non_stop : bool
        Whether the others go on when a rank stops.
    """

    def __init__(self, members: Sequence[RemoteDebugger], *, non_stop: bool = False) -> None:
        super().__init__(members, non_stop=non_stop)
        self._listeners: list[Listener] = []
        for rank, member in enumerate(members):
            member.add_listener(partial(self._tell, rank))

    @property
    def output(self) -> list[str]:
        """What the ranks have written, each line after its rank."""
        return [f"[rank {rank}] {line}" for rank, member in enumerate(self.members) for line in member.output]

    def add_listener(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback(event)`` when something has changed in a rank; return what ends it."""
        self._listeners.append(callback)
        return partial(self._listeners.remove, callback)

    def choose(self, rank: int) -> None:
        """Look at another rank."""
        super().choose(rank)
        self._pass_on(DebuggerEvent("state", self.chosen.state, self.chosen.reason))

    def compare_ranks(self) -> RankComparison:
        """Return the current node on all ranks, and where each of them is."""
        return compare_ranks(self)

    def rank_records(self, rank: int, number: int) -> Sequence[NodeRecord]:
        """Return the nodes of a backward of another rank.

        Raises
        ------
        ValueError
            If there is no such rank.
        """
        if not 0 <= rank < len(self.members):
            raise ValueError(f"there is no rank {rank}: there are {len(self.members)}, from 0")
        return self.members[rank].backward_records(number)

    def leave(self) -> None:
        """End the ranks that have been started from here, and let others run on."""
        for member in self.members:
            with contextlib.suppress(SessionError):
                member.leave()

    def _tell(self, rank: int, event: DebuggerEvent) -> None:
        """Pass on what has changed in a rank, on the thread that hears of it."""
        member = self.members[rank]
        if event.kind in ("output", "log"):
            event = replace(event, text=f"[rank {rank}] {event.text}")
        elif event.kind == "state" and member.state not in (SessionState.RUNNING, SessionState.FINISHED):
            if self.non_stop or not ends_by_itself(member):  # of a step that all take, the chosen rank's end counts
                self._turn_to(rank)
            if not self.non_stop:
                threading.Thread(target=self._stop_others, args=(rank,), daemon=True).start()
        self._pass_on(event)

    def _turn_to(self, rank: int) -> None:
        """Look at a rank that has stopped where the one that is looked at has not."""
        if self.chosen.state is SessionState.RUNNING or self.chosen.ended:
            self.rank = rank

    def _stop_others(self, rank: int) -> None:
        """Stop the others, and look at one that has not ended: it may have stopped while this was under way."""
        if self.stop_with(self.members[rank]):
            paused = [number for number, member in enumerate(self.members) if member.state.paused]
            self._turn_to(rank if rank in paused or not paused else paused[0])
            self._pass_on(DebuggerEvent("state", self.chosen.state, self.chosen.reason))

    def _pass_on(self, event: DebuggerEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)
