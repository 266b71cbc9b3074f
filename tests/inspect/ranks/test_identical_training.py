"""Ranks compute the same numbers, bit for bit, while they are recorded, checked and compared with each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.inspect.ranks.recorded_ranks import open_ranks

PROGRAM = Path(__file__).with_name("parallel_programs.py")
WAYS = ("data_parallel", "fully_sharded", "tensor_parallel", "pipeline")


@pytest.mark.torch
@pytest.mark.parametrize("world", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_gradients_and_weights_are_those_of_the_plain_run(torch, world, tmp_path):
    if not hasattr(pytest.importorskip("torch.distributed.fsdp"), "fully_shard"):
        pytest.skip("PyTorch before 2.6 has not all ways to spread a model")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    root = Path(__file__).parents[3]
    command += [str(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    for way in WAYS:
        with open_ranks(tmp_path / way) as ranks:
            assert [(member.rank, member.run.state) for member in ranks.members] == [
                (rank, "finished") for rank in range(world)
            ]
            assert all(task.count for member in ranks.members for task in member.tasks())
            assert all(len(list(member.recording.steps(member.run.id))) == 3 for member in ranks.members)
