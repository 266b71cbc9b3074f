"""Whether ranks wait for each other, while they run: each says where it stands, and one ends the job if all wait.

A rank that waits in a collective does so in C++, where no exception reaches it; so another thread looks where the main
thread is, and tells the other ranks through the process group's store. A rank that stands elsewhere may come yet: that
is said, and nothing is ended.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from ..adapters.event_guards import OWN_ERROR, fault_of, own_error
from ..debuggee.whereabouts import main_thread_frame, whereabouts
from ..output.number_format import numbered_rows
from ..recording.file.recording_file import is_alive
from ..recording.recorder.hang_watch import BEHIND, raised_frame, raised_text
from ..records.before_step.forward_log import ForwardAccount, SkippedForward
from .rank_ends import apart, error_without_advice, waits_in
from .uneven_loops import ended_early, left_the_loop, skipped_apart

__all__ = ["ENDED", "HangWatcher", "MainThread", "hang_text"]

ENDED = "has come to its end"
"""What is said of a rank whose script is over, instead of where it stands."""

_GONE = "is gone: its process "
"""How it begins what is said of one whose process has ended without a word, as where it was killed."""

_TOLD = "has ended the job, which hangs"

_FAILED = "failed: "
"""How it begins what is said of one whose script has raised an exception."""

_CUT_OFF = "Connection closed by peer", "Connection reset by peer", "Broken pipe"
"""What gloo says to a rank when another has gone."""

_MOVES = "goes on"
_UNKNOWN = f"is no longer looked at: {OWN_ERROR} there"
_LOOKS = 4
"""How often a rank looks in the time after which it is said to stand; once a second at least."""
_AFTERTHOUGHT = 2.0
"""Seconds for which a rank that has failed waits to hear that another came to its end: that may be why."""
_SAME = 3
"""Looks in a row that must find the same before it counts: what other ranks say is one look old."""


class MainThread:
    """Tells how long the main thread has been where it is.

    Parameters
    ----------
    progress : callable
        Returns what changes as the program goes on: a loop that comes by the same line stands nowhere.
    """

    def __init__(self, progress: Callable[[], object]) -> None:
        self._progress = progress
        self._at: tuple[Any, int, object] = (None, 0, None)
        self._since = time.monotonic()

    def stands(self) -> float:
        """Return for how many seconds it has been there, at the looks that were taken."""
        frame = main_thread_frame()
        at = frame, -1 if frame is None else frame.f_lasti, self._progress()
        # The frame itself is held until the next look: each call has a new one, also where its number is used again.
        if at[0] is not self._at[0] or at[1:] != self._at[1:]:
            self._at, self._since = at, time.monotonic()
        return time.monotonic() - self._since


class HangWatcher:
    """Watches the main thread of a rank, and those of the others through a store: a context manager.

    Parameters
    ----------
    rank, world : int
        Which rank this is, of how many.
    limit : float
        Seconds at one place after which a rank stands.
    name : str
        What the keys in the store begin with.
    store : callable
        Returns the store, or None as long as there is none.
    progress : callable
        As for :class:`MainThread`.
    account : callable
        Returns how far this rank has come, given the frame at which it stands, or None at its end.
    left : callable
        Returns whether a frame stands outside of the loop in which this rank has trained.
    hangs : callable
        Called, on the watching thread, with where each rank stands, and how far each has come.
    note : callable
        Called once with a line, where this rank waits and others go on.
    """

    def __init__(
        self,
        rank: int,
        world: int,
        limit: float,
        *,
        name: str,
        store: Callable[[], Any],
        progress: Callable[[], object],
        account: Callable[[FrameType | None], ForwardAccount],
        left: Callable[[FrameType | None], bool],
        hangs: Callable[[Mapping[int, str], Mapping[int, ForwardAccount]], None],
        note: Callable[[str], None],
    ) -> None:
        self._rank, self._world, self._limit = rank, world, limit
        self._name = name
        self._find_store = store
        self._store: Any = None
        self._main = MainThread(progress)
        self._account, self._has_left, self._hangs, self._note = account, left, hangs, note
        self._said = ""
        self._processes: dict[int, int] = {}  # of the other ranks of this machine
        self._end = ENDED
        self._left: FrameType | None = None  # what the exception that has ended the script has left
        self._found: Mapping[int, str] = {}
        self._times = 0
        self._noted = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gradscope hangs", daemon=True)

    def __enter__(self) -> HangWatcher:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join(self._limit)
        if self._store is None:
            self._store = self._find_store()
        if self._store is not None and not self._thread.is_alive():
            try:
                self._say(self._end)
            except RuntimeError:  # the store has gone with the rank that held it
                pass
            except Exception as error:
                self._stop(error)

    def failed(self, error: BaseException) -> None:
        """Note what the script has raised, which is how it ends."""
        self._end = f"{_FAILED}{error_without_advice(raised_text(error))}"
        self._left = raised_frame(error)

    def others_before(self) -> Iterator[str]:
        """Yield what others have done that came to their ends, to a rank that has failed: a collective may have."""
        last = time.monotonic() + _AFTERTHOUGHT
        while not (ended := self._ended_others()):
            if self._store is None or time.monotonic() > last:
                return
            time.sleep(0.05)
        if _TOLD in ended.values():  # with what each waits in
            return
        first = {rank: told for rank, told in ended.items() if not _is_drawn_along(told)} or ended
        yield from (f"rank {rank} {told}" for rank, told in first.items() if told != ENDED and self._is_untold(rank))
        with suppress(RuntimeError):
            uneven = [*uneven_causes({}, [rank for rank, told in ended.items() if told == ENDED], self.accounts())]
            if uneven and self._is_untold("uneven"):
                yield from uneven

    def _ended_others(self) -> dict[int, str]:
        """Return how others came to their ends; where the store has gone too, those whose processes have."""
        try:
            self._find_processes()
            places = self._places() if self._store is not None else {}
        except RuntimeError:
            places = {rank: self._gone(rank) for rank in self._processes}
        return {rank: told for rank, told in places.items() if rank != self._rank and _is_end(told)}

    def _is_untold(self, what: object) -> bool:
        """Whether no other rank has told something; from now on this one has."""
        try:
            return bool(self._store.add(f"{self._name}/told/{what}", 1) == 1)
        except RuntimeError:  # the store has gone
            return True

    def _watch(self) -> None:
        try:
            while not self._over.wait(min(1.0, self._limit / _LOOKS)):
                if self._store is None:
                    self._store = _own_connection(self._find_store())
                    self._tell_process()
                self._find_processes()
                if self._store is not None:
                    self.look()
        except (RuntimeError, OSError):  # the store has gone with the rank that held it: the collectives say so
            self._store = None
        except Exception as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        """Watch no more, for an error of gradscope's own; the other ranks hear that nothing is known of this one."""
        self._note(
            f"rank {self._rank}: no longer looked into whether ranks wait for each other: {own_error(fault_of(error))}"
        )
        with suppress(Exception):
            self._store.set(self._key(self._rank), _UNKNOWN)
        self._store = None

    def look(self) -> None:
        """Say where this rank stands, and act on where the others do."""
        stands = self._main.stands() >= self._limit
        place = self._place() if stands else _MOVES
        self._say(place)
        if not stands:
            return
        places = self._places()
        waiting = [other for other, told in places.items() if waits_in(told)]
        if not waiting and _MOVES in places.values():
            return
        here = waiting or [other for other, told in places.items() if not _is_end(told)]
        if min(here) != self._rank:  # one tells for all
            return
        self._times = self._times + 1 if places == self._found else 1
        self._found = places
        if self._times < _SAME:
            return
        if not waiting:
            self._note_stand(places)
            return
        elsewhere = {other: told for other, told in places.items() if not _is_end(told) and not waits_in(told)}
        if elsewhere:
            self._note_wait(place, elsewhere)
        elif any(_is_end(told) or told.startswith("waits in ") for told in places.values()):
            # All may be in a backward that takes long, and then none waits for another.
            self._over.set()
            self._say(_TOLD)
            self._hangs(places, self.accounts())

    def _place(self) -> str:
        """Return where the main thread is."""
        place = whereabouts()
        return f"{place}{BEHIND}" if self._has_left(main_thread_frame()) else place

    def _note_wait(self, place: str, elsewhere: Mapping[int, str]) -> None:
        """Say once for whom this rank waits: they may come yet."""
        if not self._noted:
            self._noted = True
            others = ", ".join(f"rank {other} {told}" for other, told in elsewhere.items())
            self._note(f"rank {self._rank} {place}, for {self._limit:g} s; {others}")

    def _note_stand(self, places: Mapping[int, str]) -> None:
        """Say once that all ranks stand at lines that are no collectives: a collective may wait on the device."""
        if not self._noted:
            self._noted = True
            told = ", ".join(f"rank {other} {place}" for other, place in places.items())
            self._note(
                f"no rank has moved for {self._limit:g} s: {told}; none is in a collective that can be seen, but "
                "NCCL's wait on the device, in any line that needs what comes from there: nothing is ended"
            )

    def _say(self, place: str) -> None:
        if place != self._said:
            if place != _MOVES:
                told = self._account(self._left if _is_end(place) else main_thread_frame())
                self._store.set(f"{self._key(self._rank)}/account", json.dumps(told))
            self._store.set(self._key(self._rank), place)
            self._said = place

    def _places(self) -> dict[int, str]:
        """Return where each rank stands, by its own word; one that has said nothing yet moves."""
        keys = {rank: self._key(rank) for rank in range(self._world)}
        found = {
            rank: self._store.get(key).decode(errors="replace") if self._store.check([key]) else _MOVES
            for rank, key in keys.items()
        }
        return {rank: told if _is_end(told) else self._gone(rank) or told for rank, told in found.items()}

    def _tell_process(self) -> None:
        """Say which process of which machine this rank is."""
        if self._store is not None:
            self._store.set(f"{self._key(self._rank)}/process", json.dumps([_machine(), os.getpid()]))

    def _find_processes(self) -> None:
        """Learn which processes of this machine the other ranks are, of those that have said so meanwhile."""
        for rank in set(range(self._world)) - {self._rank, *self._processes}:
            key = f"{self._key(rank)}/process"
            if self._store is not None and self._store.check([key]):
                machine, process = json.loads(self._store.get(key))
                self._processes[rank] = process if machine == _machine() else 0

    def _gone(self, rank: int) -> str:
        """Return that the process of a rank has ended; empty where it has not, or that cannot be told."""
        process = self._processes.get(rank)
        return f"{_GONE}{process} has been killed, or has ended by itself" if process and not is_alive(process) else ""

    def accounts(self) -> dict[int, ForwardAccount]:
        """Return how far each rank has come, of those that have stood somewhere, or have ended."""
        keys = {rank: f"{self._key(rank)}/account" for rank in range(self._world)}
        return {rank: _account(self._store.get(key)) for rank, key in keys.items() if self._store.check([key])}

    def _key(self, rank: int) -> str:
        return f"{self._name}/{rank}"


