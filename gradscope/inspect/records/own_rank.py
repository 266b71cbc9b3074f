"""The rank and the job of this process: as ``torchrun`` tells them, or else as the program's process group does."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

__all__ = ["OwnRank", "own_rank", "rank_of_process_group"]

_LONGEST = 256
"""Characters of a job's name that are told: a message before the proof is short."""


class OwnRank(NamedTuple):
    """A rank of a job.

    Attributes
    ----------
    rank : int or None
        None where the process is no rank.
    world : int
        How many ranks the job has; 1 where it is none.
    job : str
        What ranks of one job have in common, and no others: where the first of them is reached. ``':'`` where the
        environment does not say.
    restart : int
        How many times ``torchrun`` has started the ranks anew after one has died.
    """

    rank: int | None = None
    world: int = 1
    job: str = ""
    restart: int = 0


def own_rank() -> OwnRank:
    """Return which rank this process is.

    Where ``torchrun`` has not said so in the environment, it is known once the program has called
    ``torch.distributed.init_process_group()``, as what ``torch.multiprocessing.spawn`` starts does.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> told = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    >>> with mock.patch.dict(os.environ, told):
    ...     own_rank()
    OwnRank(rank=1, world=2, job='localhost:29500', restart=0)
    """
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not (rank.isdecimal() and world.isdecimal()) or int(rank) >= int(world):
        return rank_of_process_group()
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return OwnRank(int(rank), int(world), _job(), int(restart) if restart.isdecimal() else 0)


def rank_of_process_group() -> OwnRank:
    """Return which rank this process is in the program's process group; no rank where there is none, as yet.

    Examples
    --------
    >>> rank_of_process_group()
    OwnRank(rank=None, world=1, job='', restart=0)
    """
    # A program that has no process group need not have loaded PyTorch, and is not made to.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return OwnRank()
    return OwnRank(distributed.get_rank(), distributed.get_world_size(), _job())


def _job() -> str:
    return f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"[:_LONGEST]
