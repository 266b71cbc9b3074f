"""A step goes into a row and comes back; a damaged row is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.step_rows import layout_text, read_layout, read_step, step_row
from gradscope.inspect.records.before_step.step_looks import HeldTensor, StepLook
from tests.inspect.ranks.jobs import record_ranks

TENSORS = (
    HeldTensor("a", (2, 3), "float32", "", "reduced", True),
    HeldTensor("b", (), "float64", "Shard(0) 1 of 2", "outside", False, "0, 2", "train.py:3"),
)


def test_a_step_comes_back():
    values, gradients = np.array([2**64 - 1, 0], np.uint64), np.array([1, 2], np.uint64)
    look = StepLook(3, 7, TENSORS, values, gradients, np.array([True, False]), np.array([np.nan, 1.5]), {"lr": [0.1]})
    row = (1, 1, 5, 4, 99, look.optimizer, look.number, 8, *step_row(look))
    step = read_step(row, {8: read_layout(layout_text(TENSORS))}, {5: 2})
    assert (step.iteration, step.task, step.time) == (2, 4, 99)
    assert (step.look.optimizer, step.look.number, step.look.tensors, step.look.facts) == (3, 7, TENSORS, {"lr": [0.1]})
    for name in ("values", "gradients", "present", "norms"):
        np.testing.assert_array_equal(getattr(step.look, name), getattr(look, name))


def test_a_layout_of_a_recording_that_names_no_groups_is_read():
    (tensor,) = read_layout('[["a", [2, 3], "float32", "", "reduced", true]]')
    assert tensor == TENSORS[0]


def test_backwards_of_a_recording_that_names_no_lines_are_read():
    look = StepLook(0, 0, TENSORS, *[np.zeros(2)] * 4, {"passes": [[True, [1]]]})
    assert (look.passes, look.line, look.written, look.version("a")) == ([(True, (1,), "", "")], "", ((), ()), None)


@pytest.mark.parametrize(
    "damage",
    [
        "norms = zeroblob(3)",
        "norms = zeroblob(80)",
        "layout = 77",
        "facts = 'x'",
        "facts = '[]'",
        "facts = '{\"passes\": [[false, [], 3, 4]]}'",
        'facts = \'{"passes": [[false, [], "a:1", "b:2", "c:3"]]}\'',
        "facts = '{\"written\": [[0]]}'",
        "facts = '{\"written\": [[0], [77]]}'",
        'facts = \'{"versions": ["x"]}\'',
        "number = 'x'",
        "gradients = NULL",
    ],
)
def test_a_damaged_step_is_an_error(tmp_path, damage):
    record_ranks(tmp_path, 2, [0])
    with closing(sqlite3.connect(tmp_path / "rank-0.gscope")) as connection, connection:
        connection.execute(f"UPDATE steps SET {damage} WHERE id = 2")
    with gi.open_recording(tmp_path / "rank-0.gscope") as recording:
        with pytest.raises(RecordingError, match="cannot be read"):
            list(recording.steps(1))


def test_steps_go_with_their_iterations(tmp_path):
    record_ranks(tmp_path, 2, [0], steps=150)
    with gi.open_recording(tmp_path / "rank-0.gscope") as recording:
        assert [step.look.number for step in recording.steps(1)] == list(range(1, 151))
        assert [step.iteration for step in recording.steps(1)] == list(range(1, 151))
        assert list(recording.steps(2)) == []
