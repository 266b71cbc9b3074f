"""Ranks that wait for each other are named, each with the collective and its line."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.adapters import event_guards
from gradscope.inspect.ranks.agreement import agreement
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.ranks.run_view import ranks_text
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.recorder import hang_watch
from gradscope.inspect.records.before_step.step_looks import StepLooker
from gradscope.inspect.source.source_paths import started_here
from tests.inspect.ranks.jobs import being_rank, record_ranks
from tests.inspect.recording.programs import mlp, train

LIBRARY = """\
import time
import gradscope.inspect as gi

def {name}(path):
    end = time.monotonic() + 60
    while True:
        with gi.open_recording(path) as recording:
            if any(event.text.startswith("waits in {name}") for event in recording.events()):
                return
        assert time.monotonic() < end, f"nothing is noted in {{path}}"
        time.sleep(0.02)
"""

PROGRAM = """\
import sys
from datetime import timedelta
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
how = sys.argv[1]
dist.init_process_group("gloo", timeout=timedelta(seconds=8))
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Linear(4, 2)
if how in ("leaves_before_a_backward", "skips"):
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    if rank == 1 and step == 2 and how != "skips":
        if how == "barrier":
            dist.barrier()
        else:
            break
    optimizer.zero_grad()
    loss = model(torch.full((2, 4), 1.0 + rank)).square().mean()
    if rank == 1 and step == 2 and how == "skips":
        loss = loss * float("nan")
    if not loss.isfinite():
        continue
    loss.backward()
    if how not in ("leaves_before_a_backward", "skips"):
        for p in model.parameters():
            dist.all_reduce(p.grad)
    optimizer.step()
dist.barrier()
"""


def collective(name):
    """Return what stands where PyTorch's collectives do; it returns when a recording says that the rank waits in it."""
    space = {}
    exec(compile(LIBRARY.format(name=name), "site-packages/torch/distributed/distributed_c10d.py", "exec"), space)
    return space[name]


@pytest.fixture
def impatient(monkeypatch):
    """Note at once where a rank is silent."""
    monkeypatch.setattr(hang_watch.HangWatch.__init__, "__defaults__", (0.0,))


def found_in(folder):
    """Return what is found of ranks that agree as far as they came."""
    with open_ranks(folder) as ranks:
        found = agreement(ranks)
    assert found
    return found


def status_of(capsys, folder):
    """Return the exit status of `gradscope agree`, and its first line."""
    return main(["agree", str(folder)]), capsys.readouterr().out.splitlines()[0]


def hang(folder, rank, name, *, fails=True):
    """Record two steps and then a collective that does not return."""
    with being_rank(rank, 2), gi.record(f"{folder}/") as recorder:
        train(mlp(), 2)
        recorder.flush()
        collective(name)(recorder.path)
        if fails:
            raise RuntimeError("Timed out")


@pytest.mark.slow
def test_ranks_in_different_collectives_wait_for_each_other(tmp_path, impatient, capsys):
    for rank, name in enumerate(("all_reduce", "barrier")):
        with pytest.raises(RuntimeError, match="Timed out"):
            hang(tmp_path, rank, name)
    line = hang.__code__.co_firstlineno + 5
    zero, one = (f"{name}, called at test_rank_ends.py:{line}" for name in ("all_reduce", "barrier"))
    assert status_of(capsys, tmp_path) == (
        1,
        "2 ranks agree: 4 parameters and buffers and their gradients in 2 steps, and hang then",
    )
    assert found_in(tmp_path).notes == (
        f"rank 0 failed: RuntimeError: Timed out, at test_rank_ends.py:{line + 2}",
        f"rank 0, when last seen: waits in {zero}, behind its training loop",
        f"rank 1 failed: RuntimeError: Timed out, at test_rank_ends.py:{line + 2}",
        f"rank 1, when last seen: waits in {one}, behind its training loop",
        f"they wait for each other (rank 0 in {zero}; rank 1 in {one}): "
        "all ranks must call the same collectives in the same order",
    )


