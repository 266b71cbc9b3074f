"""The first node at which two recordings differ."""

import math
import sqlite3
from contextlib import closing

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.reports.recording_difference import split_source
from tests.inspect.recording.programs import recorded


@pytest.fixture
def run(tmp_path):
    """Return a function that records ``scale * factor`` in a few iterations."""

    def make(name, scales, keep="summaries", extra=False):
        x = gs.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with gi.record(tmp_path / name, keep):
            for scale in scales:
                y = x.exp() * scale
                if extra:
                    y = y.sin()
                y.sum().backward()
        return gi.open_recording(tmp_path / name)

    return make


def test_equal_runs(tmp_path):
    left, right = (recorded(tmp_path / name, keep="all") for name in ("a.gscope", "b.gscope"))
    found = gi.difference(left, right, exact=True)
    assert not found
    assert (found.compared, found.iterations) == (27, 3)
    assert str(found) == "no difference in 27 nodes of 3 iterations"


def test_the_first_divergent_node(run):
    found = gi.difference(run("a", [2.0, 2.0, 2.0]), run("b", [2.0, 4.0, 2.0]))
    assert found
    assert (found.first.iteration, found.first.left.name, found.compared) == (2, "MulBackward0", 5)
    assert found.first.left.grad_inputs[0].norm == pytest.approx(2 * math.sqrt(3))
    assert found.first.right.grad_inputs[0].norm == pytest.approx(4 * math.sqrt(3))
    assert "grad_inputs[0]: norm 3.464 and 6.928" in str(found)


def test_one_iteration_with_another(run):
    recording = run("a", [2.0, 3.0, 2.0])
    assert gi.difference(recording, recording, left_iteration=1, right_iteration=2)
    assert not gi.difference(recording, recording, left_iteration=1, right_iteration=3)


def test_a_recording_that_counts_iterations_from_0_is_compared_with_one_from_1(run, tmp_path):
    run("a", [2.0, 3.0]).close()
    new = run("b", [2.0, 3.0])
    with closing(sqlite3.connect(tmp_path / "a")) as connection, connection:
        connection.execute("UPDATE iterations SET number = number - 1")
    old = gi.open_recording(tmp_path / "a")
    assert [task.iteration for task in old.tasks()] == [0, 1]
    found = gi.difference(old, new)
    assert (bool(found), found.iterations, found.notes) == (False, 2, ())


def test_tolerance(run):
    left, right = run("a", [2.0]), run("b", [2.0 * (1 + 1e-4)])
    assert gi.difference(left, right)
    assert not gi.difference(left, right, rtol=1e-3)
    assert gi.difference(left, right, rtol=1e-3, exact=True)


def test_a_zero_that_rounding_made_differs_without_tolerance_only(tmp_path):
    def made(name, least):
        x = gs.ones(2, requires_grad=True)
        with gi.record(tmp_path / name):
            (x * gs.tensor([least, 1.0])).sum().backward()
        return gi.open_recording(tmp_path / name)

    left, right = made("a", 0.0), made("b", 1e-30)
    assert not gi.difference(left, right)
    assert "grad_inputs[0]: zeros 1 and 0" in gi.difference(left, right, exact=True).first.what


def test_nan_equals_nan(run):
    left, right = run("a", [math.nan], "all"), run("b", [math.nan], "all")
    assert not gi.difference(left, right, exact=True)
    assert gi.difference(left, run("c", [1.0], "all")).first.what[0].startswith("grad_inputs[0]: nans 3 and 0")


def test_a_missing_node(run):
    found = gi.difference(run("c", [2.0], extra=True), run("d", [2.0]))
    assert (found.first.left.name, found.first.right) == ("SinBackward0", None)
    assert "missing in B" in str(found)


def test_values_tell_what_statistics_cannot(tmp_path):
    for name, order in (("a", [1.0, 2.0, 3.0]), ("b", [2.0, 1.0, 3.0])):
        x = gs.ones(3, requires_grad=True)
        with gi.record(tmp_path / name, "all"):
            (x * gs.tensor(order)).sum().backward()
    found = gi.difference(gi.open_recording(tmp_path / "a"), gi.open_recording(tmp_path / "b"))
    assert found.first.what == ("grad_inputs[0]: 2 of 3 elements, the first at [0]: 1.0 and 2.0",)


def test_one_run_is_longer(run):
    found = gi.difference(run("a", [2.0, 2.0]), run("b", [2.0]))
    assert not found
    assert found.iterations == 1
    assert found.notes == ("A has 2 iterations, B has 1; those that both have were compared",)


def test_what_is_not_there(run):
    recording = run("a", [2.0])
    with pytest.raises(RecordingError, match="has no iteration 5; it has 1 to 1"):
        gi.difference(recording, recording, left_iteration=5)
    with pytest.raises(RecordingError, match="has no run 9"):
        gi.difference(recording, recording, left_run=9)


def test_runs_of_one_file(tmp_path):
    recorded(tmp_path / "a", lr=0.1).close()
    recorded(tmp_path / "a", lr=0.2, append=True).close()
    recording = gi.open_recording(tmp_path / "a")
    found = gi.difference(recording, recording, left_run=1, right_run=2)
    assert (found.first.iteration, found.compared >= 9) == (2, True)


def test_a_rich_table(run):
    from rich.console import Console

    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(gi.difference(run("a", [2.0]), run("b", [3.0])))
        text = console.export_text()
    assert "MulBackward0" in text
    assert "norm 3.464" in text


def test_split_source():
    assert split_source("a/b.gscope:3") == ("a/b.gscope", 3)
    assert split_source("C:\\runs\\b.gscope") == ("C:\\runs\\b.gscope", None)


def test_shapes_differ(tmp_path):
    for name, size in (("a", 2), ("b", 3)):
        x = gs.ones(size, requires_grad=True)
        with gi.record(tmp_path / name):
            (x * 2).sum().backward()
    found = gi.difference(gi.open_recording(tmp_path / "a"), gi.open_recording(tmp_path / "b"))
    assert found.first.what == ("grad_inputs[0]: float32 (2) and float32 (3)",)
    assert numpy.isfinite(found.first.left.grad_outputs[0].norm)


def test_a_comparison_says_what_has_been_left_out(tmp_path):
    path = tmp_path / "run.gscope"
    x = gs.ones(50, requires_grad=True)
    with gi.record(path, budget="1MB") as recorder:
        for n in range(1500):
            y = x
            for _ in range(10):
                y = y.sin()
            y.sum().backward()
            if n % 100 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        (text,) = [event.text for event in recording.events() if event.kind == "left out"]
        notes = gi.difference(recording, recording).notes
        assert notes == (f"A: {text}", f"B: {text}")
        there = {iteration.number for iteration in recording.iterations()}
        gone = min(set(range(1, 1501)) - there)
        with pytest.raises(gi.RecordingError) as raised:
            gi.difference(recording, recording, left_iteration=gone, right_iteration=1)
        assert str(raised.value).endswith(f"has no iteration {gone}; it has 1 to 1500\n{text}.")
