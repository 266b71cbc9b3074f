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
        return 1 + (tasks[-1].iteration or 0) if tasks else 0


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
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