GLOO = (
    "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:40839. This is typically caused by a remote worker crashing. Check the logs of the remote worker "
    "before reporting an error. GLHF! \N{BEACH WITH UMBRELLA}\N{VARIATION SELECTOR-16}"
)


@pytest.mark.parametrize(
    ("raised", "told"),
    [(GLOO, "Connection closed by peer [127.0.0.1]:40839"), ("[1, 2] differ. Check", "[1, 2] differ. Check")],
)
@pytest.mark.parametrize("where", ["the loop", "a backward"])
def test_an_error_is_quoted_without_what_gloo_adds_to_it(where, raised, told, tmp_path):
    def fail(*_):
        raise RuntimeError(raised)

    def run():
        train(mlp(), 1)
        if where == "a backward":
            x = gs.ones(1, requires_grad=True)
            x.register_hook(fail)
            x.exp().backward()
        fail()

    for rank in range(2):
        with being_rank(rank, 2), pytest.raises(RuntimeError), gi.record(f"{tmp_path}/"):
            run()
    failed = next(note for note in found_in(tmp_path).notes if "failed" in note)
    assert f"RuntimeError: {told}" in failed
    assert failed.endswith(told) or failed.partition(f"{told}, at test_rank_ends.py:")[2].isdigit()


def test_ranks_that_fail_before_their_first_step_say_so(tmp_path):
    for rank in range(2):
        with pytest.raises(ZeroDivisionError), being_rank(rank, 2), gi.record(f"{tmp_path}/"):
            print(1 / 0)
    with open_ranks(tmp_path) as ranks, pytest.raises(RecordingError) as caught:
        agreement(ranks)
    head, *told = str(caught.value).splitlines()
    assert head.endswith("no rank has recorded a step of an optimizer")
    assert [line.partition(", at ")[0] for line in told] == [
        f"rank {rank} failed: ZeroDivisionError: division by zero" for rank in range(2)
    ]


def test_a_rank_that_has_come_to_its_end_is_waited_for(tmp_path, impatient):
    with pytest.raises(RuntimeError, match="Timed out"):
        hang(tmp_path, 0, "all_reduce")
    with being_rank(1, 2), gi.record(f"{tmp_path}/"):
        train(mlp(), 1)
    assert found_in(tmp_path).hang
    note = found_in(tmp_path).notes[-1]
    assert note.startswith("rank 1 came to the end of the program after step 1 (")
    line = hang.__code__.co_firstlineno + 5
    assert f") while rank 0 waits in all_reduce, called at test_rank_ends.py:{line}: fewer batches, or a" in note


def test_a_rank_that_skips_an_iteration_and_ends_leaves_one_that_fails(tmp_path, capsys):
    """No rank need be silent for it: the connection to the one that has ended breaks at once."""
    for rank in range(2):
        with being_rank(rank, 2), suppress(ConnectionError), gi.record(f"{tmp_path}/"):
            skipping(mlp(), 1 if rank else None)
    status, first = status_of(capsys, tmp_path)
    assert (status, first.endswith(" in 2 steps, and hang then")) == (1, True)
    notes = found_in(tmp_path).notes
    assert notes[0] == "rank 0 failed in backward 3 of iteration 3: ConnectionError: closed by peer"
    (skip,) = [note for note in notes if note.startswith("rank 1 skipped an iteration after step 1 (")]
    assert f":{skipping.__code__.co_firstlineno + 5}, whose loss was nan; the others ran theirs" in skip
    assert notes[-1] == "rank 1 came to the end of the program while others wait in a collective"


def test_a_rank_whose_forward_fails_has_skipped_nothing(tmp_path):
    def fail(*_):
        raise ConnectionError("closed by peer")

    for rank in range(2):
        with being_rank(rank, 2), suppress(ConnectionError), gi.record(f"{tmp_path}/"):
            model = mlp()
            train(model, 1, 0.1)
            if rank:
                model.register_forward_hook(fail)
            train(model, 1, 0.1)
    assert not any("skipped" in note for note in found_in(tmp_path).notes)


