"""Which file a recorder writes: no two ranks of a job the same."""

from __future__ import annotations

import os
import re

import pytest

import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.recorder.recording_names import recording_path
from gradscope.inspect.records.own_rank import OwnRank

SECOND = OwnRank(1, 4)


@pytest.mark.parametrize(
    ("path", "alone", "second"),
    [
        ("run.gscope", "run.gscope", "run-rank1.gscope"),
        ("run", "run", "run-rank1"),
        ("{rank}.gscope", "0.gscope", "1.gscope"),
        ("a{pid}-{rank}", "aPID-0", "aPID-1"),
        ("a{pid}", "aPID", "aPID"),
    ],
)
def test_names(path, alone, second):
    pid = str(os.getpid())
    assert recording_path(path, OwnRank()) == alone.replace("PID", pid)
    assert recording_path(path, SECOND) == second.replace("PID", pid)


def test_a_time_tells_no_ranks_apart():
    assert re.fullmatch(r"run-\d{8}-\d{6}\.gscope", recording_path("run-{time}.gscope", OwnRank()))
    assert re.fullmatch(r"run-\d{8}-\d{6}-rank1\.gscope", recording_path("run-{time}.gscope", SECOND))
    with pytest.raises(ValueError, match=r"different directories\nLet the shell say the time once"):
        recording_path("{time}/", SECOND)


def test_a_directory_is_made(tmp_path):
    assert recording_path(f"{tmp_path}/a/b/", SECOND) == f"{tmp_path}/a/b/rank-1.gscope"
    assert recording_path(str(tmp_path / "a" / "b"), OwnRank()) == f"{tmp_path}/a/b/rank-0.gscope"
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match="cannot be made: Not a directory"):
        recording_path(f"{tmp_path}/file/run/", SECOND)


def test_other_braces_are_refused_before_anything_is_recorded(tmp_path):
    with pytest.raises(ValueError, match=r"has \{rnak\} in it\nWhat may stand in braces is \{rank\}"):
        gi.record(tmp_path / "{rnak}.gscope").start()
    assert list(tmp_path.iterdir()) == []
