"""Two ranks of one job are compared by what they should have in common."""

from __future__ import annotations

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.ranks.rank_difference import are_ranks_of_one_job, rank_difference
from gradscope.inspect.recording import RecordingError
from tests.inspect.ranks.jobs import being_rank, record_ranks
from tests.inspect.recording.programs import mlp


def record_data_parallel(folder, scale=1.0, wrong=1.0):
    """Record two ranks with batches of their own, which reduce their gradients; rank 1 scales its third one."""
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{folder}/", title="train.py"):
            model = mlp()
            optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
            for number in range(4):
                optimizer.zero_grad()
                for micro in range(2) if rank == 0 else (1, 0):  # the sum is that of both ranks, in another order
                    (model(gs.ones(2, 3) * (micro + 1.3)).sum() * scale).backward()
                for parameter in model.parameters():
                    if rank == 1 and number == 2:
                        parameter.grad *= wrong
                optimizer.step()


def compared(folder, **options):
    with gi.open_ranks(folder) as ranks:
        left, right = ((member.recording, member.run) for member in ranks.members)
        return rank_difference(left, right, **options)


def test_what_each_rank_has_before_the_reduction_is_no_difference(tmp_path, capsys):
    record_data_parallel(tmp_path)
    found = compared(tmp_path)
    assert (bool(found), found.compared, found.steps) == (False, 16, 4)
    paths = [f"{tmp_path}/rank-{rank}.gscope" for rank in range(2)]
    assert main(["diff", *paths]) == 0
    assert capsys.readouterr().out.startswith("no difference in 16 reduced gradients of 4 steps\nnote: these are ranks")
    assert main(["diff", *paths, "--local"]) == 1
    assert capsys.readouterr().out.startswith("first difference after ")


def test_the_first_reduced_gradient_that_differs_is_named(tmp_path, capsys):
    record_data_parallel(tmp_path, wrong=1.001)
    assert main(["diff", *(f"{tmp_path}/rank-{rank}.gscope" for rank in range(2))]) == 1
    head, left, right, _ = capsys.readouterr().out.splitlines()
    assert head.startswith(
        "first difference after 8 reduced gradients of 3 steps: iteration 3, before step 3, gradient"
    )
    assert left.startswith(f"  A {tmp_path}/rank-0.gscope: norm ")
    assert right.startswith(f"  B {tmp_path}/rank-1.gscope: norm ")


def test_the_tolerance_says_what_is_none(tmp_path):
    record_data_parallel(tmp_path, wrong=1.001)
    assert not compared(tmp_path, rtol=0.01, iterations=(3, None))
    assert compared(tmp_path, iterations=(3, 3))
    assert not compared(tmp_path, iterations=(2, 2))


def test_without_tolerance_bits_are_compared_and_parameters_too(tmp_path):
    record_ranks(tmp_path, 2, [0], steps=3)
    record_ranks(tmp_path, 2, [1], steps=3, lr=0.1 + 1e-12)
    assert not compared(tmp_path, exact=True, iterations=(1, 1))
    record_ranks(tmp_path, 2, [1], steps=3, lr=0.3)
    assert compared(tmp_path, exact=True).first[0] == "iteration 2, before step 2, 0.weight"


def test_nan_equals_nan_and_nothing_else(tmp_path):
    record_data_parallel(tmp_path / "nan", scale=float("nan"))
    assert not compared(tmp_path / "nan")
    record_data_parallel(tmp_path / "one", wrong=float("inf"))
    assert compared(tmp_path / "one").first[0].startswith("iteration 3, before step 3, gradient ")


def test_ranks_without_steps_have_nothing_in_common(tmp_path):
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/"):
            gs.ones(2, requires_grad=True).sum().backward()
    with pytest.raises(RecordingError, match=r"no step of an optimizer in common\n--local compares"):
        compared(tmp_path)


def test_ranks_of_other_starts_are_two_runs(tmp_path):
    record_ranks(tmp_path / "a", 2)
    record_ranks(tmp_path / "b", 2, restart=1)
    with gi.open_ranks(tmp_path / "a") as one, gi.open_ranks(tmp_path / "b") as other:
        assert are_ranks_of_one_job(one.members[0].run, one.members[1].run)
        assert not are_ranks_of_one_job(one.members[0].run, other.members[1].run)
        assert not are_ranks_of_one_job(one.members[0].run, one.members[0].run)
