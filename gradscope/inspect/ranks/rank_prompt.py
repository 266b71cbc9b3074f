"""The prompt on all ranks of a program: those that were started for it, or that were running before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..debugging.prompt.line_mode import LineMode
from ..records.records import SessionState
from ..wire.client import RemoteDebugger
from ..wire.program_process import ProgramProcess
from .launch import conclude_ranks, renew_ranks
from .rank_comparison import comparison_lines
from .rank_group import RankGroup

__all__ = ["AttachedRankPrompt", "RankPrompt", "StartedRankPrompt"]


class RankPrompt(LineMode):
    """A session at a prompt.

    Parameters
    ----------
    members : sequence of RemoteDebugger
        By rank.
    non_stop : bool
        Whether the others go on when a rank stops.
    """

    def __init__(self, members: Sequence[RemoteDebugger], *, non_stop: bool = False) -> None:
        self.group = RankGroup(members, non_stop=non_stop)
        super().__init__(self.group)  # type: ignore[arg-type] # it has the same verbs

    def _begin_echo(self) -> Callable[[], None]:
        return lambda: None  # the output of the ranks goes to whoever has started them

    def say_stop(self) -> None:
        """Say where the chosen rank has stopped, and where the others are."""
        self._say(f"rank {self.group.rank}:")
        super().say_stop()
        others = [rank for rank in range(len(self.group.members)) if rank != self.group.rank]
        self._say("\n".join(self.group.describe(rank) for rank in others))

    def _wait(self, presses: int = 0) -> None:
        super()._wait(presses)
        group = self.group
        if not (group.ended or group.chosen.state.paused):
            self._list()

    def _list(self) -> None:
        for rank in range(len(self.group.members)):
            self._say(("> " if rank == self.group.rank else "  ") + self.group.describe(rank))

    def _do_ranks(self, argument: str) -> None:
        self._say("\n".join(comparison_lines(self.group)))

    def _do_rank(self, argument: str) -> None:
        if not argument:
            self._list()
            return
        self.group.choose(self.number(argument, "RANK"))
        if self.group.chosen.state is SessionState.RUNNING:
            self._do_where("")
        elif self.group.chosen.ended:
            self._say(self.group.describe(self.group.rank))
        else:
            self.say_stop()

    def _do_where(self, argument: str) -> None:
        """Say where the chosen rank stands; of one that runs, where its main thread is."""
        if self.group.chosen.state is SessionState.RUNNING:
            self._say(self.group.describe(self.group.rank))
            self._say(self.group.chosen.main_thread_stack().rstrip())
        else:
            super()._do_where(argument)


class StartedRankPrompt(RankPrompt):
    """A session with ranks that end with it.

    Parameters
    ----------
    processes : sequence of ProgramProcess
        By rank, not started.
    non_stop : bool
        Whether the others go on when a rank stops.
    """

    def __init__(self, processes: Sequence[ProgramProcess], *, non_stop: bool = False) -> None:
        super().__init__([process.debugger for process in processes], non_stop=non_stop)
        self._processes = processes
        self.group.renew = partial(renew_ranks, processes)
        # The echo begins before the ranks start and ends after they do: signal and exit handlers may write something.
        self._end_echo = self.group.echo_to(self._echo)

    def conclude(self) -> tuple[int, str]:
        """Let the processes come to their ends; return the first exit status that is not 0, and a line for each."""
        try:
            return conclude_ranks(self._processes)
        finally:
            self._end_echo()


class AttachedRankPrompt(RankPrompt):
    """A session with ranks that were there before, and run on afterwards."""

    def _start(self) -> None:
        group = self.group
        if any(member.state is SessionState.RUNNING for member in group.members):
            self._say(f"attached to {len(group.members)} ranks of {group.title}; they stop at their next nodes")
        group.join()
        self._wait()

    def _over(self) -> bool:
        return self._leaving or self.group.ended

    def _do_detach(self, argument: str) -> None:
        self._leaving = True

    def _leave(self) -> None:
        """Let the ranks run on."""
