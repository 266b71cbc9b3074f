"""DistributedSampler: PyTorch's shares of a data set."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from gradscope.utils.data.distributed import DistributedSampler


@pytest.mark.torch
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("count", "replicas"), [(10, 3), (2, 5), (8, 4), (1, 1)])
def test_shares(torch: Any, count: int, replicas: int, drop_last: bool) -> None:
    theirs = importlib.import_module("torch.utils.data.distributed").DistributedSampler

    def shares(kind: Any) -> Any:
        made = [kind(range(count), replicas, rank, shuffle=False, drop_last=drop_last) for rank in range(replicas)]
        return [(len(sampler), list(sampler)) for sampler in made]

    assert shares(DistributedSampler) == shares(theirs)


def test_all_processes_mix_alike_and_each_epoch_otherwise() -> None:
    samplers = [DistributedSampler(range(12), 3, rank, seed=4) for rank in range(3)]
    first = [list(sampler) for sampler in samplers]
    assert sorted(index for share in first for index in share) == list(range(12))
    assert first == [list(sampler) for sampler in samplers]
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != first[0]


def test_a_process_alone_draws_all() -> None:
    assert sorted(DistributedSampler(range(4))) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="Invalid rank 2"):
        DistributedSampler(range(4), num_replicas=2, rank=2)
