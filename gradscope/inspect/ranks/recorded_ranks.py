"""A run of many ranks: the recordings of a directory, which the ranks have written apart, read as one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from ..output.number_format import numbered
from ..recording import BackwardRecord, Recording, RecordingError, RunRecord, open_recording
from ..recording.file.recording_file import is_alive
from ..recording.file.recording_records import STOPPED
from ..recording.recorder.recording_names import ENDING

__all__ = ["RankRecording", "RecordedRanks", "open_ranks", "ranks_of"]


@dataclass(frozen=True, slots=True)
class RankRecording:
    """What one rank has recorded since the ranks were started last.

    Attributes
    ----------
    run : RunRecord
        Of the runs in the recording, which has more where ranks have been started anew, the one that is meant.
    """

    rank: int
    recording: Recording
    run: RunRecord

    @property
    def running(self) -> bool:
        """Whether it still records; of another machine's that has not finished, that cannot be told: then it does."""
        run = self.run
        return run.state == "running" and (run.host != socket.gethostname() or is_alive(run.pid))

    @property
    def stopped(self) -> str:
        """Where it records no more, and by which error of gradscope's own; empty for most."""
        events = self.recording.events()
        return next((event.text for event in events if event.kind == STOPPED and event.run == self.run.id), "")

    def tasks(self) -> list[BackwardRecord]:
        """Return the backwards of the run."""
        return self.recording.tasks(run=self.run.id)


class _Start(NamedTuple):
    """What the ranks that were started together have in common."""

    job: str
    world: int
    restart: int


class RecordedRanks:
    """The recordings of the ranks that were started together; close it, or use it in a ``with`` block.

    Attributes
    ----------
    path : str
        The directory.
    world : int
        How many ranks were started.
    members : tuple of RankRecording
        By rank.
    notes : tuple of str
        What is missing or has been left out: a line each.
    """

    def __init__(self, path: str, members: Sequence[RankRecording], world: int, notes: Iterable[str]) -> None:
        self.path = path
        self.members = tuple(members)
        self.world = world
        self.notes = tuple(notes)

    def member(self, rank: int) -> RankRecording:
        """Return what a rank has recorded.

        Raises
        ------
        RecordingError
            If there is nothing of it.
        """
        for member in self.members:
            if member.rank == rank:
                return member
        known = ", ".join(str(member.rank) for member in self.members)
        raise RecordingError(f"{self.path} has no recording of rank {rank}; it has those of {known}")

    def close(self) -> None:
        """Close all recordings."""
        for member in self.members:
            member.recording.close()

    def __enter__(self) -> RecordedRanks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RecordedRanks {self.path}, {len(self.members)} of {self.world} ranks>"


def open_ranks(*paths: str | os.PathLike[str], restart: int | None = None) -> RecordedRanks:
    """Open a run of many ranks.

    Parameters
    ----------
    *paths : path-like
        A directory with the recordings of the ranks, or those recordings themselves.
    restart : int, optional
        Which start of the job, where ``torchrun`` has started its ranks anew: 0 is the first.

    Returns
    -------
    RecordedRanks
        The ranks that were started together last, or that time. What else is there, of another start, is left out, and
        what cannot be read as well; its notes say so.

    Raises
    ------
    RecordingError
        If there is no recording in the directory, none of them can be read, or there was no such start.

    See Also
    --------
    open_recording, agreement

    Examples
    --------
    >>> open_ranks("nowhere/")
    Traceback (most recent call last):
    ...
    gradscope.inspect.recording.file.schema.RecordingError: there is no directory nowhere/
    Make one with `torchrun --nproc-per-node N -m gradscope record -o nowhere/ SCRIPT`.
    """
    named = [os.fspath(path) for path in paths]
    title = ", ".join(named)
    with ExitStack() as stack:
        opened, notes = _open_all(_files(named), stack)
        if not opened:
            raise RecordingError("\n".join([f"{title}: none of the recordings can be read", *notes[:1]]))
        start, chosen, left_out = _started_together(opened, restart)
        members = [chosen[rank] for rank in sorted(chosen)]
        notes += left_out
        missing = [str(rank) for rank in range(start.world) if rank not in chosen]
        if missing:
            notes.append(f"no recording of rank {', '.join(missing)}: it was not started, or it could not write one")
        kept = {member.recording for member in members}
        for recording in opened:
            if recording not in kept:
                recording.close()
        stack.pop_all()
    return RecordedRanks(title, members, start.world, notes)


