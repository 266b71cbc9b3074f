"""A process knows its rank where its environment tells all of it, or its process group does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.inspect.ranks.agreement import agreement
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.records.own_rank import OwnRank, own_rank


@pytest.mark.parametrize(
    "told", [{}, {"RANK": "1"}, {"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2", "WORLD_SIZE": "2"}]
)
def test_a_process_that_is_no_rank_has_none(monkeypatch, told):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert own_rank() == OwnRank(None, 1, "")


def test_a_rank_knows_how_often_it_was_started_anew(monkeypatch):
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("TORCHELASTIC_RESTART_COUNT", "3")):
        monkeypatch.setenv(name, value)
    assert own_rank().restart == 3
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "many")
    assert own_rank().restart == 0


SPAWNED = """\
import sys
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import gradscope.inspect as gi

def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    with gi.record(f"{folder}/run/"):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(1 + rank)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, sys.argv[1:], nprocs=2)
"""


@pytest.mark.torch
def test_ranks_that_no_environment_names_are_named_by_their_process_group(torch, tmp_path):
    (tmp_path / "train.py").write_text(SPAWNED)
    told = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    path = {name: value for name, value in os.environ.items() if name not in told}
    path["PYTHONPATH"] = str(Path(__file__).parents[3])
    command = [sys.executable, "train.py", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "run").glob("*.gscope")) == ["rank-0.gscope", "rank-1.gscope"]
    with open_ranks(tmp_path / "run") as ranks:
        found = agreement(ranks)
    assert (bool(found), found.ranks, found.steps) == (True, (0, 1), 3)
