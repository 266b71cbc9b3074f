"""The ranks of a job that runs on this machine and listens, found by what each says before anybody attaches."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from ..wire import messages as m
from ..wire.addresses import AddressError, listening_programs, parse_address, reach
from ..wire.channel import Channel, ChannelError
from ..wire.client import RemoteDebugger, connect
from ..wire.handshake import PATIENCE

__all__ = ["attach_ranks", "find_ranks"]

_GATHERING = 30.0
"""Seconds in which the ranks of a job that has just been started come to listen."""

_POLL = 0.2


class _IncompleteError(AddressError):
    """Some ranks of a job do not listen, yet or at all."""


def find_ranks(process: int | None = None, *, gathering: float = _GATHERING) -> list[int]:
    """Return the processes of a job's ranks, by rank.

    Parameters
    ----------
    process : int, optional
        One of them; without it there must be one job.
    gathering : float
        Seconds in which all ranks of a job that has just been started must have come to listen.

    Raises
    ------
    AddressError
        If there is no such job, or there are several, or some of its ranks do not listen on this machine.
    """
    deadline = time.monotonic() + gathering
    while True:
        try:
            return _complete(_one_job(process))
        except _IncompleteError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL)


def attach_ranks(processes: list[int]) -> list[RemoteDebugger]:
    """Attach to all ranks, or to none.

    Raises
    ------
    AddressError, ChannelError
        If one of them is gone, or has another front.
    """
    attached: list[RemoteDebugger] = []
    try:
        for process in processes:
            attached.append(connect(parse_address(str(process))))
    except OSError:
        for debugger in attached:
            debugger.detach()
        raise
    return attached


def _one_job(process: int | None) -> dict[int, m.Hello]:
    """Return what the ranks of a job have said, by rank."""
    jobs: dict[str, dict[int, m.Hello]] = defaultdict(dict)
    for pid in listening_programs():
        hello = _hello_of(pid)
        if hello is not None and hello.rank is not None:
            jobs[hello.job][hello.rank] = hello
    if process is not None:
        found = [job for job in jobs.values() if any(hello.pid == process for hello in job.values())]
    else:
        found = list(jobs.values())
    if not found:
        what = "no job of yours listens" if process is None else f"process {process} is no rank that listens"
        raise AddressError(
            f"{what}\nOne does after `torchrun --nproc-per-node N -m gradscope.debuggee SCRIPT`, or with "
            "GRADSCOPE_LISTEN=1 before torchrun."
        )
    if len(found) > 1:
        first = ", ".join(str(job[min(job)].pid) for job in found)
        raise AddressError(f"{len(found)} jobs of yours listen, say which by a process of it: {first}")
    return found[0]


def _complete(job: dict[int, m.Hello]) -> list[int]:
    world = max(hello.world for hello in job.values())
    missing = [str(rank) for rank in range(world) if rank not in job]
    if missing:
        raise _IncompleteError(f"of {world} ranks these do not listen on this machine: {', '.join(missing)}")
    return [job[rank].pid for rank in range(world)]


def _hello_of(process: int) -> m.Hello | None:
    """Return what a program says of itself before a front has said anything; it notices nothing of this."""
    try:
        channel: Channel[Any] = Channel(reach(parse_address(str(process))), m.FromProgram)
        try:
            hello = channel.receive(PATIENCE)
        finally:
            channel.close()
    except (AddressError, ChannelError):
        return None
    return hello if isinstance(hello, m.Hello) else None