def test_a_rank_that_ends_while_another_fails_in_a_collective_has_left_it(tmp_path):
    """No rank need be silent for it: the connection to the one that has ended breaks at once."""
    for rank in range(2):
        with being_rank(rank, 2), suppress(RuntimeError), gi.record(f"{tmp_path}/"):
            train(mlp(), 1)
            if rank == 0:
                broken()
    found = found_in(tmp_path)
    line = broken.__code__.co_firstlineno + 5
    assert found.notes[0] == f"rank 0 failed: RuntimeError: closed by peer, in all_reduce, at test_rank_ends.py:{line}"
    assert found.notes[-1].startswith("rank 1 came to the end of the program after step 1 (")
    assert f" while rank 0 waits in all_reduce, called at test_rank_ends.py:{line}: fewer" in found.notes[-1]
    assert found.hang


def broken():
    """Call a collective that fails."""
    space = {}
    fails = "def all_reduce():\n    raise RuntimeError('closed by peer')"
    exec(compile(fails, "site-packages/torch/distributed/distributed_c10d.py", "exec"), space)
    space["all_reduce"]()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyboardInterrupt("twice")])
def test_a_rank_that_was_interrupted_has_not_come_to_its_end(tmp_path, impatient, error):
    with pytest.raises(RuntimeError, match="Timed out"):
        hang(tmp_path, 0, "all_reduce")
    with being_rank(1, 2), suppress(KeyboardInterrupt), gi.record(f"{tmp_path}/"):
        train(mlp(), 1)
        raise error
    notes = found_in(tmp_path).notes
    assert any(note.startswith("rank 1 was interrupted at test_rank_ends.py:") for note in notes)
    assert not any("came to the end" in note for note in notes)


@pytest.mark.parametrize("skips", [(1, 1), (None, None)])
def test_ranks_that_skip_alike_are_not_named(tmp_path, skips):
    for rank, skip in enumerate(skips):
        with being_rank(rank, 2), suppress(ConnectionError), gi.record(f"{tmp_path}/"):
            skipping(mlp(), skip)
    assert not any("skipped" in note for note in found_in(tmp_path).notes)


def skipping(model, skip):
    """Train three iterations, or skip one of them; a third step fails, as where the others are gone."""
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    for number in range(3):
        optimizer.zero_grad()
        loss = model(gs.ones(2, 3) * (float("nan") if number == skip else 1.0)).sum()
        if not loss.isfinite():
            continue
        if number == 2 and skip is None:
            loss.register_hook(closed)
        loss.backward()
        optimizer.step()


def closed(grad):
    raise ConnectionError("closed by peer")