def ranks_of(path: str, rank: int | None) -> str:
    """Return the file of a rank's recording: `path` itself where that is no directory.

    Parameters
    ----------
    rank : int, optional
        Which of a directory; without it there must be one alone.

    Raises
    ------
    RecordingError
        If there are several and none is chosen, or there is no such rank.
    """
    if not os.path.isdir(path):
        _refuse_missing(path)
        if rank is not None:
            raise RecordingError(f"{path} is no directory\n--rank chooses among the recordings of one.")
        return path
    with open_ranks(path) as ranks:
        if rank is None and len(ranks.members) > 1:
            raise RecordingError(f"{path} has the recordings of {len(ranks.members)} ranks\nChoose one with --rank N.")
        return (ranks.members[0] if rank is None else ranks.member(rank)).recording.path


def _files(paths: Sequence[str]) -> list[str]:
    found = []
    for path in paths:
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if name.endswith(ENDING))
            if not names:
                raise RecordingError(f"there is no recording in {path}: no file there ends in {ENDING}")
            found += [os.path.join(path, name) for name in names]
        else:
            _refuse_missing(path)
            found.append(path)
    return found


def _refuse_missing(path: str) -> None:
    """Raise for a directory that is not there."""
    if path.endswith(("/", os.sep)) and not os.path.lexists(path):
        raise RecordingError(
            f"there is no directory {path}\n"
            f"Make one with `torchrun --nproc-per-node N -m gradscope record -o {path} SCRIPT`."
        )


def _open_all(files: Sequence[str], stack: ExitStack) -> tuple[list[Recording], list[str]]:
    """Return the recordings that can be read, and what is to be said of the others."""
    opened, notes = [], []
    for file in files:
        try:
            opened.append(stack.enter_context(open_recording(file)))
        except RecordingError as error:
            notes.append(f"left out: {str(error).splitlines()[0]}")
    return opened, notes


def _last_start(found: Mapping[_Start, Mapping[int, RankRecording]]) -> _Start:
    """Return the last start of the job that was started last.

    Which of a job's starts came last its restarts say, and not the clocks of its machines, which may be apart.
    """
    newest: dict[tuple[str, int], int] = {}
    for start, members in found.items():
        job = start.job, start.world
        newest[job] = max(newest.get(job, 0), *(member.run.started for member in members.values()))
    return max(found, key=lambda start: (newest[start.job, start.world], start.restart))


def _starts_of_job(found: Mapping[_Start, Mapping[int, RankRecording]], last: _Start) -> dict[int, _Start]:
    """Return the starts of the job whose last one is given, by how many there were before: they may differ in size."""
    files = {member.recording.path for member in found[last].values()}
    return {
        start.restart: start
        for start, members in found.items()
        if start == last or (start.restart < last.restart and any(m.recording.path in files for m in members.values()))
    }


def _start_of_job(found: Mapping[_Start, Mapping[int, RankRecording]], last: _Start, restart: int) -> _Start:
    starts = _starts_of_job(found, last)
    if restart not in starts:
        known = ", ".join(map(str, sorted(starts)))
        raise RecordingError(f"there is no restart {restart} of the job: there are {known}\n0 is its first start.")
    return starts[restart]


def _started_before(found: Mapping[_Start, Mapping[int, RankRecording]], last: _Start) -> Iterator[str]:
    """Yield that the job had been started before, and which ranks did not come to their ends then."""
    earlier = sorted(restart for restart in _starts_of_job(found, last) if restart < last.restart)
    if earlier:
        before = earlier[-1]
        members = found[_starts_of_job(found, last)[before]]
        killed = [rank for rank in sorted(members) if members[rank].run.state != "finished"]
        ends = f", in which {numbered('rank', killed)} {'were' if len(killed) > 1 else 'was'} killed" if killed else ""
        yield f"this is restart {last.restart} of the job; --restart {before} shows the start before it{ends}"


def _started_together(
    opened: Sequence[Recording], restart: int | None
) -> tuple[_Start, dict[int, RankRecording], list[str]]:
    """Return which start of the ranks is meant, what each has recorded in it, and what is said of files without it."""
    found: dict[_Start, dict[int, RankRecording]] = {}
    notes = []
    for recording in opened:
        runs: list[RunRecord] = []
        with suppress(RecordingError):
            runs = recording.runs
        if not runs:
            notes.append(f"left out: {recording.path} holds no run yet")
        for run in runs:
            rank = run.rank or 0
            of_start = found.setdefault(_Start(run.job, run.world, run.restart), {})
            known = of_start.get(rank)
            if known is None or known.run.started < run.started:
                of_start[rank] = RankRecording(rank, recording, run)
    if not found:
        raise RecordingError("\n".join(["there is nothing in the recordings yet", *notes[:1]]))
    last = _last_start(found)
    if restart is not None:
        last = _start_of_job(found, last, restart)
    chosen = {member.recording for member in found[last].values()}
    for start, members in found.items():
        for member in members.values():
            if start != last and member.recording not in chosen:
                what = f"{member.recording.path}: rank {member.rank} of {start.world} of another start"
                notes.append(f"left out: {what}")
    if restart is None:
        notes += _started_before(found, last)
    return last, found[last], notes
