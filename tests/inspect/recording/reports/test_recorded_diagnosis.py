"""What a recording shows to be wrong, without running anything."""

import json

import pytest

import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.diagnosis.finding_limits import Limits
from gradscope.inspect.recording.reports.recorded_diagnosis import diagnose_recording


@pytest.fixture
def recorded(fw, tmp_path):
    """Record six backward passes, of which the last three contain a NaN."""

    def record(bad_from=4):
        path = tmp_path / "run.gscope"
        x = fw.ones(3, requires_grad=True)
        with gi.record(path):
            for number in range(1, 7):
                (((x * (number < bad_from)).sqrt() * 0).sum() + x.sum()).backward()
        return path

    return record


def test_a_nan_is_told_once_with_the_backward_that_had_it_first(recorded):
    with gi.open_recording(recorded()) as recording:
        diagnosis = diagnose_recording(recording)
    (found,) = [finding for finding in diagnosis.findings if finding.kind == "nan"]
    assert (found.since, found.times, diagnosis.backwards, diagnosis.looked_into) == (4, 3, 6, 6)
    assert found.location.filename == __file__
    assert "first in backward 4, in 3 of 6" in str(diagnosis)


def test_of_gradients_that_are_well_nothing_is_said(fw, tmp_path):
    x = fw.ones(3, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        for _ in range(20):
            (x * 2).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        diagnosis = diagnose_recording(recording)
    assert (diagnosis.findings, diagnosis.backwards, diagnosis.looked_into) == ((), 20, 7)
    assert str(diagnosis) == "Nothing found in 7 backward passes of the 20 that are recorded."


def test_the_limits_are_those_of_the_debugger(fw, tmp_path):
    model = fw.nn.Sequential(*(fw.nn.Linear(4, 4) for _ in range(2)))
    with gi.record(tmp_path / "run.gscope"):
        (model(fw.ones(2, 4)).sum() * 100).backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert not diagnose_recording(recording)
        strict = Limits(exploding_norm=1.0, norm_spread=1.01)
        assert "exploding" in [finding.kind for finding in diagnose_recording(recording, strict).findings]


def test_the_command_reports_it(recorded, capsys):
    path = str(recorded())
    assert main(["doctor", path]) == 1
    assert "nan: " in capsys.readouterr().out
    assert main(["doctor", "--format", "json", path]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["recording"], told["findings"][0]["kind"]) == (path, "nan")
    assert main(["doctor", "--steps", "3", path]) == 2
    assert "a recording is not run" in capsys.readouterr().err
    assert main(["doctor", "--limit", "large_update=1", path]) == 2
