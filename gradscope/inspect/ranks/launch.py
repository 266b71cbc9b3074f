"""The ranks of a program, started on this machine with the environment that ``torchrun`` gives them."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from ..wire.program_process import ProgramProcess

__all__ = ["conclude_ranks", "rank_environments", "renew_ranks", "start_ranks"]


_SIGNALLED = 128
"""What is added to the number of a signal that has ended a process."""


def rank_environments(count: int) -> list[dict[str, str]]:
    """Return the variables of each rank; the port is free now.

    Parameters
    ----------
    count : int
        How many ranks there are.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]


def start_ranks(arguments: Sequence[str], count: int) -> list[ProgramProcess]:
    """Start a process for each rank, with an empty stdin.

    Parameters
    ----------
    arguments : sequence of str
        ``[-m] SCRIPT args``.
    count : int
        How many.
    """
    return [
        ProgramProcess(arguments, terminal=False, environment=found, line_buffered=True)
        for found in rank_environments(count)
    ]


def renew_ranks(processes: Sequence[ProgramProcess]) -> None:
    """Give the processes of ranks the variables of a new job, for when they are started again.

    The port of the one before may still be taken. A process that is alone, and no rank, stays as it is.
    """
    if all("RANK" in process.environment for process in processes):
        for process, found in zip(processes, rank_environments(len(processes)), strict=True):
            process.environment = found


def conclude_ranks(processes: Sequence[ProgramProcess]) -> tuple[int, str]:
    """Let the processes of ranks come to their ends; return an exit status, and a line for each.

    Returns
    -------
    int, str
        The first status but 0; that of a rank which a signal has killed comes before others: it drew them along.
    """
    found = [process.conclude() for process in processes]
    failed = [status for status, _ in found if status]
    status = next((status for status in failed if status > _SIGNALLED), failed[0] if failed else 0)
    return status, "\n".join(f"[rank {rank}] {text}" for rank, (_, text) in enumerate(found))
