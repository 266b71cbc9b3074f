"""Timeouts of process groups while a front is attached, and afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from unittest import mock

import pytest

from gradscope.inspect.wire.process_groups import LONG, StretchedTimeouts

SLOW_LOOK = """\
import datetime, os
import torch
import torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
x = torch.ones(2, requires_grad=True)
(x * 2).sum().backward()
if dist.get_rank() == 0:
    (x * 3).exp().sum().backward()
dist.all_reduce(x.grad)
print("summed", flush=True)
os._exit(0)  # PyTorch's own threads may abort as they are taken down
"""


@pytest.fixture
def groups(torch):
    """Make two groups of one rank, with timeouts of their own; yield their backends."""
    dist = torch.distributed
    seconds = [timedelta(seconds=30), timedelta(seconds=20)]
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=seconds[0])
    made = [dist.group.WORLD, dist.new_group([0], timeout=seconds[1])]
    yield [group._get_backend(torch.device("cpu")) for group in made]
    dist.destroy_process_group()


def timeouts(backends):
    return [backend.options._timeout for backend in backends]


def test_they_are_long_meanwhile_and_as_before_afterwards(groups, capsys):
    before = timeouts(groups)
    stretched = StretchedTimeouts()
    with mock.patch.dict(os.environ, RANK="0"):
        stretched.stretch()
        stretched.stretch()
    assert timeouts(groups) == [LONG, LONG]
    assert capsys.readouterr().err.count("collectives wait up to 7 days") == 1
    stretched.restore()
    assert timeouts(groups) == before


def test_a_group_that_is_made_later_is_stretched_too(groups, torch):
    stretched = StretchedTimeouts()
    stretched.stretch()
    later = torch.distributed.new_group([0], timeout=timedelta(seconds=9))
    stretched.stretch()
    backend = later._get_backend(torch.device("cpu"))
    assert timeouts([backend]) == [LONG]
    stretched.restore()
    assert timeouts([backend]) == [timedelta(seconds=9)]


def test_what_the_program_has_set_meanwhile_stays(groups):
    stretched = StretchedTimeouts()
    stretched.stretch()
    groups[0]._set_default_timeout(timedelta(seconds=5))
    stretched.restore()
    assert timeouts(groups) == [timedelta(seconds=5), timedelta(seconds=20)]


def test_another_rank_than_the_first_says_nothing(groups, capsys):
    with mock.patch.dict(os.environ, RANK="1"):
        StretchedTimeouts().stretch()
    assert capsys.readouterr().err == ""
    for backend in groups:
        backend._set_default_timeout(timedelta(seconds=30))


@pytest.mark.skipif(os.name != "posix", reason="processes have signals")
@pytest.mark.slow  # it waits for a timeout of real seconds, on two ranks
def test_a_look_may_take_longer_than_the_timeout(torch, tmp_path):
    (tmp_path / "script.py").write_text(SLOW_LOOK)
    look = "next-backward; rank 0; eval __import__('time').sleep(6); continue; continue"
    command = [sys.executable, "-m", "gradscope", "debug", "--nproc-per-node", "2", "-c", look, "script.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "rank 1: runs; it waits in all_reduce, called at script.py:9" in run.stdout
    assert (run.stdout.count("] summed"), run.stderr.count("collectives wait up to 7 days")) == (2, 1)
