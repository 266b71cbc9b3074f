"""The norms in a run's series are those of its pages, whatever the recording has left out."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording.recorder.recorded_events import EventRecorder
from tests.inspect.ranks.jobs import being_rank
from tests.inspect.recording.programs import mlp, train


class Scale(gs.nn.Module):
    """Multiplies its weights."""

    def __init__(self, **weights):
        super().__init__()
        for name, weight in weights.items():
            setattr(self, name, gs.nn.Parameter(weight))

    def forward(self, *factors):
        total = 1.0
        for weight, factor in zip(self.parameters(), factors):
            total = (weight * factor).sum() * total
        return total


def series_of(path, kind="gradient"):
    with gi.open_recording(path) as recording:
        return {one.name: one for one in recording.series() if one.kind == kind}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 64, 65, 5000])
def test_norms_are_those_of_the_nodes(tmp_path, dtype, size):
    """Small gradients are kept by the page, larger ones are described, of the largest one pass takes the norm."""
    model = Scale(weight=gs.ones(size, dtype=getattr(gs, dtype)))
    path = tmp_path / "run.gscope"
    with gi.record(path):
        for n in range(20):
            model(n).backward()
    with gi.open_recording(path) as recording:
        norms = [task.nodes[-1].norm for task in recording.tasks()]
        [name] = {task.nodes[-1].parameter for task in recording.tasks()}
        [series] = [one for one in recording.series() if one.kind == "gradient"]
    assert series.name == name
    assert [bucket.mean for bucket in series.buckets] == pytest.approx(norms)
    assert series.zeros == (1, 1, 1)


def test_small_gradients_of_two_dtypes_are_told_apart(tmp_path):
    model = Scale(narrow=gs.ones(3, dtype=gs.float16), wide=gs.ones(2, dtype=gs.float64))
    with gi.record(tmp_path / "run.gscope"):
        model(1, 1).backward()
    found = {name: one.most for name, one in series_of(tmp_path / "run.gscope").items()}
    assert found == pytest.approx({"narrow": 2 * 3**0.5, "wide": 3 * 2**0.5})


@pytest.mark.parametrize("value", [1e-170, 1e170])
def test_norms_whose_squares_leave_float64(tmp_path, value):
    model = Scale(weight=gs.ones(4, dtype=gs.float64))
    with gi.record(tmp_path / "run.gscope"):
        model(value).backward()
    [series] = series_of(tmp_path / "run.gscope").values()
    assert (series.most, series.zeros, series.bad) == (pytest.approx(2 * value), None, None)


@pytest.mark.parametrize("size", [3, 100])
def test_nan_is_counted_with_its_first_and_last_place(tmp_path, size):
    model = Scale(weight=gs.ones(size))
    with gi.record(tmp_path / "run.gscope", rows=50):
        for n in range(1, 401):
            model(math.nan if n in (101, 200, 300) else 1.0).backward()
    [series] = series_of(tmp_path / "run.gscope").values()
    assert (series.bad, series.samples) == ((3, 101, 300), 400)


@pytest.mark.slow
def test_a_series_outlives_the_iterations_that_are_left_out(tmp_path):
    path = tmp_path / "run.gscope"
    model = Scale(weight=gs.ones(50))
    with gi.record(path, budget="1MB") as recorder:
        for n in range(3000):
            loss = model(0.99**n)
            loss.backward()
        recorder.flush()
    with gi.open_recording(path) as recording:
        assert len(recording.iterations()) < 1500
        loss, series = recording.series()
    assert (series.samples, series.first, series.last) == (3000, 1, 3000)
    assert series.first_value == pytest.approx(50**0.5)
    assert (loss.kind, loss.samples, loss.first_value) == ("loss", 3000, 50.0)
    fallen = series.since(series.level / 1000)
    assert fallen is not None
    below = 1 + math.log(series.level / 1000 / 50**0.5) / math.log(0.99)
    assert fallen.first - series.width < below <= fallen.first


def test_a_series_has_the_iterations_that_have_grown_too_old(tmp_path, monkeypatch):
    hours = itertools.count()
    monkeypatch.setattr(EventRecorder, "_now", lambda recorder: next(hours) * 3600 * 10**9)
    path = tmp_path / "run.gscope"
    model = Scale(weight=gs.ones(50))
    with gi.record(path, age="100h") as recorder:
        for n in range(300):
            model(math.nan if n == 50 else 0.9**n).backward()
            if n % 10 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        assert len(recording.iterations()) < 150
        [series] = [one for one in recording.series() if one.kind == "gradient"]
        [found] = recording.anomalies()
    assert (series.samples, series.first, series.last) == (300, 1, 300)
    assert (series.first_value, series.bad) == (pytest.approx(50**0.5), (1, 51, 51))
    assert (found.kind, found.count, found.first) == ("bad", 1, 51)
    fallen = series.since(1e-3 * 50**0.5)
    assert fallen is not None
    assert fallen.first - series.width < 1 + math.log(1e-3) / math.log(0.9) <= fallen.first


def test_backwards_before_the_first_step_are_one_iteration_of_a_series_too(tmp_path):
    model, inputs = mlp(), gs.ones(2, 3)
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    with gi.record(tmp_path / "run.gscope") as recorder:
        for _ in range(3):
            for _ in range(4):
                model(inputs).sum().backward()
            recorder.flush()  # before it is known that these are one iteration
            optimizer.step()
    for one in series_of(tmp_path / "run.gscope").values():
        assert [(bucket.first, bucket.samples) for bucket in one.buckets] == [(1, 4), (2, 4), (3, 4)]


def test_what_happened_is_counted_over_the_whole_run(tmp_path):
    model = Scale(weight=gs.ones(5))
    path = tmp_path / "run.gscope"
    with gi.record(path, rows=60) as recorder:
        for n in range(500):
            model(math.inf if n % 10 == 5 else 1.0).backward()
            if n % 50 == 0:
                recorder.flush()
    with gi.open_recording(path) as recording:
        assert len([task for task in recording.tasks() if task.bad is not None]) < 50
        [found] = recording.anomalies()
    assert (found.kind, found.count, found.first, found.last) == ("bad", 50, 6, 496)


def test_runs_that_are_added_have_series_of_their_own_and_the_oldest_go(tmp_path):
    path = tmp_path / "run.gscope"
    for run in range(10):
        with gi.record(path, append=True):
            train(mlp(), run + 1)
    with gi.open_recording(path) as recording:
        found = {one.run: one.samples for one in recording.series() if one.name == "2.weight"}
    assert found == {run: run for run in range(3, 11)}


def test_a_recording_without_norms_has_no_series(tmp_path):
    with gi.record(tmp_path / "run.gscope", keep="none"):
        train(mlp())
    assert series_of(tmp_path / "run.gscope") == {}


def test_each_rank_has_its_own(tmp_path):
    for rank in range(2):
        with being_rank(rank, 2), gi.record(f"{tmp_path}/run/"):
            train(mlp(rank), 4)
    found = [series_of(tmp_path / "run" / f"rank-{rank}.gscope")["0.weight"].first_value for rank in range(2)]
    assert numpy.isfinite(found).all()
    assert found[0] != found[1]
