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
kind, out = sys.argv[1:]
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
if kind == "DDP":
    model = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
torch.manual_seed(1 + dist.get_rank())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(5, 6)).pow(2).mean().backward()
    optimizer.step()
shards = [getattr(p, "_local_tensor", p).detach().contiguous() for p in model.parameters()]
with open(f"{out}{dist.get_rank()}", "wb") as file:
    file.write(b"".join(shard.numpy().tobytes() for shard in shards))
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
if dist.get_rank() != 0:
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


def holds_parameters_as_they_are(folder, kind, world):
    """Run a training plainly, and under a debugger that stops, steps and goes on; compare the bits of all ranks."""
    if kind == "FSDP2" and not hasattr(pytest.importorskip("torch.distributed.fsdp"), "fully_shard"):
        pytest.skip("PyTorch before 2.6 has no fully_shard()")
    commands = "step 2; into; rank 1; print; next-backward; step; continue"
    run = debug(folder, TRAIN, commands, kind, "debugged", options=("--nproc-per-node", str(world)))
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"rank [01]: paused before node", run.stdout)  # of one that did not stop first
    assert run.stdout.count("] done") == world
    plain = [
        subprocess.Popen([sys.executable, "script.py", kind, "plain"], cwd=folder, env={**os.environ, **variables})
        for variables in rank_environments(world)
    ]
    try:
        assert [process.wait(200) for process in plain] == [0] * world
    finally:
        for process in plain:
            process.kill()
            process.wait()
    for rank in range(world):
        found = (folder / f"debugged{rank}").read_bytes()
        assert found
        assert found == (folder / f"plain{rank}").read_bytes()


@pytest.mark.parametrize("kind", ["DDP", "FSDP2"])
def test_stopping_and_stepping_leaves_the_parameters_of_two_ranks_as_they_are(torch, tmp_path, kind):
    holds_parameters_as_they_are(tmp_path, kind, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DDP", "FSDP2"])
def test_stopping_and_stepping_leaves_the_parameters_of_four_ranks_as_they_are(torch, tmp_path, kind):
    holds_parameters_as_they_are(tmp_path, kind, 4)


@pytest.mark.parametrize("world", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_that_wait_in_a_collective_are_named(torch, tmp_path, world):
    commands = "break op:ExpBackward0; continue; rank; rank 1; quit"
    run = debug(tmp_path, HANG, commands, options=("--nproc-per-node", str(world)))
    for rank in range(1, world):
        place = "waits in all_reduce, called at script.py:7; it will stop when that returns"
        assert f"rank {rank}: runs; it {place}" in run.stdout
    stack = run.stdout.rpartition("it will stop when that returns\n")[2]
    assert re.match(r'  File ".*script.py", line 7, in <module>\n    dist.all_reduce', stack), "where it waits is shown"
    assert "> rank 0: paused before node 1: ExpBackward0, backward 2" in run.stdout


@pytest.mark.slow
def test_a_killed_rank_is_shown_and_the_others_can_be_looked_at(tmp_path):
    run = debug(tmp_path, KILLED, "next-backward; rank 0; print; quit")
    assert "rank 1: script.py was killed by SIGKILL" in run.stdout, run.stdout
    assert "stopped before node 0 of 3: SumBackward0" in run.stdout
    assert run.returncode == 137


@pytest.mark.slow
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
