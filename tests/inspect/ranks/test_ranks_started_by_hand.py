"""Ranks that a person has started, each told its number as an argument: they learn it when their group is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import gradscope.inspect as gi
from gradscope.inspect.ranks.agreement import agreement
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from tests.inspect.recording.programs import mlp, train

TRAIN = """\
import sys, torch, torch.distributed as dist
place, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(1 + rank)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(5, 4)).square().mean().backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""


def be_rank(monkeypatch, rank, world=2):
    """Let this process be a rank of a process group."""
    told = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank, get_world_size=lambda: world
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", told)


def test_each_has_a_name_of_its_own_once_its_group_is_there(tmp_path, monkeypatch):
    for rank in range(2):
        monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
        with gi.record(tmp_path / "run.gscope") as recorder:
            be_rank(monkeypatch, rank)
            train(mlp(), 3)
        assert Path(recorder.path) == tmp_path / f"run-rank{rank}.gscope"
    with open_ranks(tmp_path) as ranks:
        found = [(member.rank, member.run.world, len(member.tasks())) for member in ranks.members]
        assert found == [(0, 2, 3), (1, 2, 3)]
        assert agreement(ranks).steps == 3


def test_a_file_that_another_rank_still_writes_is_not_taken_but_waited_for(tmp_path, monkeypatch):
    """Rank 1 has begun first, and so has the name that is rank 0's."""
    script = "import sys, gradscope.inspect as gi\nwith gi.record(sys.argv[1]): print('on', flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, f"{tmp_path}/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "on\n"
    with gi.record(f"{tmp_path}/") as recorder:
        be_rank(monkeypatch, 0)
        train(mlp(), 2)
        recorder.flush()
        assert Path(recorder.path).name.startswith("rank-0-")
        other.communicate("\n")
    assert Path(recorder.path).name == "rank-0.gscope"  # the other has ended, and its recording was replaced
    assert (recorder.failure, recorder.lost) == ("", 0)
    with gi.open_recording(recorder.path) as recording:
        assert len(recording.tasks()) == 2


def test_a_recording_is_not_finished_before_it_has_its_name(tmp_path, monkeypatch):
    """One that another rank finds finished, under the name that it waits for itself, is replaced."""
    script = "import sys, gradscope.inspect as gi\nwith gi.record(sys.argv[1]): print('on', flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, f"{tmp_path / 'run-rank1.gscope'}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout.readline() == "on\n"
    recorder = gi.record(tmp_path / "run.gscope").start()
    be_rank(monkeypatch, 1)
    train(mlp(), 2)
    stopping = threading.Thread(target=recorder.stop)
    stopping.start()
    for _ in range(20):
        with gi.open_recording(tmp_path / "run.gscope") as recording:
            assert recording.runs[0].state != "finished"
    other.communicate("\n")
    stopping.join()
    with gi.open_recording(tmp_path / "run-rank1.gscope") as recording:
        assert (recording.runs[0].state, len(recording.tasks())) == ("finished", 2)
    assert not (tmp_path / "run.gscope").exists()


@pytest.mark.torch
def test_two_processes_that_are_told_their_ranks(torch, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "gradscope", "record", "-o", "run/", "train.py", str(tmp_path / "group")]
    ranks = [subprocess.Popen([*command, str(rank)], cwd=tmp_path, stderr=subprocess.PIPE) for rank in range(2)]
    assert [rank.communicate(timeout=200)[1] and rank.returncode for rank in ranks] == [0, 0]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["rank-0.gscope", "rank-1.gscope"]
    with open_ranks(tmp_path / "run") as run:
        assert agreement(run).steps == 3
