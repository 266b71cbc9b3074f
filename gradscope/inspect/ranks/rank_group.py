"""The debuggers of all ranks as one: verbs go to every rank, what is read is the chosen rank's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..debuggee.broadcast import Listener, OutputWriter
from ..debugging.session.session_errors import SessionError
from ..records.records import SessionState
from ..wire.client import RemoteDebugger

__all__ = ["RankGroup"]

_GOING_ON = {"start", "step", "into", "out", "cont", "run_to", "until", "next_backward"}

_FOR_ALL = _GOING_ON | {
    "add_breakpoint", "remove_breakpoint",
    "enable_breakpoint", "ignore_breakpoint", "catch", "add_watch", "remove_watch",
}  # fmt: skip

_TOGETHER = 1.0
"""Seconds in which ranks that take the same step stop by themselves after the first has."""

_PAUSING = 2.0
"""Seconds in which a rank that is not in a collective comes to its next node."""

_SLICE = 0.02


class RankGroup:
    """The debuggers of all ranks, with the verbs of the chosen one's.

    Verbs that let the program go on, and those about breakpoints and watches, go to all ranks; others to the chosen.

    Parameters
    ----------
    members : sequence of RemoteDebugger
        By rank.
    """

    def __init__(self, members: Sequence[RemoteDebugger]) -> None:
        self.members = list(members)
        self.rank = 0
        self._awaited: list[RemoteDebugger] = []

    @property
    def chosen(self) -> RemoteDebugger:
        """The debugger of the chosen rank."""
        return self.members[self.rank]

    def choose(self, rank: int) -> None:
        """Look at another rank.

        Raises
        ------
        SessionError
            If there is no such rank.
        """
        if not 0 <= rank < len(self.members):
            raise SessionError(f"there is no rank {rank}: they are 0 to {len(self.members) - 1}")
        self.rank = rank

    def __getattr__(self, name: str) -> Any:
        return partial(self._for_all, name) if name in _FOR_ALL else getattr(self.chosen, name)

    def _for_all(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Carry out a verb at the chosen rank, which may refuse it, and then at the others that can."""
        answer = getattr(self.chosen, name)(*args, **keywords)
        sent = [self.chosen]
        for member in self._others():
            with contextlib.suppress(SessionError):  # it runs, or has ended
                getattr(member, name)(*args, **keywords)
                sent.append(member)
        if name in _GOING_ON:  # one may stop again before it is waited for
            self._awaited = sent
        return answer

    def _others(self) -> list[RemoteDebugger]:
        return [member for member in self.members if member is not self.chosen]

    @property
    def ended(self) -> bool:
        """Whether all ranks have come to their ends."""
        return all(member.ended for member in self.members)

    @property
    def record_always(self) -> bool:
        """Whether nodes are recorded while the ranks run free; may be set."""
        return self.chosen.record_always

    @record_always.setter
    def record_always(self, on: bool) -> None:
        for member in self.members:
            with contextlib.suppress(SessionError):
                member.record_always = on

    def restart(self) -> None:
        """Refuse: ranks that are started again need a new port."""
        raise SessionError("ranks cannot be started again from here\n`quit` ends them; start them anew.")

    # --- stopping together ---

    def pause(self) -> None:
        """Stop every rank before its next node; one in a collective cannot, and goes on waiting."""
        for member in self.members:
            if member.state is SessionState.RUNNING:
                with contextlib.suppress(SessionError):
                    member.pause()

    def wait(self, timeout: float | None = None) -> SessionState:
        """Wait until a rank that runs has stopped or died, or all have ended; choose it, and pause the others.

        Returns
        -------
        SessionState
            The chosen rank's; ``RUNNING`` after a timeout, in seconds.
        """
        running = [member for member in self.members if member.state is SessionState.RUNNING]
        awaited = [*self._awaited, *(member for member in running if member not in self._awaited)]
        self._until(lambda: self._all_stopped() or any(map(_has_news, awaited)), timeout)
        if self.chosen not in awaited or not _has_news(self.chosen):
            self._choose_first([*filter(_has_news, awaited), *(member for member in self.members if not member.ended)])
        if not self.ended and self.chosen.state is not SessionState.RUNNING:
            self._until(self._all_stopped, _TOGETHER)
            self.pause()
            self._until(self._all_stopped, _PAUSING)
        return self.chosen.state

    def _choose_first(self, candidates: Sequence[RemoteDebugger]) -> None:
        if candidates:
            self.rank = self.members.index(candidates[0])

    def _all_stopped(self) -> bool:
        return all(member.state is not SessionState.RUNNING for member in self.members)

    @staticmethod
    def _until(holds: Callable[[], bool], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not holds() and (deadline is None or time.monotonic() < deadline):
            time.sleep(_SLICE)

    # --- coming, listing, leaving ---

    def join(self) -> None:
        """Start the ranks that have not begun, and pause those that run."""
        for member in self.members:
            with contextlib.suppress(SessionError):  # it has stopped by itself meanwhile, or has ended
                if member.state is SessionState.NOT_STARTED:
                    member.start()
                elif member.state is SessionState.RUNNING:
                    member.pause()
        self._awaited = list(self.members)

    def detach(self) -> None:
        """Let all ranks run on."""
        for member in self.members:
            member.detach()

    def describe(self, rank: int) -> str:
        """Return where a rank is, in a line."""
        member = self.members[rank]
        if member.ended:
            return f"rank {rank}: {member.reason}"
        if member.state is SessionState.RUNNING:
            try:
                return f"rank {rank}: runs; it {member.whereabouts()}"
            except SessionError as error:
                return f"rank {rank}: {str(error).splitlines()[0]}"
        if member.current < 0:
            return f"rank {rank}: {member.state} - {member.reason}"
        name = member.nodes[member.current].name
        return f"rank {rank}: {member.state} node {member.current}: {name}, backward {member.task_index}"

    def leave(self) -> None:
        """End all ranks."""
        self.abort()

    def abort(self) -> None:
        """End all ranks; one that is in a collective is ended when its process is."""
        for member in self.members:
            with contextlib.suppress(SessionError):
                member.abort()

    # --- listening ---

    def add_listener(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback(event)`` when something has changed in a rank; return what ends it."""
        return _all_of([member.add_listener(callback) for member in self.members])

    def echo_to(self, write: OutputWriter) -> Callable[[], None]:
        """Pass on whole lines that ranks write, each after its rank; return what ends it."""
        writers = [_Prefixed(rank, write) for rank in range(len(self.members))]
        removes = [member.echo_to(writer) for member, writer in zip(self.members, writers, strict=True)]
        return _all_of([*removes, *(writer.flush for writer in writers)])


class _Prefixed:
    """Puts the rank before each line, which is passed on when it is whole."""

    def __init__(self, rank: int, write: OutputWriter) -> None:
        self._prefix = f"[rank {rank}] "
        self._write = write
        self._begun: dict[str, str] = {}

    def __call__(self, text: str, stream: str = "stdout") -> None:
        *lines, self._begun[stream] = (self._begun.get(stream, "") + text).split("\n")
        if lines:
            self._write("".join(f"{self._prefix}{line}\n" for line in lines), stream)

    def flush(self) -> None:
        """Pass on lines that were begun and not ended."""
        for stream in [stream for stream, begun in self._begun.items() if begun]:
            self("\n", stream)


def _has_news(member: RemoteDebugger) -> bool:
    """Whether a rank has stopped in the middle, or has failed."""
    return member.state is not SessionState.RUNNING and member.state is not SessionState.FINISHED


def _all_of(removes: list[Callable[[], None]]) -> Callable[[], None]:
    def remove_all() -> None:
        for remove in removes:
            remove()

    return remove_all
