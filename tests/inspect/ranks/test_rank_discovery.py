"""All ranks of one job are found by what they say, and attached to together."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from gradscope.inspect.ranks.launch import rank_environments
from gradscope.inspect.ranks.rank_discovery import attach_ranks, find_ranks
from gradscope.inspect.wire.addresses import AddressError
from gradscope.inspect.wire.channel import ChannelError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs listen at Unix sockets")

SCRIPT = """\
import os
import gradscope as gs
x = gs.ones(3, requires_grad=True)
(x * (1 + int(os.environ["RANK"]))).sum().backward()
print("done", x.grad.tolist(), flush=True)
"""

TRAIN = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(3, requires_grad=True)
(x * (1 + dist.get_rank())).sum().backward()
dist.all_reduce(x.grad)
os.write(1, f"done {x.grad.tolist()}\\n".encode())  # in one piece: ranks share the pipe
dist.destroy_process_group()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


@pytest.fixture
def job(folder):
    """Start jobs of ranks that listen; end what is left of them."""
    started = []

    def start(count, missing=()):
        command = [sys.executable, "-m", "gradscope.debuggee", "script.py"]
        ranks = [
            subprocess.Popen(command, cwd=folder, env={**os.environ, **told}, stdout=-1, stderr=-1, text=True)
            for rank, told in enumerate(rank_environments(count))
            if rank not in missing
        ]
        started.extend(ranks)
        for rank in ranks:
            assert "listening" in rank.stderr.readline()
        return ranks

    yield start
    for rank in started:
        rank.kill()
        rank.communicate(timeout=60)


def attach(folder, *arguments):
    command = [sys.executable, "-m", "gradscope", "attach", "--ranks", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
def test_the_ranks_of_a_job_are_found_by_rank_and_others_are_not(job):
    first, second = job(2), job(2)
    with pytest.raises(AddressError, match="2 jobs of yours listen"):
        find_ranks(gathering=0)
    assert find_ranks(first[1].pid) == [rank.pid for rank in first]
    assert find_ranks(second[0].pid) == [rank.pid for rank in second]


@pytest.mark.slow
def test_ranks_that_do_not_listen_are_named(job, folder):
    with pytest.raises(AddressError, match="no job of yours listens"):
        find_ranks(gathering=0)
    job(3, missing=[1])
    with pytest.raises(AddressError, match="of 3 ranks these do not listen on this machine: 1"):
        find_ranks(gathering=0)


@pytest.mark.slow
def test_all_are_attached_to_or_none(job):
    ranks = job(2)
    pids = [rank.pid for rank in ranks]
    (second,) = attach_ranks(pids[1:])
    with pytest.raises(ChannelError, match="another front is attached"):
        attach_ranks(pids)
    second.detach()
    for debugger in attach_ranks(pids):
        debugger.detach()


@pytest.mark.slow
def test_a_session_with_ranks_that_wait_for_it(job, folder):
    ranks = job(2)
    run = attach(folder, "-c", "step; ranks; continue")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "node 1 of 3: MulBackward0, on 2 ranks\n" in run.stdout
    assert run.stdout.splitlines()[-1] == "all ranks of script.py have ended"
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["done [1.0, 1.0, 1.0]\n", "done [2.0, 2.0, 2.0]\n"]


@pytest.mark.slow
def test_leaving_lets_the_ranks_run_on(job, folder):
    ranks = job(2)
    run = attach(folder, "-c", "rank 1; quit")
    assert run.stdout.splitlines()[-1] == "2 ranks of script.py run on", run.stdout + run.stderr
    assert [rank.wait(60) for rank in ranks] == [0, 0]


def test_torchrun_starts_ranks_that_are_debugged_together(torch, folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "gradscope.debuggee", "train.py"]
    with subprocess.Popen(command, cwd=folder, stdout=-1, stderr=subprocess.STDOUT, text=True) as job:
        try:
            listening = 0
            while listening < 2:
                line = job.stdout.readline()
                assert line, "torchrun has ended"
                listening += "gradscope: listening at" in line
            run = attach(folder, "-c", "step; ranks; continue")
            assert "MulBackward0, on 2 ranks\n" in run.stdout, run.stdout + run.stderr
            assert len(re.findall("norm 1.732 ", run.stdout)) == 2
            said, _ = job.communicate(timeout=120)
        finally:
            job.terminate()
    assert said.count("done [3.0, 3.0, 3.0]") == 2, said
    assert job.returncode == 0
