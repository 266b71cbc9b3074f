"""Ranks are compared with those that hold the same stage of a pipeline, and with no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import gradscope.inspect as gi
from gradscope.inspect.ranks.agreement import Disagreement, agreement, held_at
from gradscope.inspect.ranks.agreement_report import agreement_text
from gradscope.inspect.ranks.disagreement_causes import likely_cause
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.ranks.replicas import replicas
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.step_rows import StepRecord
from gradscope.inspect.records.before_step.step_looks import OUTSIDE, REDUCED, HeldTensor, StepLook
from tests.inspect.ranks.jobs import being_rank
from tests.inspect.recording.programs import mlp, train

PROGRAMS = Path(__file__).with_name("replicated_stages.py")
STAGES = "each of these is compared for itself, as a stage of a pipeline: ranks 0, 2; ranks 1, 3"


def step(*held):
    """Return a step, of (name, kind, part, group, value) of each tensor."""
    tensors = tuple(HeldTensor(name, (2,), "float32", part, kind, True, group) for name, kind, part, group, _ in held)
    values = numpy.array([value for *_, value in held], numpy.uint64)
    look = StepLook(0, 0, tensors, values, values, values > 0, values * 1.0)
    return StepRecord(1, 0, 1, 0, look)


def plain(value, group="", kind=OUTSIDE):
    return step(("0.weight", kind, "", group, value), ("norm.weight", kind, "", group, 1))


def test_what_is_spread_over_all_ranks_joins_those_that_share_other_parameters_in_pairs():
    """Tensor parallelism in FSDP2: a norm is spread over a pair, and a bias held twice is compared all the same."""
    steps = {
        rank: step(
            ("0.bias", OUTSIDE, f"Shard(0) {1 + rank // 2} of 2", "", rank // 2),
            ("norm.weight", OUTSIDE, f"Shard(0) {1 + rank // 2} of 2", f"{rank % 2}, {rank % 2 + 2}", rank // 2),
        )
        for rank in range(4)
    }
    assert replicas(steps) == [(0, 1, 2, 3)]


def test_ranks_that_are_reduced_in_parts_are_told():
    steps = {rank: plain(value) for rank, value in enumerate([5, 5, 7, 7])}
    held = {rank: held_at(step, 0, "gradients") for rank, step in steps.items()}
    tensor = steps[0].look.tensors[0]
    assert (
        "reduced in parts of the job: ranks 0, 1; ranks 2, 3"
        in likely_cause(Disagreement("gradient", tensor, held, ("norm.weight",), steps, {})).text
    )


def test_a_wrapper_of_all_ranks_makes_all_replicas_whatever_they_hold():
    assert replicas({0: plain(1, kind=REDUCED), 1: plain(2, kind=REDUCED)}) == [(0, 1)]


def test_wrappers_of_some_ranks_make_stages_also_of_equal_weights():
    groups = ("0, 2", "1, 3", "0, 2", "1, 3")
    steps = {rank: plain(7, group, REDUCED) for rank, group in enumerate(groups)}
    assert replicas(steps) == [(0, 2), (1, 3)]


def test_ranks_over_which_a_stage_is_spread_belong_together():
    def shard(rank):
        group = "0, 1" if rank < 2 else "2, 3"
        return step(("0.weight", OUTSIDE, f"Shard(0) {rank % 2 + 1} of 2", group, rank), ("norm", OUTSIDE, "", "", 1))

    assert replicas({rank: shard(rank) for rank in range(4)}) == [(0, 1), (2, 3)]


def test_where_nothing_tells_ranks_with_equal_parameters_are_replicas():
    assert replicas({rank: plain(5) for rank in range(4)}) == [(0, 1, 2, 3)]
    assert replicas({rank: plain(rank % 2) for rank in range(4)}) == [(0, 2), (1, 3)]


@pytest.mark.parametrize("values", [(1, 2), (1, 1, 1, 2), (1, 2, 3, 4)])
def test_a_model_that_one_rank_alone_holds_is_no_stage_of_replicas(values):
    with pytest.raises(RecordingError, match="different models from their first step on"):
        replicas({rank: plain(value) for rank, value in enumerate(values)})


def record_stages(folder, lr=(0.1, 0.3, 0.1, 0.3)):
    """Record four ranks, of which each trains one of two stages."""
    for rank in range(4):
        with being_rank(rank, 4), gi.record(f"{folder}/"):
            train(mlp(seed=rank % 2), 3, lr[rank])


def test_stages_are_compared_each_for_itself(tmp_path):
    record_stages(tmp_path)
    with open_ranks(tmp_path) as ranks:
        found = agreement(ranks)
    assert (bool(found), found.steps, found.tensors, found.notes) == (True, 3, 8, (STAGES,))


def test_the_replica_of_a_stage_that_differs_is_named_beside_the_other_alone(tmp_path):
    record_stages(tmp_path, lr=(0.1, 0.3, 0.1, 0.2))
    with open_ranks(tmp_path) as ranks:
        found = agreement(ranks)
    assert (found.parted.name, sorted(found.parted.held), found.parted.iteration) == ("0.weight", [1, 3], 2)
    told = "the optimizers step differently: the learning rate is 0.3 on rank 1, 0.2 on rank 3"
    assert likely_cause(found.parted).text == told
    assert agreement_text(found).splitlines()[-1] == f"note: {STAGES}"


@pytest.mark.slow
@pytest.mark.torch
def test_stages_that_torchrun_starts(torch, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    root = Path(__file__).parents[3]
    command += [str(PROGRAMS), str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("wrapped", "reduced_by_hand", "wrapped_with_equal_weights"):
        with open_ranks(tmp_path / name) as ranks:
            found = agreement(ranks)
        assert (found.parted, found.steps, found.tensors, found.notes) == (None, 3, 4, (STAGES,)), name
    with open_ranks(tmp_path / "sharded") as ranks:
        found = agreement(ranks)
    assert (found.parted, found.steps, found.tensors) == (None, 3, 0)
    with open_ranks(tmp_path / "one_replica_scales") as ranks:
        found = agreement(ranks)
    assert (found.parted.what, found.parted.name, sorted(found.parted.held)) == ("gradient", "module.0.weight", [1, 3])
    assert likely_cause(found.parted).text.startswith("the gradient was reduced and then changed on each rank")
    told = (tmp_path / "live-3.txt").read_text().splitlines()
    assert told[0] == "2 ranks disagree: before step 2, gradient module.0.weight"
    assert [line.split()[:2] for line in told[1:3]] == [["rank", "1"], ["rank", "3"]]
