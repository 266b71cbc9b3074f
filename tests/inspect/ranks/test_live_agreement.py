"""Ranks that compare themselves while they train; test_agreement.py runs all healthy programs so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

from gradscope.cli import main
from gradscope.inspect.ranks.live_agreement import _KEPT, _Exchange
from gradscope.inspect.records.before_step.step_looks import StepLook

TRAIN = """\
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(1 + dist.get_rank())
for number in range(4):
    optimizer.zero_grad()
    model(torch.randn(5, 4)).square().mean().backward()
    if number == 2 and {broken}:
        model.module.bias.grad += dist.get_rank()
    optimizer.step()
dist.destroy_process_group()
"""


def check(folder, broken):
    (folder / "train.py").write_text(TRAIN.format(broken=broken))
    return launch(folder)


def launch(folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "gradscope", "check", "--ranks", "train.py"]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, env=path)


@pytest.mark.torch
def test_the_script_ends_at_the_first_disagreement(torch, tmp_path):
    done = check(tmp_path, broken=True)
    assert done.returncode == 1, done.stderr
    assert "2 ranks disagree: before step 3, gradient module.bias\n" in done.stdout
    assert "likely cause: the gradient was reduced and then changed on each rank" in done.stdout
    assert "before that they agreed in 2 steps\n" in done.stdout


@pytest.mark.torch
def test_ranks_that_agree_end_as_they_would(torch, tmp_path):
    done = check(tmp_path, broken=False)
    told = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]  # PyTorch 2.8 does
    assert (done.returncode, told) == (0, ["rank 1: 4 steps agreed with rank 0's"]), done.stderr


FAILS = """\
from gradscope.inspect.records.before_step import step_looks
import torch.distributed as dist
look, calls = step_looks.StepLooker.look, []
def broken(self, optimizer):
    calls.append(None)
    if len(calls) > 2 and dist.get_rank() == {rank}:
        raise ZeroDivisionError("a bug")
    return look(self, optimizer)
step_looks.StepLooker.look = broken
"""


@pytest.mark.torch
@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_of_gradscopes_own_ends_no_rank_and_none_waits_for_it(torch, tmp_path, rank):
    training = FAILS.format(rank=rank) + TRAIN.replace("range(4)", "range(100)")
    (tmp_path / "train.py").write_text(training.format(broken=False) + "print('trained')\n")
    started = time.monotonic()
    done = launch(tmp_path)
    assert time.monotonic() - started < 60  # to wait for each step would take ten minutes
    told = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert (done.returncode, told.count("trained")) == (0, 2), done.stderr
    own = "no longer compared: gradscope's own code failed"
    assert f"gradscope check: rank {rank}: {own}; please report it: ZeroDivisionError: a bug (train.py:" in done.stderr
    ends = sorted(line for line in told if line != "trained")
    if rank == 0:
        assert ends[0].startswith(f"rank 0: {own}; please report it: ZeroDivisionError: a bug (train.py:")
        assert ends[1:] == [f"rank 1: {own} in rank 0"]
    else:
        (end,) = ends
        assert end.startswith(f"rank 1: {own}; please report it: ZeroDivisionError: a bug (train.py:")


def look_at_step(number):
    """Return what a rank without parameters holds before a step."""
    nothing = numpy.zeros(0)
    return StepLook(0, number, (), nothing, nothing, nothing, nothing)


@pytest.mark.torch
def test_a_store_keeps_the_newest_steps_of_a_rank_alone(torch):
    store = torch.distributed.HashStore()
    told, heard, slow = (_Exchange(store, 0, 0) for _ in range(3))
    told.publish(look_at_step(1))
    assert slow.next().number == 1
    followed = []
    for number in range(2, 300):
        told.publish(look_at_step(number))
        followed += [look.number for look in iter(heard.next, None)]
    assert followed == [*range(1, 300)]
    assert store.num_keys() == _KEPT + 1  # that of the layout
    assert slow.next() is None  # its second step has been replaced


def test_a_process_that_is_no_rank_is_told_how_to_start(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    assert main(["check", "--ranks", "train.py"]) == 2
    assert "Start it with `torchrun --nproc-per-node N -m gradscope check --ranks SCRIPT`" in capsys.readouterr().err
