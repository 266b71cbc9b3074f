"""The part of a data set that falls to one of several processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ... import distributed
from ...runtime.ops.random.random import Generator, randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Draw the indices that fall to one of several processes: each draws as many, and every process draws others.

    Parameters
    ----------
    num_replicas, rank : int, optional
        How many processes there are, and which of them this one is: one process, unless given.
    shuffle : bool
        Mix the indices, anew in each epoch, which :meth:`set_epoch` tells.
    seed : int
        The same in all processes.
    drop_last : bool
        Leave out indices at the end, so that each process gets as many; otherwise those at the begin are drawn twice.

    Raises
    ------
    ValueError
        If `rank` is not below `num_replicas`.

    See Also
    --------
    RandomSampler

    Examples
    --------
    >>> [list(DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        self.rank = distributed.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {self.num_replicas - 1}]\n"
                f"There are num_replicas={self.num_replicas} processes, counted from 0."
            )
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        share = len(dataset) / self.num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = randperm(count, generator=generator).tolist()
        repeated = order * math.ceil(self.total_size / max(count, 1))
        return iter(repeated[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, by which the next order is mixed."""
        self.epoch = epoch
