"""A file stays within its budget, and what went wrong stays in it longest."""

import itertools
import sqlite3
from contextlib import closing

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording.recorder.recorded_events import EventRecorder
from gradscope.inspect.recording.reports.text_view import overview_text
from tests.inspect.recording.programs import recorded


def test_values_of_the_last_iterations(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=5, keep="all", last=2)
    kept = [task.iteration for task in recording.tasks() if recording.value(task.id, 0) is not None]
    assert kept == [4, 5]
    assert recording.tasks()[0].nodes[1].grad_outputs[0].norm > 0


def test_values_within_a_budget(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=20, keep="all", budget=4000)
    kept = [task.iteration for task in recording.tasks() if recording.value(task.id, 0) is not None]
    assert kept
    assert 0 < len(kept) < 20
    assert kept[-1] == 20
    with closing(sqlite3.connect(tmp_path / "run.gscope")) as connection:
        (nbytes,) = connection.execute("SELECT sum(length(data)) FROM tensor_values").fetchone()
    assert nbytes <= 4000


def test_a_file_within_a_budget(tmp_path):
    path = tmp_path / "run.gscope"
    x = gs.ones(50, requires_grad=True)
    largest = 0
    with gi.record(path, keep="all", budget="1.5MB") as recorder:
        for n in range(2000):
            (x * n).sum().backward()
            if n % 100 == 0:
                recorder.flush()
                largest = max(largest, path.stat().st_size)
        recorder.mark("the end")
    assert recorder.failure == ""
    assert max(largest, path.stat().st_size) <= 1_500_000
    with gi.open_recording(path) as recording:
        numbers = [iteration.number for iteration in recording.iterations()]
        assert numbers == [task.iteration for task in recording.tasks()]
        assert (numbers[0], numbers[-1]) == (1, 2000)
        steps = numpy.diff(numbers)
        assert (steps[-len(steps) // 4 :] == 1).all()
        assert 1 < steps.max() < 8 * 2000 / len(numbers)  # those before stand evenly
        for task in recording.tasks():
            assert [node.index for node in task.nodes] == [0, 1, 2]
            assert task.nodes[0].grad_outputs[0].norm == 1.0
        first, *_, last = recording.events()
        assert (first.kind, last.text) == ("left out", "the end")
        assert first.text.startswith(f"{2000 - len(numbers):,} iterations have been left out")
        assert first.text in overview_text(recording)


@pytest.mark.slow
def test_nodes_that_never_come_again_leave_room_for_others(tmp_path):
    """Each iteration runs lines of its own, whose descriptions take more room than what happens on them."""
    path = tmp_path / "run.gscope"
    x = gs.ones(10, requires_grad=True)
    with gi.record(path, budget="1MB") as recorder:
        for n in range(600):
            names = {}
            body = "".join("    x = x.sin() * 0.5\n" for _ in range(20))
            exec(compile(f"{chr(10) * n}def step(x):\n{body}    return x.sum()", "made.py", "exec"), names)
            names["step"](x).backward()
            if n % 50 == 0:
                recorder.flush()
    assert (recorder.failure, recorder.lost) == ("", 0)
    assert path.stat().st_size <= 1 << 20
    with gi.open_recording(path) as recording:
        for task in recording.tasks():
            lines = [node.location.lineno for node in task.nodes if node.location is not None]
            assert set(lines[1:]) <= set(range(task.iteration + 1, task.iteration + 21))
            assert [node.name for node in task.nodes][::40] == ["SumBackward0", "SinBackward0"]


def test_a_file_has_no_more_nodes_than_are_wanted(tmp_path):
    path = tmp_path / "run.gscope"
    x = gs.ones(50, requires_grad=True)
    with gi.record(path, rows=300) as recorder:
        for n in range(1000):
            (x * (float("nan") if n == 500 else 1.0)).sum().backward()
            if n % 50 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        numbers = [iteration.number for iteration in recording.iterations()]
        assert sum(task.count for task in recording.tasks()) <= 300 + 3 * 50  # what came with the last commit
        assert {1, 500, 501, 502, 1000} <= set(numbers)
        assert "to keep the file within 300 nodes" in recording.events()[0].text
    with gi.record(path, rows=300, append=True):
        for _ in range(200):
            x.sum().backward()
    with gi.open_recording(path) as recording:
        assert sum(task.count for task in recording.tasks()) <= 300 + 2 * 200


def test_old_iterations_go_but_for_what_went_wrong(tmp_path, monkeypatch):
    hours = itertools.count()
    monkeypatch.setattr(EventRecorder, "_now", lambda recorder: next(hours) * 3600 * 10**9)
    path = tmp_path / "run.gscope"
    x = gs.ones(50, requires_grad=True)
    with gi.record(path, age="100h") as recorder:
        for n in range(300):
            (x * (float("nan") if n == 50 else 1.0)).sum().backward()
            if n % 10 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        iterations = recording.iterations()
        numbers = [iteration.number for iteration in iterations]
        assert {1, 50, 51, 52, 300} <= set(numbers)
        newest = iterations[-1].started
        old = [i.number for i in iterations if newest - i.started > 1.2 * 100 * 3600 * 10**9]
        assert old == [1, 50, 51, 52]
        assert len(numbers) > 20
        assert "within an age of 360,000 s" in recording.events()[0].text


@pytest.mark.slow
def test_what_went_wrong_stays_when_iterations_are_left_out(tmp_path):
    path = tmp_path / "run.gscope"
    x = gs.ones(50, requires_grad=True)
    with gi.record(path, budget="1MB") as recorder:
        for n in range(3000):
            if n == 1200:
                recorder.mark("a note")
            y = x * (float("nan") if 700 <= n < 900 else 1.0)
            for _ in range(20):
                y = y.sin()
            y.sum().backward()
            if n % 100 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        numbers = [iteration.number for iteration in recording.iterations()]
        assert len(numbers) < 400
        assert {700, 701, 702, 3000} <= set(numbers)
        assert recording.tasks()[numbers.index(701)].bad is not None
        assert "a note" in [event.text for event in recording.events()]


def test_a_program_that_is_far_ahead_of_the_disk_stays_within_the_budget(tmp_path):
    """All that waits is committed at once, and is more than the budget."""
    path = tmp_path / "run.gscope"
    x = gs.ones(300, requires_grad=True)
    with gi.record(path, keep="all", budget="2MB") as recorder:
        recorder.flush()
        with recorder._writer._lock:
            for _ in range(1500):
                x.sin().cos().exp().sum().backward()
    assert (recorder.failure, recorder.lost) == ("", 0)
    assert recorder.nodes == 1500 * 5
    assert path.stat().st_size <= 2_000_000
    with gi.open_recording(path) as recording:
        tasks = recording.tasks()
        assert (tasks[0].iteration, tasks[-1].iteration) == (1, 1500)
        assert 10 < len(tasks) < 1500
        assert all(len(list(task.nodes)) == task.count == 5 for task in tasks)
        assert recording.value(tasks[-1].id, 0) is not None


@pytest.mark.slow
def test_an_iteration_that_is_larger_than_the_budget_ends_the_recording(tmp_path, capsys):
    y = x = gs.ones(2, requires_grad=True)
    for _ in range(30_000):
        y = y * 1.0
    with gi.record(tmp_path / "run.gscope", budget=1000) as recorder:
        y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert "takes more than the budget of 1,048,576 bytes alone" in recorder.failure
    assert (tmp_path / "run.gscope").stat().st_size <= 1 << 20
    assert capsys.readouterr().err.count("recording has stopped") == 1
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert sum(task.count for task in recording.tasks()) == recorder.nodes
