"""How a number went over a run: exact sums in room that does not grow, whatever comes."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradscope.inspect.recording.file.run_series import BUCKETS, RunSeries, read_series

NORMS = st.floats(0, 1e30) | st.sampled_from([0.0, math.nan, math.inf])
SAMPLES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5000), NORMS), max_size=80)


def filled(samples, **options):
    series = RunSeries(1, **options)
    for name, iteration, value in samples:
        series.add("gradient", [name], [iteration], [value])
    return {record.name: record for record in series.records()}


@given(SAMPLES)
def test_no_sample_is_lost_and_none_is_in_another_place(samples):
    found = filled(samples)
    assert set(found) == {name for name, _, _ in samples}
    for name, record in found.items():
        own = [(iteration, value) for which, iteration, value in samples if which == name]
        finite = [value for _, value in own if math.isfinite(value)]
        assert record.samples == len(own)
        assert (record.first, record.last) == (min(i for i, _ in own), max(i for i, _ in own))
        assert (record.least, record.most) == (min(finite, default=None), max(finite, default=None))
        assert record.last_value == pytest.approx(own[-1][1], nan_ok=True)
        assert record.first_value == pytest.approx(own[0][1], nan_ok=True)
        assert record.bad == counted([i for i, value in own if not math.isfinite(value)])
        assert record.zeros == counted([i for i, value in own if value == 0])
        assert len(record.buckets) <= BUCKETS
        for bucket in record.buckets:
            inside = [value for i, value in own if bucket.first <= i <= bucket.last]
            assert bucket.samples == len(inside)
            told = [value for value in inside if math.isfinite(value)]
            assert bucket.mean == (pytest.approx(math.fsum(told) / len(told)) if told else None)


def counted(iterations):
    return (len(iterations), min(iterations), max(iterations)) if iterations else None


@given(SAMPLES, st.integers(0, 5000))
def test_iterations_that_never_were_belong_to_the_one_before(samples, end):
    series = RunSeries(1)
    for name, iteration, value in samples:
        series.add("gradient", [name], [iteration], [value])
    series.collapse(end)
    moved = filled([(name, min(iteration, end), value) for name, iteration, value in samples])
    for record in series.records():
        expected = moved[record.name]
        assert (record.samples, record.first, record.last) == (expected.samples, expected.first, expected.last)
        assert (record.bad, record.zeros) == (expected.bad, expected.zeros)
        assert (record.least, record.most) == (expected.least, expected.most)
        assert record.buckets[-1].first <= end


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 10**7), st.integers(20_000, 100_000))
def test_a_hundred_thousand_iterations_take_the_room_of_a_thousand(parameters, stride, room):
    series = RunSeries(1, room=room)
    rows = numpy.array([series.row("gradient", f"layer.{n}.weight") for n in range(parameters)])
    largest = 0
    for begin in range(0, 100_000, 1000):
        iterations = numpy.repeat(numpy.arange(begin, begin + 1000) * stride, len(rows))
        series.add_rows(numpy.tile(rows, 1000), iterations, 1.0 / (1 + iterations))
        largest = max(largest, sum(len(row[5]) + len(row[6]) for row in series.rows()))
    assert largest <= room
    assert all(record.samples == 100_000 for record in series.records())
    assert len(series.records()) * 100_000 + series.left_out == parameters * 100_000


def test_where_there_is_room_for_few_those_that_come_last_are_left_out():
    series = RunSeries(1, room=10_000)
    for number in range(1000):
        series.add("gradient", [f"weight.{number}"], [0], [1.0])
    kept = series.records()
    assert [record.name for record in kept] == [f"weight.{number}" for number in range(len(kept))]
    assert 10 < len(kept) < 30
    assert series.left_out == 1000 - len(kept)


@pytest.mark.slow
@given(st.integers(0, 120), st.integers(200, 400))
def test_when_a_gradient_began_to_die_is_found_to_a_bucket(dies, iterations):
    values = [1.0 if iteration < dies else 0.5 * 0.9 ** (iteration - dies) for iteration in range(iterations)]
    record = filled([("weight", iteration, value) for iteration, value in enumerate(values)])["weight"]
    below = next(iteration for iteration, value in enumerate(values) if value <= 1e-3)
    found = record.since(1e-3)
    assert found is not None
    assert found.first - record.width < below <= found.first
    assert record.since(values[-1] / 2) is None


def test_one_peak_is_no_level():
    record = filled([("w", n, 1000.0 if n == 3 else 1.0) for n in range(20)])["w"]
    assert (record.level, record.most) == (1.0, 1000.0)


def test_a_changed_row_is_refused():
    series = RunSeries(1)
    series.add("gradient", ["w"], [0], [1.0])
    [row] = series.rows()
    for at, value in ((4, row[4] + 1), (5, row[5][:-1] + b"\1"), (6, row[6] + row[6]), (4, "1"), (4, 0)):
        with pytest.raises(ValueError, match="damaged"):
            read_series([*row[:at], value, *row[at + 1 :]])
