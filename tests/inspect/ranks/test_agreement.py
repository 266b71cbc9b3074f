"""Where the ranks of a run part: on ranks that gradscope's own runtime trains, and on those that torchrun starts."""

from __future__ import annotations

import copy
import json
import linecache
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.ranks.agreement import _waited_for, agreement, whole_norm
from gradscope.inspect.ranks.agreement_report import agreement_json, agreement_text
from gradscope.inspect.ranks.disagreement_causes import likely_cause
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.ranks.run_view import iteration_text
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.step_rows import StepRecord
from gradscope.inspect.recording.recorder import hang_watch
from gradscope.inspect.records.before_step.step_looks import OUTSIDE, REDUCED, HeldTensor, StepLook
from tests.inspect.ranks.jobs import being_rank, record_ranks
from tests.inspect.recording.programs import mlp, train

PROGRAMS = Path(__file__).with_name("training_programs.py")


def compared(folder):
    with open_ranks(folder) as ranks:
        return agreement(ranks)


def test_replicas_that_do_the_same_agree(tmp_path):
    record_ranks(tmp_path, 4, steps=3)
    found = compared(tmp_path)
    assert (bool(found), found.ranks, found.steps, found.tensors, found.notes) == (True, (0, 1, 2, 3), 3, 4, ())


def test_the_first_parameter_that_differs_is_named_with_the_step_before(tmp_path):
    record_ranks(tmp_path, 3, [0, 2], steps=3)
    record_ranks(tmp_path, 3, [1], steps=3, lr=0.3)
    found = compared(tmp_path)
    parted = found.parted
    assert (found.steps, parted.what, parted.name, parted.iteration) == (1, "parameter", "0.weight", 2)
    assert parted.others == ("0.bias", "2.weight", "2.bias")
    assert parted.held[0] == parted.held[2] != parted.held[1]
    told = "the optimizers step differently: the learning rate is 0.1 on rank 0, 0.3 on rank 1, 0.1 on rank 2"
    assert likely_cause(parted).text == told
    lines = agreement_text(found).splitlines()
    data = agreement_json(found)
    assert lines[0] == "3 ranks disagree: iteration 2, before step 2, parameter 0.weight"
    assert [line.split()[:-1] for line in lines[1:3]] == [["ranks", "0,", "2", "checksum"], ["rank", "1", "checksum"]]
    assert lines[-1] == "before that they agreed in 1 step"
    assert json.loads(json.dumps(data))["first"]["cause"] == told


@pytest.mark.parametrize("swapped", [False, True])
def test_a_rank_that_keeps_a_second_model_is_compared_with_the_others(swapped, tmp_path):
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/"):
            gs.manual_seed(0)
            model = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.BatchNorm1d(2))
            average = copy.deepcopy(model) if rank == 0 else None
            optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                model(gs.arange(6.0).reshape(2, 3)).square().sum().backward()
                optimizer.step()
                if average is not None and swapped and step == 1:  # evaluated, and not put back
                    model.load_state_dict(average.state_dict())
    found = compared(tmp_path)
    with open_ranks(tmp_path) as ranks:
        called = [next(member.recording.steps(member.run.id)).look.tensors[0].name for member in ranks.members]
    assert called == ["model.0.weight", "0.weight"]
    assert (bool(found), found.steps, found.tensors) == ((False, 2, 4) if swapped else (True, 3, 4))
    if swapped:
        assert (found.parted.what, found.parted.name) == ("parameter", "0.weight")
        assert "rank 0" in likely_cause(found.parted).text


