"""What is said of how gradients went over a run."""

from __future__ import annotations

import math

import pytest

from gradscope.cli import main
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.run_series import RunSeries
from gradscope.inspect.recording.reports.html_report import html_report
from gradscope.inspect.recording.reports.series_view import (
    buckets_text,
    chosen_series,
    faded_text,
    remarks,
    series_text,
)
from tests.inspect.ranks.jobs import record_ranks


def series(values, name="w", kind="gradient"):
    found = RunSeries(1)
    for iteration, value in enumerate(values):
        if value is not None:
            found.add(kind, [name], [iteration], [value])
    return found.records()[0]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1.0] * 20, []),
        ([1.0] * 10 + [0.05] * 10, []),
        (
            [1.0] * 10 + [0.05] * 10 + [5e-4] * 10 + [0.0] * 3,
            ["part of its highest level: under 0.1 since 10, 0.001 since 20", "zero since iteration 30"],
        ),
        ([1.0, math.nan, 1.0, math.inf, 1.0], ["NaN or Inf 2 times, in iterations 1 to 3"]),
        ([1.0, 0.0, 1.0], ["zero once, in iteration 1"]),
        ([1.0, 1.0, *[None] * 20], ["none since iteration 1"]),
        ([0.0] * 5, ["zero since iteration 0"]),
    ],
)
def test_remarks(values, told):
    assert list(remarks(series(values), len(values) - 1)) == told


def test_of_a_loss_nothing_is_said_to_die():
    assert list(remarks(series([1.0] * 10 + [1e-9] * 10, "", "loss"), 19)) == []


def test_gradients_that_died_first_are_named_first():
    found = [series([1.0] * n + [1e-6] * (20 - n), f"layer.{n}") for n in (9, 7, 3, 5)]
    assert faded_text(found) == (
        "gradients under 0.001 of their highest level: layer.3 since iteration 3, layer.5 since iteration 5, "
        "layer.7 since iteration 7, 1 more"
    )
    assert faded_text([series([1.0] * 20)]) == ""


def test_one_series_is_told_in_full_and_many_in_a_line_each():
    one, other = series([1.0, 0.5, math.nan]), series([2.0] * 3, "b")
    assert buckets_text(one).splitlines() == [
        "norm of the gradient of w, 3 samples in iterations 0 to 2",
        "  NaN or Inf once, in iteration 2",
        "iterations  samples  mean  least  most",
        "0           1        1     1      1",
        "1           1        0.5   0.5    0.5",
        "2           1        -     -      -     1 NaN or Inf",
    ]
    assert series_text([("", [one])]) == buckets_text(one)
    table = series_text([("0", [one, other]), ("1", [one])], limit=2).splitlines()
    assert [line.split()[:2] for line in table] == [["series", "rank"], ["w", "0"], ["w", "1"], ["...", "1"]]


def test_a_name_that_is_none_is_told_with_some_that_are():
    found = [series([1.0]), series([1.0], "", "loss")]
    assert [one.kind for one in chosen_series(found, "l*s")] == ["loss"]
    with pytest.raises(RecordingError, match=r"no series 'nothing'\nThere are w, loss\."):
        chosen_series(found, "nothing")
    with pytest.raises(RecordingError, match="no norm is known"):
        chosen_series([], "w")


def test_a_run_of_ranks_a_recording_and_a_report_show_them(tmp_path, capsys, recording):
    record_ranks(tmp_path / "run", 2, steps=3)
    assert main(["view", str(tmp_path / "run"), "--series", "*.bias"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["series", "rank"], ["2.bias", "0"], ["2.bias", "1"], ["0.bias", "0"], ["0.bias", "1"],
    ]  # fmt: skip
    assert main(["view", str(tmp_path / "run"), "--rank", "1", "--series", "0.bias"]) == 0
    assert "3 samples in iterations 1 to 3" in capsys.readouterr().out
    assert main(["view", recording.path, "-c", "series 2.*"]) == 0
    assert "2.weight" in capsys.readouterr().out
    assert main(["view", recording.path, "--series", "none"]) == 2
    assert "Over the whole run" in html_report(recording)
