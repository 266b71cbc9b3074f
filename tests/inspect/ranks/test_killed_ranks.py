"""Ranks that are killed at any moment of a long run: the recordings of all ranks can be read all the while."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gradscope.inspect as gi
from gradscope.inspect.ranks.agreement import agreement
from gradscope.inspect.ranks.recorded_ranks import open_ranks

WORLD = 3

TRAIN = """\
import gradscope as gs
model = gs.nn.Sequential(gs.nn.Linear(4, 8), gs.nn.Tanh(), gs.nn.Linear(8, 2))
optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(gs.ones(3, 4)).square().mean().backward()
    optimizer.step()
"""


ELASTIC = """\
import os, signal
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, restart = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.full((2, 4), 1.0 + rank + step)).mean().backward()
    optimizer.step()
    if (rank, restart, step) == (1, 0, 2):
        os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
"""


def start(folder: Path, rank: int, restart: int) -> subprocess.Popen[bytes]:
    """Start a rank as torchrun does, for the first time or anew."""
    told = {"RANK": rank, "WORLD_SIZE": WORLD, "MASTER_ADDR": "here", "MASTER_PORT": 29500}
    told["TORCHELASTIC_RESTART_COUNT"] = restart
    environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    # Budgets, so that iterations go out of the file as well while the rank is killed.
    command = [sys.executable, "-m", "gradscope", "record", "-o", "run/", "--keep", "all", "--rows", "500", "train.py"]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)


def iterations_of(path: Path, run: int) -> int:
    """Return how many iterations of a run have come into a file by now; 0 where there is none yet."""
    if not path.exists():
        return 0
    with gi.open_recording(path) as recording:
        tasks = recording.tasks(run=run)
        return tasks[-1].iteration if tasks else 0


@pytest.mark.parametrize("kills", [pytest.param(4, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)])
def test_recordings_of_all_ranks_are_readable_after_each_kill(kills, tmp_path):
    draw = random.Random(kills)
    (tmp_path / "train.py").write_text(TRAIN)
    restarts = dict.fromkeys(range(WORLD), 0)
    ranks = {rank: start(tmp_path, rank, 0) for rank in restarts}
    paths = [tmp_path / "run" / f"rank-{rank}.gscope" for rank in restarts]
    try:
        for _ in range(kills):
            rank = draw.randrange(WORLD)
            wait_for(paths[rank], restarts[rank] + 1, draw.randint(1, 40))
            ranks[rank].kill()
            assert ranks[rank].wait() == -9
            assert_readable(paths[rank], restarts[rank] + 1)
            restarts[rank] += 1
            ranks[rank] = start(tmp_path, rank, restarts[rank])
        for rank, path in enumerate(paths):
            wait_for(path, restarts[rank] + 1, 1)
    finally:
        for process in ranks.values():
            process.kill()
            process.wait()
    for rank, path in enumerate(paths):
        assert_readable(path, restarts[rank] + 1)


def wait_for(path: Path, run: int, iterations: int) -> None:
    """Wait until so many iterations of a run are on the disk."""
    end = time.monotonic() + 60
    while iterations_of(path, run) < iterations:
        assert time.monotonic() < end, f"{path} does not grow"
        time.sleep(0.02)


def assert_readable(path: Path, runs: int) -> None:
    """Read all that is in a recording."""
    with gi.open_recording(path) as recording:
        assert [run.id for run in recording.runs] == list(range(1, runs + 1))
        for task in recording.tasks():
            assert len(list(task.nodes)) <= task.count


@pytest.mark.slow
@pytest.mark.torch
def test_a_job_that_torchrun_starts_anew_goes_on_in_the_same_recordings(torch, tmp_path):
    (tmp_path / "train.py").write_text(ELASTIC)
    # The store that the ranks of both starts share has the addresses of those that are gone: PyTorch itself fails then.
    environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "1", "-m", "gradscope", "record", "-o", "run/", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    with open_ranks(tmp_path / "run") as ranks:
        assert [(m.rank, m.run.restart, m.run.state, len(m.tasks())) for m in ranks.members] == [
            (rank, 1, "finished", 4) for rank in range(2)
        ]
        killed = ranks.member(1).recording.runs[0]
        assert (killed.restart, killed.ended) == (0, None)
        found = agreement(ranks)
    assert (bool(found), found.steps) == (True, 4)