def test_a_rank_whose_last_backward_failed_has_left_out_no_step(tmp_path):
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/"):
            weight = gs.ones(3, requires_grad=True)
            optimizer = gs.optim.SGD([weight], lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                loss = weight.square().sum()
                if (rank, step) == (0, 2):
                    loss.register_hook(lambda grad: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        loss.backward()
                    break
                loss.backward()
                optimizer.step()
    found = compared(tmp_path)
    assert (found.parted, found.steps) == (None, 2)
    assert found.notes[0] == "rank 0 took 2 of 3 steps: it failed; compared as far as it came"


def test_what_a_rank_did_not_use_is_told_where_others_have_not_come_to_its_step():
    tensors = tuple(HeldTensor(name, (2,), "float32", "", kind, True) for name, kind in (
        ("a", REDUCED), ("b", REDUCED), ("c", OUTSIDE),
    ))  # fmt: skip
    zeros = np.zeros(3, np.uint64)

    def step(*unreached):
        facts = {"passes": [(False, unreached, "/a/train.py:7", "/a/train.py:8")]}
        look = StepLook(0, 4, tensors, zeros, zeros, zeros.astype(bool), zeros.astype(float), facts)
        return StepRecord(4, 4, None, 0, look)

    assert list(_waited_for({0: 3, 1: 4}, {0: step(0), 1: step(1, 2)})) == [
        "rank 1 did not use b in the forward, called at /a/train.py:7, before step 4: without "
        "find_unused_parameters=True DistributedDataParallel waits for their gradients on the others"
    ]
    assert list(_waited_for({0: 3, 1: 4}, {0: step(0), 1: step(2)})) == []
    assert list(_waited_for({0: 4, 1: 4}, {0: step(0), 1: step(1)})) == []


def test_a_rank_that_is_behind_is_compared_as_far_as_it_came(tmp_path):
    record_ranks(tmp_path, 2, [0], steps=4)
    record_ranks(tmp_path, 2, [1], steps=2)
    found = compared(tmp_path)
    assert (bool(found), found.steps) == (True, 2)
    assert found.notes == ("rank 1 took 2 of 4 steps: it ended earlier, or has joined; compared as far as it came",)


def test_what_others_hold_is_counted_once_where_the_first_rank_has_ended(tmp_path):
    record_ranks(tmp_path, 3, [0], steps=2)
    record_ranks(tmp_path, 3, [1, 2], steps=4)
    found = compared(tmp_path)
    assert (found.steps, found.tensors) == (4, 4)


def test_a_rank_that_still_runs_is_compared_as_far_as_it_came(tmp_path, monkeypatch):
    monkeypatch.setattr(hang_watch.HangWatch.__init__, "__defaults__", (1e9,))  # where it is silent is another test
    record_ranks(tmp_path, 2, [0], steps=4)
    with being_rank(1, 2), gi.record(f"{tmp_path}/") as recorder:
        train(mlp(), 1)
        recorder.flush()
        found = compared(tmp_path)
    assert (bool(found), found.steps) == (True, 1)
    assert found.notes == (
        "rank 1 took 1 of 4 steps: it runs still; compared as far as it came",
        "rank 1 runs still; its last node, in backward 1 of iteration 1, which had ended: AccumulateGrad 0.bias",
    )


def record_thinned(folder, late=0.1):
    """Record two ranks that keep other iterations, the second with another learning rate in step 100."""
    for rank, rows in enumerate((300, 400)):
        with being_rank(rank, 2), gi.record(f"{folder}/", title="train.py", rows=rows) as recorder:
            model = mlp()
            optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
            for number in range(1, 201):
                optimizer.param_groups[0]["lr"] = late if (rank, number) == (1, 100) else 0.1
                optimizer.zero_grad()
                model(gs.ones(2, 3)).sum().backward()
                optimizer.step()
                if number % (7 + rank) == 0:
                    recorder.flush()


def test_of_long_runs_the_steps_are_compared_that_both_have_kept(tmp_path):
    record_thinned(tmp_path)
    found = compared(tmp_path)
    assert (bool(found), found.steps > 10) == (True, True)
    (note,) = found.notes
    assert re.fullmatch(r"1\d\d steps have been left out of the recordings, .* they are not compared", note)


def test_where_ranks_part_in_steps_that_were_left_out_that_is_the_cause(tmp_path):
    record_thinned(tmp_path, late=0.3)
    parted = compared(tmp_path).parted
    before, at = parted.before[0].look.number, parted.steps[0].look.number
    assert (parted.what, before <= 100 < at, at - before > 1) == ("parameter", True, True)
    assert likely_cause(parted).text.startswith(f"they parted after step {before} and before step {at}; the steps")


def test_ranks_that_run_other_code_are_told(tmp_path):
    script = "import gradscope as gs\nw = gs.ones(2, requires_grad=True)\n({} * 2).sum().backward()\n"
    script += "gs.optim.SGD([w], lr=0.1).step()\n"
    for rank, what in enumerate(("w", "w.abs()")):
        path = tmp_path / "train.py"
        path.write_text(script.format(what))
        linecache.clearcache()  # another process would not have it
        with being_rank(rank, 2), gi.record(f"{tmp_path}/run/"):
            exec(compile(path.read_text(), path, "exec"), {})
    (note,) = compared(tmp_path / "run").notes
    assert note == (
        "rank 1 runs other code than rank 0: train.py:3 is `(w.abs() * 2).sum().backward()` there, and here "
        "`(w * 2).sum().backward()`"
    )


def test_what_cannot_be_compared_is_an_error(tmp_path):
    record_ranks(tmp_path / "one", 2, [0])
    with pytest.raises(RecordingError, match="nothing to compare it with"):
        compared(tmp_path / "one")
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/silent/"):
            gs.ones(2, requires_grad=True).sum().backward()
    with pytest.raises(RecordingError, match="no rank has recorded a step of an optimizer"):
        compared(tmp_path / "silent")
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/other/"):
            train(mlp(seed=rank), 2)
    with pytest.raises(RecordingError, match="hold different models from their first step on"):
        compared(tmp_path / "other")


def test_a_program_of_one_process_records_no_steps(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        train(mlp(), 2)
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert list(recording.steps(1)) == []


def test_the_norm_of_a_whole_gradient():
    assert whole_norm([3.0, 4.0]) == 5.0
    assert repr(whole_norm([float("inf"), float("nan")])) == "nan"


# --- DistributedDataParallel ---


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the directory with the recordings of all programs, two ranks each."""
    pytest.importorskip("torch", reason="trains with torch.distributed")
    folder = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    root = Path(__file__).parents[3]
    done = subprocess.run([*command, str(PROGRAMS), str(folder)], cwd=root, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


BROKEN = {
    "head_outside": (
        "gradient head.weight", 1, "head.weight is outside of DistributedDataParallel: nothing reduces",
        [("head(trunk(batch))", (0, 1))],
    ),
    "head_outside_with_other_seeds": (
        "parameter 1.weight", 1, "and the seeds are 100 and 101", [("model(batch)", (0, 1))],
    ),
    "no_sync_left_on": (
        "gradient module.0.weight", 3, "ran under no_sync() on ranks 0, 1", [("model(batch)", (0, 1))],
    ),
    "other_micro_batches": (
        "gradient module.0.weight", 1, "ran under no_sync() on rank 1: nothing reduced",
        [("model(batch + micro)", (1,))],
    ),
    "unused_on_one_rank": (
        "gradient 1.weight", 2, "1.weight has no gradient on rank 1",
        [("model[3](hidden)", (1,)), ("model[1](hidden)", (0,))],
    ),
    "dropout_without_reduction": (
        "gradient 0.weight", 1, "the seeds are 0 and 1, so that dropout differs too", [("backward()", (0, 1))],
    ),
    "never_wrapped": ("gradient 0.weight", 1, "nothing reduces the gradients", [("backward()", (0, 1))]),
    "batch_norm_apart": (
        "buffer module.1.running_mean", 1, "running_mean follows each rank's own batches", [("model(batch)", (0, 1))],
    ),
    "branch_of_an_earlier_backward": (
        "gradient module.one.weight", 1, "came in an earlier backward",
        [('model(batch, "one")', (0, 1)), ('model(batch, "two")', (0, 1))],
    ),
    "bucket_that_waits": (
        "gradient module.one.weight", 1, "did not reach module.two.weight", [('model(batch, "one")', (0, 1))],
    ),
    "checkpoint_without_gradients": (
        "gradient module.last.weight", 1, "module.last.weight; a re-entrant checkpoint calls its module",
        [("model(batch)", (0, 1))],
    ),
    "other_learning_rate": (
        "parameter module.0.weight", 2, "the learning rate is 0.1 on rank 0, 0.2 on rank 1",
        [("optimizer.step()", (0, 1))],
    ),
    "other_weight_decay": (
        "parameter module.0.weight", 2, "weight_decay is 0.25 on rank 0, 0.5 on rank 1", [("optimizer.step()", (0, 1))],
    ),
    "added_after_wrapping": (
        "gradient module.scale", 1, "module.scale is outside of DistributedDataParallel", [("model(batch)", (0, 1))],
    ),
    "unfrozen_after_wrapping": (
        "gradient module.0.weight", 1, "module.0.weight required no grad when DistributedDataParallel wrapped",
        [("model(batch)", (0, 1))],
    ),
    "loaded_on_one_rank": (
        "parameter module.0.weight", 1, "equal: module.0.weight was written more often on rank 0",
        [("model(batch)", (0,))],
    ),
    "step_left_out_on_one_rank": (
        "gradient module.0.weight", 3, "rank 1 has left out a step",
        [("backward()", (1,)), ("optimizer.step()", (0,))],
    ),
    "skipped_micro_batch": (
        "gradient module.0.weight", 2, "rank 1 skipped an iteration that others ran: no backward followed its forward, "
        "whose loss was nan", [("loss = model(", (1,)), ("loss.backward()", (0,))],
    ),
    "scaled_on_each_rank": (
        "gradient module.0.weight", 1, "reduced and then changed on each rank",
        [("loss.backward()", (0, 1)), ("optimizer.step()", (0, 1))],
    ),
    "left_out_of_the_reduction": (
        "gradient 2.bias", 1, "leaves out 2.bias", [("backward()", (0, 1)), ("optimizer.step()", (0, 1))],
    ),
    "not_in_one_optimizer": (
        "parameter module.2.bias", 2, "the optimizer of rank 1 does not hold module.2.bias",
        [("optimizer.step()", (1,))],
    ),
    "clamped_on_one_rank": (
        "parameter module.0.weight", 3, "rank 1 wrote into module.0.weight between step() and the next forward",
        [("optimizer.step()", (1,)), ("model(batch)", (1,))],
    ),
}  # fmt: skip
"""What is named: the tensor, the step, the cause, and what stands on each line, with the ranks that ran it."""


@pytest.mark.torch
@pytest.mark.parametrize("name", BROKEN)
def test_the_first_disagreement_of_a_broken_program_is_named_with_its_cause(runs, name):
    what, step, cause, _ = BROKEN[name]
    with open_ranks(runs / name) as ranks:
        found = agreement(ranks)
        assert f"{found.parted.what} {found.parted.name}" == what
        assert found.parted.steps[0].look.number == step
        assert cause in likely_cause(found.parted).text


def source_at(place):
    file, _, line = place.rpartition(":")
    return linecache.getline(file, int(line))


@pytest.mark.torch
@pytest.mark.parametrize("name", BROKEN)
def test_the_lines_of_a_disagreement_are_named_with_their_ranks(runs, name):
    with open_ranks(runs / name) as ranks:
        sites = likely_cause(agreement(ranks).parted).sites
    assert [(site.place.rpartition(":")[0], site.ranks) for site in sites] == [
        (str(PROGRAMS), ran) for _, ran in BROKEN[name][3]
    ]
    for site, (source, _) in zip(sites, BROKEN[name][3]):
        assert source in source_at(site.place)


@pytest.mark.torch
@pytest.mark.parametrize("name", BROKEN)
def test_the_same_is_told_while_they_train(runs, name):
    what, step, cause, sites = BROKEN[name]
    told = (runs / name / "live.txt").read_text().splitlines()
    assert told[0] == f"2 ranks disagree: before step {step}, {what}"
    at = next(place for place, line in enumerate(told) if line.startswith("likely cause: "))
    assert cause in told[at]
    for line, (source, ran) in zip(told[at + 1 :], sites):
        place = line.strip().partition("  ")[0]
        assert source in source_at(str(Path(__file__).parents[3] / place))
        assert line.endswith(f"on rank{'s' if len(ran) > 1 else ''} {', '.join(map(str, ran))}")


@pytest.mark.torch
def test_a_rank_that_does_not_step_is_named(runs):
    with open_ranks(runs / "stepped_on_one_rank") as ranks:
        found = agreement(ranks)
        assert (found.parted.what, found.parted.taken) == ("steps", {0: 4, 1: 0})
        cause = likely_cause(found.parted)
        assert cause.text.startswith("rank 1 ran as many backwards")
        assert [("optimizer.step()" in source_at(site.place), site.ranks) for site in cause.sites] == [(True, (0,))]
        assert "  rank 1  0 steps\n" in agreement_text(found)


HEALTHY = {
    "plain": (4, 4), "accumulation": (4, 4), "accumulation_of_branches": (4, 4), "unequal_batches": (6, 4),
    "checkpointed": (4, 4), "averaged_weights": (4, 4), "batch_norm": (4, 6), "dropout": (4, 4),
    "other_branches": (4, 4), "two_networks": (8, 8), "skipped_in_turns": (4, 4),
    "state_spread_over_ranks": (4, 4), "reduced_by_hand": (4, 4),
    "unchanged": (4, 6),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_program(runs, name):
    found = compared(runs / name)
    assert (found.parted, (found.steps, found.tensors)) == (None, HEALTHY[name])
    assert not [note for note in found.notes if "skipped" in note or (name != "unequal_batches" and " took " in note)]


@pytest.mark.torch
def test_ranks_that_skip_an_iteration_alone_are_told_while_they_train(runs):
    told = (runs / "skipped_in_turns" / "live.txt").read_text().splitlines()
    assert [line.partition(" (")[0] for line in told] == [
        "rank 1 skipped an iteration after step 1", "rank 0 skipped an iteration after step 3",
    ]  # fmt: skip
    for line in told:
        place = line.partition("no backward followed the forward at ")[2].partition(",")[0]
        assert "loss = model(" in source_at(str(Path(__file__).parents[3] / place))
        assert ", whose loss was nan; the others ran theirs. Since then it is 1 backward behind" in line


@pytest.fixture
def spread(runs):
    """Return the directory with those whose parameters are spread over ranks."""
    if not (runs / "sharded").exists():
        pytest.skip("PyTorch before 2.6 has no fully_shard()")
    return runs


@pytest.mark.torch
def test_parameters_that_are_spread_over_ranks_have_their_names_and_places(spread):
    with open_ranks(spread / "sharded") as ranks:
        found = agreement(ranks)
        assert "2 ranks hold nothing twice that could disagree, in 4 steps" in agreement_text(found)
        for member in ranks.members:
            (task, *_) = member.tasks()
            named = [node.parameter for node in task.nodes if node.name == "AccumulateGrad"]
            assert sorted(named) == ["0.bias", "0.weight", "2.bias", "2.weight"]
            step = next(member.recording.steps(member.run.id))
            assert {held.part for held in step.look.tensors} == {f"Shard(0) {member.rank + 1} of 2"}
    assert found.notes == ("all parameters are spread over the ranks, each part on one alone: nothing can disagree",)


@pytest.mark.torch
def test_what_tensor_parallel_ranks_hold_twice_is_compared(spread):
    found = compared(spread / "tensor_parallel")
    assert (found.parted, found.steps, found.tensors) == (None, 4, 3)


@pytest.mark.torch
def test_the_norms_of_an_iteration_are_those_of_whole_parameters(spread):
    with open_ranks(spread / "sharded") as ranks:
        lines = iteration_text(ranks, 2).splitlines()
        parts = [list(member.recording.steps(member.run.id))[1].look.norms[0] for member in ranks.members]
    assert lines[:2] == ["iteration 2, before step 2", "parameter  shape   reduced  rank 0  rank 1"]
    name, *_, reduced, _, _ = lines[2].split()
    assert (name, float(reduced)) == ("0.weight", pytest.approx(whole_norm(parts), rel=1e-3))


@pytest.mark.torch
def test_ranks_that_step_alone_in_a_join_are_told(runs):
    assert compared(runs / "unequal_batches").notes == (
        "rank 0 took steps 4 to 5 without the others, who were given its parameters (join)",
        "rank 1 took 6 of 10 steps: it ended earlier, or has joined; compared as far as it came",
    )


@pytest.mark.torch
def test_ranks_with_models_of_their_own_have_nothing_to_agree_on(runs):
    with pytest.raises(RecordingError, match="different models"):
        compared(runs / "other_models")
