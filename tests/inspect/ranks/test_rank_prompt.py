"""One prompt over two gloo ranks: they stop together, a hang has a name, and a dead rank is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from gradscope.inspect.ranks.launch import rank_environments

TRAIN = """\
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(3, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(5, 3)).pow(2).mean().backward()
    optimizer.step()
with open(f"{sys.argv[1]}{dist.get_rank()}", "w") as file:
    file.write(str([p.tolist() for p in model.parameters()]))
print("done", flush=True)
dist.barrier()
os._exit(0)  # PyTorch's own threads may abort as they are taken down
"""

HANG = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(2, requires_grad=True)
(x * 2).sum().backward()
if dist.get_rank() == 1:
    dist.all_reduce(x.grad)
(x * 3).exp().sum().backward()
"""

KILLED = """\
import os, signal
import gradscope as gs
x = gs.ones(2, requires_grad=True)
(x * 2).sum().backward()
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
(x * 3).sum().backward()
"""

ONE_AFTER_THE_OTHER = """\
import os
import gradscope as gs
second = os.environ["RANK"] == "1"
if second:
    open("gate").read()
x = gs.ones(2, requires_grad=True)
(x * 3).sum().backward()
if not second:
    open("gate", "w").close()
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes have signals")


def debug(folder, script, commands, *arguments, options=("--nproc-per-node", "2")):
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "gradscope", "debug", *options, "-c", commands, "script.py"]
    return subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=200)


def test_stopping_and_stepping_leaves_the_parameters_as_they_are(torch, tmp_path):
    run = debug(tmp_path, TRAIN, "step 2; rank 1; next-backward; continue", "debugged")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"rank [01]: paused before node", run.stdout)  # of that which did not stop first
    assert "[rank 1] done" in run.stdout
    plain = [
        subprocess.Popen([sys.executable, "script.py", "plain"], cwd=tmp_path, env={**os.environ, **variables})
        for variables in rank_environments(2)
    ]
    assert [process.wait(200) for process in plain] == [0, 0]
    for rank in "01":
        assert (tmp_path / f"debugged{rank}").read_text() == (tmp_path / f"plain{rank}").read_text()


def test_a_rank_that_waits_in_a_collective_is_named(torch, tmp_path):
    run = debug(tmp_path, HANG, "break op:ExpBackward0; continue; rank; quit")
    assert "rank 1: runs; it waits in all_reduce, called at script.py:7" in run.stdout
    assert "> rank 0: paused before node 1: ExpBackward0, backward 2" in run.stdout


def test_a_killed_rank_is_shown_and_the_others_can_be_looked_at(tmp_path):
    run = debug(tmp_path, KILLED, "next-backward; rank 0; print; quit")
    assert "rank 1: script.py was killed by SIGKILL" in run.stdout, run.stdout
    assert "stopped before node 0 of 3: SumBackward0" in run.stdout
    assert run.returncode == 137


def test_under_non_stop_a_rank_is_not_paused_when_another_stops(tmp_path):
    os.mkfifo(tmp_path / "gate")
    options = ("--nproc-per-node", "2", "--non-stop")
    run = debug(tmp_path, ONE_AFTER_THE_OTHER, "continue; rank 1; step; continue", options=options)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "rank 1:\nstopped before node 0 of 3: SumBackward0 - first node of backward 1" in run.stdout
    assert "stopped before node 1 of 3: MulBackward0 - next node" in run.stdout
    assert "paused on request" not in run.stdout


def test_non_stop_is_about_ranks(tmp_path):
    run = debug(tmp_path, ONE_AFTER_THE_OTHER, "continue", options=("--non-stop",))
    assert run.returncode == 2
    assert run.stderr == "gradscope debug: --non-stop is about several ranks: add --nproc-per-node N\n"