def _own_connection(store: Any) -> Any:
    """Return a store that another thread's waiting call does not block, where PyTorch (from 2.9 on) can make one."""
    return store.clone() if hasattr(store, "clone") else store


def _is_end(place: str) -> bool:
    """Whether it is said of a rank that its script is over."""
    return place in (ENDED, _TOLD) or place.startswith((_FAILED, _GONE))


def _is_drawn_along(place: str) -> bool:
    """Whether a rank has failed because another had gone."""
    return place.startswith(_FAILED) and any(told in place for told in _CUT_OFF)


def _machine() -> str:
    """Return what processes have in common that see each other's numbers."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _account(text: bytes) -> ForwardAccount:
    step, stepped, skipped, count = json.loads(text)
    return ForwardAccount(step, stepped, tuple(SkippedForward(*skip) for skip in skipped), count)


def hang_text(places: Mapping[int, str], limit: float, accounts: Mapping[int, ForwardAccount] | None = None) -> str:
    """Return that a job hangs, where each rank stands, and whom they wait for, in a few lines.

    Parameters
    ----------
    places : mapping of int to str
        Where each rank stands.
    limit : float
        For how many seconds, at least.
    accounts : mapping of ForwardAccount, optional
        How far each has come.

    Examples
    --------
    >>> print(hang_text({0: "waits in all_reduce, called at train.py:9", 1: "has come to its end"}, 60))
    2 ranks hang: none has moved for 60 s
      rank 0      waits in all_reduce, called at train.py:9
      rank 1      has come to its end
    likely cause: rank 1 came to the end of the program while rank 0 waits in all_reduce, called at train.py:9
    """
    standing: dict[str, list[int]] = defaultdict(list)
    for rank, place in places.items():
        standing[place].append(rank)
    lines = [f"{len(places)} ranks hang: none has moved for {limit:g} s"]
    lines += numbered_rows("rank", [(ranks, place) for place, ranks in standing.items()])
    waiting = {rank: call for rank, place in places.items() if (call := waits_in(place))}
    ended = [rank for rank, place in places.items() if place == ENDED]
    gone = [f"rank {rank} {place}" for rank, place in places.items() if place.startswith(_GONE)]
    causes = (
        gone
        or [*uneven_causes(waiting, ended, accounts or {})]
        or [*apart(waiting, named=False)]
        or ["all ranks wait in one call: of tensors of other shapes, or the network between them is down"]
    )
    return "\n".join([*lines, *(f"likely cause: {cause}" for cause in causes)])


def uneven_causes(
    waiting: Mapping[int, str], ended: Sequence[int], accounts: Mapping[int, ForwardAccount]
) -> Iterator[str]:
    """Yield that ranks have run unlike: one has skipped what others ran, has ended, or has left its loop."""
    skipped = {rank: [skip.text() for skip in account.skipped] for rank, account in accounts.items()}
    counts = {rank: account.skips for rank, account in accounts.items()}
    found = [*skipped_apart(skipped, counts)] if len(accounts) > 1 else []
    yield from found or [*ended_early(ended, accounts, waiting), *left_the_loop(waiting, accounts)]
