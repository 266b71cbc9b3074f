"""The debuggers of all ranks as one: verbs go to every rank, what is read is the chosen rank's."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..debuggee.broadcast import Listener, OutputWriter
from ..debuggee.waiters import Waiters
from ..debugging.session.session_errors import SessionError
from ..records.records import DebuggerEvent, SessionState
from ..wire.client import RemoteDebugger

__all__ = ["RankGroup", "ends_by_itself"]

_GOING_ON = {"start", "step", "into", "out", "cont", "run_to", "until", "next_backward"}

_FOR_ALL = _GOING_ON | {
    "add_breakpoint", "remove_breakpoint",
    "enable_breakpoint", "ignore_breakpoint", "catch", "set_limit", "add_watch", "remove_watch",
}  # fmt: skip

_TOGETHER = 0.1
"""Seconds in which the others come to the breakpoint that one rank has stopped at, before they are paused."""

_SAME_STEP = 1.0
"""Seconds in which ranks that take the same step end it by themselves after the first has."""

_PAUSING = 2.0
"""Seconds in which a rank that is not in a collective comes to its next node."""

_ANSWERING = 2.0
"""Seconds in which a rank answers; one that does not is in code that lets no other thread of its process run."""

_ASKING = 0.1
"""Seconds after which a rank that has not stopped is asked whether it waits in a collective."""

_OWN_ENDS = {"step", "entry", "run-to"}
"""Kinds of the reasons of a stop to which the verb itself has led, as it will on the other ranks."""


class RankGroup:
    """The debuggers of all ranks, with the verbs of the chosen one's.

    Verbs that let the program go on, and those about breakpoints and watches, go to all ranks; others to the chosen.

    Parameters
    ----------
    members : sequence of RemoteDebugger
        By rank.
    non_stop : bool
        Whether the others go on when a rank stops, and verbs that let it go on are the chosen rank's alone.

    Attributes
    ----------
    renew : callable or None
        Makes the processes ready to be started again as another job; None where they were not started from here.
    """

    def __init__(self, members: Sequence[RemoteDebugger], *, non_stop: bool = False) -> None:
        self.members = list(members)
        self.non_stop = non_stop
        self.rank = 0
        self.renew: Callable[[], None] | None = None
        self._awaited: list[RemoteDebugger] = []
        self._impatient = False
        self._asked: set[int] = set()  # members, by identity, from which the answer to a pause is still to come
        self._stopping = threading.Lock()
        self._waiters = Waiters()
        for member in self.members:
            member.add_listener(self._heard)

    def _heard(self, event: DebuggerEvent) -> None:
        if event.kind == "state":
            self._waiters.wake()

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
        if name in _GOING_ON:
            return partial(self._go_on, name)
        return partial(self._for_all, name) if name in _FOR_ALL else getattr(self.chosen, name)

    def _go_on(self, name: str, *args: Any, **keywords: Any) -> None:
        """Let all ranks go on, or the chosen one alone; ``start`` is for all."""
        self._impatient = False
        if name == "cont" and self.chosen.state is SessionState.RUNNING:  # a wait was interrupted and begins again
            return
        if self.non_stop and name != "start":
            getattr(self.chosen, name)(*args, **keywords)
            sent = [self.chosen]
        else:
            sent = self._carried_out(name, *args, **keywords)[1]
        # One may stop again before it is waited for.
        self._awaited = [*sent, *(member for member in self._awaited if member not in sent)]

    def _for_all(self, name: str, *args: Any, **keywords: Any) -> Any:
        return self._carried_out(name, *args, **keywords)[0]

    def _carried_out(self, name: str, *args: Any, **keywords: Any) -> tuple[Any, list[RemoteDebugger]]:
        """Carry out a verb at the chosen rank, which may refuse it, and then at the others that can."""
        answer = getattr(self.chosen, name)(*args, **keywords)
        others = _at_once(self._others(), lambda member: getattr(member, name)(*args, **keywords))
        return answer, [self.chosen, *others]

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

    restarts_in = "new processes"
    """What :meth:`restart` starts the ranks in."""

    def restart(self) -> None:
        """End all ranks and start them anew, in other processes; each stops at the first node of its first backward.

        Raises
        ------
        SessionError
            If they were not started from here, or a rank cannot be.
        """
        if self.renew is None:
            raise SessionError(
                "the ranks were not started by the debugger, so they cannot be started again\n"
                "`quit` leaves them running; start them anew where they were started."
            )
        self.renew()
        begun = _at_once(self.members, lambda member: member.restart())
        lost = [str(rank) for rank, member in enumerate(self.members) if member not in begun]
        if lost:
            raise SessionError(f"these ranks could not be started again: {', '.join(lost)}\n`ranks` says how they are.")
        self._awaited = list(self.members)

    # --- stopping together ---

    def pause(self) -> None:
        """Stop every rank before its next node; one in a collective cannot, and goes on waiting.

        The next :meth:`wait` comes back after two seconds at most, so that such ranks can be looked at.
        """
        self._impatient = True
        self._pause_all()

    def _pause_all(self) -> None:
        _at_once([member for member in self._running() if id(member) not in self._asked], self._pause, _ANSWERING)

    def _pause(self, member: RemoteDebugger) -> None:
        self._asked.add(id(member))
        try:
            member.pause()
        finally:
            self._asked.discard(id(member))

    def wait(self, timeout: float | None = None) -> SessionState:
        """Wait until a rank that runs has stopped or died, or all have ended; choose it, and pause the others.

        Returns
        -------
        SessionState
            The chosen rank's; ``RUNNING`` after a timeout, in seconds.
        """
        awaited = [*self._awaited, *(member for member in self._running() if member not in self._awaited)]
        patience = _PAUSING if self._impatient else timeout
        self._until(lambda: not self._running() or any(map(_has_news, awaited)), patience)
        news = [member for member in awaited if _has_news(member)]
        if self.chosen not in news:
            self._choose_first([*news, *(member for member in self.members if not member.ended)])
        if news and not self.non_stop:
            self._stop_all(self.chosen)
        self._impatient = False
        self._awaited = self._running()
        return self.chosen.state

    def stop_with(self, member: RemoteDebugger) -> bool:
        """Stop the others, as :meth:`wait` does, where a rank has stopped; return False where that is being done."""
        if not self._stopping.acquire(blocking=False):
            return False
        try:
            self._stop_all(member)
        finally:
            self._stopping.release()
        return True

    def _stop_all(self, stopped: RemoteDebugger) -> None:
        """Let the others end the step that all take, and pause those that go on."""
        self._until(lambda: not self._running(), _SAME_STEP if ends_by_itself(stopped) else _TOGETHER)
        self._pause_all()
        deadline = time.monotonic() + _PAUSING
        while not self._until(lambda: not self._running(), _ASKING) and time.monotonic() < deadline:
            running = self._running()
            if len(_at_once(running, _be_waiting, _ANSWERING)) == len(running):  # most likely for one that has stopped
                return
            self._pause_all()  # a rank that was about to go on had nothing to pause when it was asked

    def _choose_first(self, candidates: Sequence[RemoteDebugger]) -> None:
        if candidates:
            self.rank = self.members.index(candidates[0])

    def _running(self) -> list[RemoteDebugger]:
        return [member for member in self.members if member.state is SessionState.RUNNING]

    def _until(self, holds: Callable[[], bool], timeout: float | None) -> bool:
        return self._waiters.wait(holds, timeout)

    # --- coming, listing, leaving ---

    def join(self) -> None:
        """Start the ranks that have not begun, and pause those that run."""
        for member in self.members:
            with contextlib.suppress(SessionError):  # the rank has stopped by itself meanwhile, or has ended
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

    def stack(self, rank: int) -> str:
        """Return the functions that the main thread of a rank that runs is in; an empty string of any other."""
        member = self.members[rank]
        if member.state is SessionState.RUNNING and not member.ended:
            with contextlib.suppress(SessionError):
                return member.main_thread_stack()
        return ""

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


def ends_by_itself(member: RemoteDebugger) -> bool:
    """Return whether a rank has stopped where the verb has led it, as it will lead the others."""
    return member.reason is not None and member.reason.kind in _OWN_ENDS


def _has_news(member: RemoteDebugger) -> bool:
    """Whether a rank has stopped in the middle, or has failed."""
    return member.state is not SessionState.RUNNING and member.state is not SessionState.FINISHED


def _be_waiting(member: RemoteDebugger) -> None:
    """Raise SessionError unless a rank that runs waits in a collective."""
    place = member.whereabouts()
    if not place.startswith("waits in"):
        raise SessionError(place)


def _at_once(
    members: Sequence[RemoteDebugger], verb: Callable[[RemoteDebugger], object], patience: float | None = None
) -> list[RemoteDebugger]:
    """Carry out a verb at several ranks, each of which may be slow to answer; return those that have not refused it.

    Parameters
    ----------
    patience : float, optional
        Seconds after which no answer is waited for any more: it may still come.
    """
    sent: list[RemoteDebugger] = []

    def carry_out(member: RemoteDebugger) -> None:
        with contextlib.suppress(SessionError, ValueError):  # the rank runs, has ended, or has no such node
            verb(member)
            sent.append(member)

    threads = [threading.Thread(target=carry_out, args=(member,), daemon=True) for member in members]
    for thread in threads:
        thread.start()
    deadline = None if patience is None else time.monotonic() + patience
    for thread in threads:
        thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return list(sent)


def _all_of(removes: list[Callable[[], None]]) -> Callable[[], None]:
    def remove_all() -> None:
        for remove in removes:
            remove()

    return remove_all