KILLED = """
import os, signal
import gradscope.inspect as gi
with gi.record("{folder}/") as recorder:
    recorder.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_rank_that_was_killed_before_it_began_is_named(tmp_path, capsys):
    with being_rank(0, 2), pytest.raises(ZeroDivisionError), gi.record(f"{tmp_path}/"):
        raise ZeroDivisionError("closed by peer")
    with being_rank(1, 2):
        subprocess.run([sys.executable, "-c", KILLED.format(folder=tmp_path)], check=False)
    assert main(["agree", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "rank 1 was killed before its first backward"


def test_a_rank_that_others_go_on_without_may_have_had_no_room_to_write(tmp_path):
    record_ranks(tmp_path, 2, [0], steps=4)
    record_ranks(tmp_path, 2, [1], steps=2)
    for rank, sql in ((1, "UPDATE runs SET state = 'running', pid = 4194305"), (0, "UPDATE steps SET time = id * 4e9")):
        with closing(sqlite3.connect(tmp_path / f"rank-{rank}.gscope")) as file, file:
            file.execute(sql)
    cut, node = found_in(tmp_path).notes
    ends = "was killed, or could not write any more, as on a full disk: steps of others follow for 16 s"
    assert cut == f"rank 1 took 2 of 4 steps: it {ends}; compared as far as it came"
    assert node.startswith(f"rank 1 {ends}; its last node, in backward 2")


def test_a_rank_that_waited_and_went_on_is_not_named(tmp_path, impatient):
    hang(tmp_path, 0, "barrier", fails=False)
    with being_rank(1, 2), gi.record(f"{tmp_path}/") as recorder:
        train(mlp(), 2)
        recorder.flush()
        collective("barrier")(recorder.path)
        gs.ones(2, requires_grad=True).sum().backward()
        recorder.flush()
        found = found_in(tmp_path)
        (note,) = [note for note in found.notes if "barrier" in note or note.startswith("rank 1 runs")]
    assert note.startswith("rank 1 runs still; its last node, in backward 3")
    assert not found.hang


def test_what_one_process_alone_raises_is_no_event(tmp_path):
    recorder = gi.record(tmp_path / "run.gscope").start()
    train(mlp(), 1)
    recorder.stop(RuntimeError("nobody waits"))
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert recording.events() == []


HANGS = {
    "leaves_early": ("all_reduce, called at train.py:29", "barrier, called at train.py:31"),
    "barrier": ("all_reduce, called at train.py:29", "barrier, called at train.py:17"),
    "leaves_before_a_backward": ("backward(), called at train.py:26", "barrier, called at train.py:31"),
}

SKIPS = {
    "skips": (
        "rank 1 skipped an iteration after step 2 (train.py:30): no backward followed the forward at train.py:21, "
        "whose loss was nan; the others ran theirs. Since then it is 1 backward behind"
    ),
    "leaves_before_a_backward": (
        "rank 1 left its training loop after step 2 (train.py:30) and waits in barrier, called at train.py:31, while "
        "rank 0 waits in backward(), called at train.py:26, in the loop still: fewer batches, or a break?"
    ),
}
"""What is said of a rank that runs fewer backwards than others."""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", HANGS)
def test_a_job_that_hangs_says_who_waits_where(torch, tmp_path, how):
    record_hang(tmp_path, how)
    zero, one = HANGS[how]
    told = f"they wait for each other (rank 0 in {zero}; rank 1 in {one}): all ranks must call the same"
    if how != "barrier":
        told = f"and waits in {one}, while rank 0 waits in {zero}, in the loop still: fewer batches, or a break?"
    assert told in "\n".join(found_in(tmp_path / "run").notes)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", SKIPS)
def test_a_rank_that_ran_fewer_backwards_is_named(torch, tmp_path, monkeypatch, how):
    record_hang(tmp_path, how)
    monkeypatch.chdir(tmp_path)
    started_here()
    found = found_in(tmp_path / "run")
    assert any(note.startswith(SKIPS[how]) for note in found.notes), found.notes
    assert found.hang


def record_hang(folder, how):
    """Record a job that hangs until its collectives time out."""
    (folder / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "gradscope", "record", "-o", "run/", "train.py", how]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize("step", [3, 4])
def test_a_rank_whose_recording_has_stopped_neither_disagrees_nor_was_killed(tmp_path, monkeypatch, step):
    monkeypatch.setattr(event_guards, "raising", False)
    record_ranks(tmp_path, 2, [0], steps=4)
    look, calls = StepLooker.look, []

    def broken(self, optimizer):
        calls.append(None)
        if len(calls) == step:
            raise ZeroDivisionError("a bug")
        return look(self, optimizer)

    monkeypatch.setattr(StepLooker, "look", broken)
    record_ranks(tmp_path, 2, [1], steps=4)
    with open_ranks(str(tmp_path)) as ranks:
        found = agreement(ranks)
        assert "recording has stopped in iteration" in ranks_text(ranks)
    assert (bool(found), found.hang, found.steps) == (True, False, step - 1)
    shorter, stopped = found.notes
    assert shorter == f"rank 1 took {step - 1} of 4 steps: its recording has stopped; compared as far as it came"
    own = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (test_rank_ends.py:"
    assert stopped.startswith(f"rank 1: recording has stopped in iteration {step}: {own}")
