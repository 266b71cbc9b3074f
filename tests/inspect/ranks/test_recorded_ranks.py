"""The recordings of a directory are one run: of the ranks that were started together last."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.ranks.agreement import agreement
from gradscope.inspect.ranks.recorded_ranks import open_ranks, ranks_of
from gradscope.inspect.recording import Recorder, RecordingError
from gradscope.inspect.recording.recorder.keep_policy import Policy
from tests.inspect.ranks.jobs import being_rank, record_ranks
from tests.inspect.recording.programs import mlp, train


def test_each_rank_has_a_file_of_its_own(tmp_path):
    record_ranks(tmp_path / "run", 3)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [f"rank-{rank}.gscope" for rank in range(3)]
    with open_ranks(tmp_path / "run") as ranks:
        assert [(m.rank, m.run.rank, m.run.world, len(m.tasks())) for m in ranks.members] == [
            (rank, rank, 3, 2) for rank in range(3)
        ]
        assert (ranks.world, ranks.notes) == (3, ())


def test_the_files_themselves_are_a_run_too(tmp_path):
    record_ranks(tmp_path, 2)
    with open_ranks(tmp_path / "rank-1.gscope", tmp_path / "rank-0.gscope") as ranks:
        assert [member.rank for member in ranks.members] == [0, 1]


def test_a_rank_without_a_recording_is_named(tmp_path):
    record_ranks(tmp_path, 3, [0, 2])
    with open_ranks(tmp_path) as ranks:
        assert [member.rank for member in ranks.members] == [0, 2]
        assert ranks.notes == ("no recording of rank 1: it was not started, or it could not write one",)
        with pytest.raises(RecordingError, match="no recording of rank 1; it has those of 0, 2"):
            ranks.member(1)


def test_ranks_of_an_earlier_job_are_left_out(tmp_path):
    record_ranks(tmp_path, 3)
    record_ranks(tmp_path, 2)
    with open_ranks(tmp_path) as ranks:
        assert [(member.rank, member.run.world) for member in ranks.members] == [(0, 2), (1, 2)]
        assert ranks.notes == (f"left out: {tmp_path}/rank-2.gscope: rank 2 of 3 of another start",)


def test_ranks_that_are_started_anew_add_a_run(tmp_path):
    record_ranks(tmp_path, 2, steps=3)
    record_ranks(tmp_path, 2, steps=1, restart=1)
    with open_ranks(tmp_path) as ranks:
        assert [(m.run.restart, len(m.tasks())) for m in ranks.members] == [(1, 1), (1, 1)]
        assert [run.restart for run in ranks.member(0).recording.runs] == [0, 1]


def test_the_start_before_a_restart_is_told_with_who_was_killed_in_it(tmp_path, capsys):
    for restart in range(3):
        record_ranks(tmp_path, 2, steps=3 - restart, restart=restart)
    with closing(sqlite3.connect(tmp_path / "rank-1.gscope")) as file, file:
        file.execute("UPDATE runs SET state = 'running', ended = NULL, pid = 4194305 WHERE restart = 1")
    told = "this is restart 2 of the job; --restart 1 shows the start before it, in which rank 1 was killed"
    with open_ranks(tmp_path) as ranks:
        assert ranks.notes == (told,)
    for restart in range(3):
        with open_ranks(tmp_path, restart=restart) as ranks:
            assert [(m.run.restart, len(m.tasks())) for m in ranks.members] == [(restart, 3 - restart)] * 2
            assert ranks.notes == ()
    with pytest.raises(RecordingError, match="there is no restart 3 of the job: there are 0, 1, 2"):
        open_ranks(tmp_path, restart=3)
    assert main(["agree", str(tmp_path), "--restart", "0"]) == 0
    assert main(["view", str(tmp_path), "--restart", "1"]) == 0
    printed = capsys.readouterr().out
    assert ("gradients in 3 steps" in printed, "  restart 1\n" in printed) == (True, True)
    assert main(["view", str(tmp_path / "rank-0.gscope"), "--restart", "1"]) == 2


def test_a_rank_that_an_elastic_restart_has_left_behind_is_named(tmp_path):
    record_ranks(tmp_path, 3)
    record_ranks(tmp_path, 2, restart=1, port=29501)
    with open_ranks(tmp_path) as ranks:
        assert [member.rank for member in ranks.members] == [0, 1]
        assert ranks.notes[0] == f"left out: {tmp_path}/rank-2.gscope: rank 2 of 3 of another start"


def test_the_clocks_of_machines_do_not_say_which_start_was_the_last(tmp_path):
    """The machine of rank 1, whose clock is a day ahead, took no part in the second start."""
    record_ranks(tmp_path, 2, steps=3)
    with closing(sqlite3.connect(tmp_path / "rank-1.gscope")) as connection, connection:
        connection.execute("UPDATE runs SET started = started + ?", (24 * 3600 * 10**9,))
    record_ranks(tmp_path, 2, [0], steps=1, restart=1)
    with open_ranks(tmp_path) as ranks:
        assert [(m.rank, m.run.restart, len(m.tasks())) for m in ranks.members] == [(0, 1, 1)]
        assert ranks.notes[0] == f"left out: {tmp_path}/rank-1.gscope: rank 1 of 2 of another start"


@pytest.mark.slow
def test_a_rank_whose_disk_is_full_does_not_hide_the_others(tmp_path, capsys):
    for rank, pages in ((0, None), (1, 200)):
        with being_rank(rank, 2), Recorder(f"{tmp_path}/", Policy.parse("all"), page_limit=pages) as recorder:
            model = mlp()
            for _ in range(30):
                train(model, 10)
                recorder.flush()  # so that a part of it is in the file before the disk is full
    assert "full" in recorder.failure
    assert f"{tmp_path}/rank-1.gscope: recording has stopped after" in capsys.readouterr().err
    with open_ranks(tmp_path) as ranks:
        assert len(ranks.member(0).tasks()) == 300
        found = agreement(ranks)
    assert (bool(found), 0 < found.steps < 300) == (True, True)
    assert any(note.startswith(f"rank 1 took {found.steps} of 300 steps") for note in found.notes)


def test_a_damaged_recording_does_not_hide_the_others(tmp_path):
    record_ranks(tmp_path, 2)
    (tmp_path / "rank-1.gscope").write_bytes(b"nothing of the kind, and longer than a header" * 3)
    with open_ranks(tmp_path) as ranks:
        assert [member.rank for member in ranks.members] == [0]
        assert ranks.notes[0] == f"left out: {tmp_path}/rank-1.gscope is not a gradscope recording"
    (tmp_path / "rank-0.gscope").write_bytes(b"")
    with pytest.raises(RecordingError, match="none of the recordings can be read"):
        open_ranks(tmp_path)


def test_a_directory_without_recordings(tmp_path):
    with pytest.raises(RecordingError, match="there is no recording in"):
        open_ranks(tmp_path)
    with pytest.raises(RecordingError, match=r"there is no directory .*none/"):
        open_ranks(f"{tmp_path}/none/")


def test_one_of_many_must_be_chosen(tmp_path):
    record_ranks(tmp_path, 2)
    assert ranks_of(str(tmp_path), 1) == f"{tmp_path}/rank-1.gscope"
    assert ranks_of("run.gscope", None) == "run.gscope"
    with pytest.raises(RecordingError, match="has the recordings of 2 ranks\nChoose one with --rank N"):
        ranks_of(str(tmp_path), None)
    with pytest.raises(RecordingError, match="is no directory"):
        ranks_of("run.gscope", 1)


def test_a_program_of_one_process_may_have_a_directory(tmp_path):
    with gi.record(f"{tmp_path}/run/"):
        pass
    assert ranks_of(f"{tmp_path}/run/", None) == f"{tmp_path}/run/rank-0.gscope"


def test_a_rank_that_still_runs_is_read(tmp_path):
    record_ranks(tmp_path, 2, [0])
    with being_rank(1, 2), gi.record(tmp_path) as recorder:
        recorder.flush()
        with open_ranks(tmp_path) as ranks:
            assert [member.run.state for member in ranks.members] == ["finished", "running"]
