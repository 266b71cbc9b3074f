"""A recording whose file is moved, replaced, deleted or overwritten while it is written."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file import recording_file
from gradscope.inspect.recording.recorder.keep_policy import Policy
from tests.inspect.recording.programs import mlp, train

pytestmark = pytest.mark.skipif(os.name == "nt", reason="an open file cannot be moved or deleted")


def interfered(path, interfere, **options):
    """Record, have the file interfered with, and record on; return the recorder."""
    with gi.record(path, **options) as recorder:
        train(mlp(), 6)
        recorder.flush()
        interfere()
        plain = train(mlp(), 6)
        recorder.flush()
        watched = train(mlp(), 6)
    for a, b in zip(plain, watched):
        assert a.tobytes() == b.tobytes()
    return recorder


def nodes_in(path):
    with gi.open_recording(path) as recording:
        for task in recording.tasks():
            assert [node.index for node in task.nodes] == list(range(task.count))
        return sum(task.count for task in recording.tasks())


def assert_all_is_in(recorder, path):
    assert (recorder.path, recorder.lost, recorder.failure) == (str(path), 0, "")
    assert nodes_in(path) == recorder.nodes == 18 * 9


@pytest.mark.parametrize("folder", [False, True])
def test_a_file_that_is_moved_is_followed(tmp_path, capsys, folder):
    old, new = tmp_path / "runs", tmp_path / "moved"
    old.mkdir()
    new.mkdir()

    def move():
        if folder:
            new.rmdir()
            old.rename(new)
        else:
            (old / "run.gscope").rename(new / "run.gscope")

    recorder = interfered(old / "run.gscope", move)
    assert_all_is_in(recorder, new / "run.gscope")
    assert sorted(path.name for path in tmp_path.rglob("*.gscope*")) == ["run.gscope"]
    what, todo = capsys.readouterr().err.splitlines()
    assert what.endswith(f"the file has been moved to {new / 'run.gscope'}, and recording goes on there")
    assert str(new / "run.gscope") in todo


def test_a_file_that_is_moved_twice_is_followed(tmp_path):
    path = tmp_path / "run.gscope"
    with gi.record(path) as recorder:
        for name in ("a.gscope", "b.gscope"):
            train(mlp(), 2)
            recorder.flush()
            path = path.rename(tmp_path / name)
        train(mlp(), 2)
    assert nodes_in(path) == recorder.nodes == 54
    assert os.listdir(tmp_path) == ["b.gscope"]


@pytest.mark.parametrize("other", [b"another program's", None])
def test_what_takes_the_files_place_is_not_touched(tmp_path, capsys, other):
    path, foreign = tmp_path / "run.gscope", tmp_path / "other"
    if other is None:
        with gi.record(foreign):
            train(mlp(), 1)
        other = foreign.read_bytes()
    else:
        foreign.write_bytes(other)
    recorder = interfered(path, lambda: os.replace(foreign, path))
    assert_all_is_in(recorder, tmp_path / "run-1.gscope")
    assert path.read_bytes() == other
    assert sorted(os.listdir(tmp_path)) == ["run-1.gscope", "run.gscope"]
    what, todo = capsys.readouterr().err.splitlines()
    assert "another file has taken the place of the recording; what was recorded is kept in" in what
    assert "run-1.gscope" in todo


def test_a_file_that_is_deleted_goes_on_beside(tmp_path, capsys):
    (tmp_path / "run-1.gscope").write_text("somebody's")
    recorder = interfered(tmp_path / "run.gscope", (tmp_path / "run.gscope").unlink)
    assert_all_is_in(recorder, tmp_path / "run-2.gscope")
    assert (tmp_path / "run-1.gscope").read_text() == "somebody's"
    assert "the file has been deleted; what was recorded is kept in" in capsys.readouterr().err
    assert stat.S_IMODE((tmp_path / "run-2.gscope").stat().st_mode) == 0o600


def test_a_log_that_is_deleted_is_missed_by_nobody(tmp_path, capsys):
    path = tmp_path / "run.gscope"

    def clean_up():
        for ending in ("-wal", "-shm"):
            os.remove(f"{path}{ending}")

    assert_all_is_in(interfered(path, clean_up), path)
    assert os.listdir(tmp_path) == ["run.gscope"]
    assert capsys.readouterr().err == ""


def test_a_directory_that_is_deleted_is_told_as_lost(tmp_path, capsys):
    folder = tmp_path / "runs"
    folder.mkdir()
    recorder = interfered(folder / "run.gscope", lambda: shutil.rmtree(folder))
    assert recorder.nodes == 0
    assert recorder.lost >= 2 * 54
    assert "what was recorded is lost" in recorder.failure
    assert capsys.readouterr().err.count("recording has stopped") == 1


@pytest.mark.parametrize("content", [b"", b"a letter to a friend", b"x" * 500_000])
def test_what_another_program_has_written_is_left_to_it(tmp_path, capsys, content):
    path = tmp_path / "run.gscope"
    recorder = interfered(path, lambda: path.write_bytes(content))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["run.gscope"]
    assert recorder.nodes == 0
    assert "another program has written into the file, and what was recorded is lost" in recorder.failure
    assert capsys.readouterr().err.count("recording has stopped") == 1


def test_a_disk_that_is_full_leaves_what_is_committed_in_the_file_itself(tmp_path):
    recorder = gi.recording.Recorder(tmp_path / "run.gscope", Policy.parse("all"), page_limit=30)
    with recorder:
        while not recorder.failure:
            train(mlp(), 5)
            recorder.flush()
        kept = (tmp_path / "kept").mkdir() or shutil.copy(tmp_path / "run.gscope", tmp_path / "kept")
        assert nodes_in(kept) == recorder.nodes > 0


IDLE = """
import sys, time
import gradscope as gs, gradscope.inspect as gi

x = gs.ones(3, requires_grad=True)
with gi.record(sys.argv[1]) as recorder:
    x.exp().sum().backward()
    recorder.flush()
    print("recorded", flush=True)
    time.sleep(60)
"""


def test_a_recording_moved_while_nothing_happens_survives_a_kill(tmp_path):
    path, there = tmp_path / "run.gscope", tmp_path / "moved.gscope"
    program = subprocess.Popen([sys.executable, "-c", IDLE, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert program.stdout.readline() == b"recorded\n"
    path.rename(there)
    assert b"has been moved to" in program.stderr.readline()
    program.send_signal(signal.SIGKILL)
    program.communicate()
    assert nodes_in(there) == 3


def test_a_recording_is_its_owners_alone_unless_it_was_others_before(tmp_path):
    path = tmp_path / "run.gscope"
    for mode in (0o600, 0o644):
        with gi.record(path):
            train(mlp(), 1)
            modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)}
            assert modes == {mode}
        path.chmod(0o644)


FULL = """
import resource, sys
import gradscope.inspect as gi

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    gi.record(sys.argv[1]).start()
except gi.RecordingError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.slow
def test_a_disk_that_is_full_at_the_start_leaves_nothing_and_what_was_there(tmp_path):
    pytest.importorskip("resource", reason="limits the size of files")
    path = tmp_path / "run.gscope"
    with gi.record(path):
        train(mlp(), 1)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert "cannot be written" in done.stdout
    assert os.listdir(tmp_path) == ["run.gscope"]
    assert path.read_bytes() == before


def test_a_pipe_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "run.gscope")
    began = time.monotonic()
    with pytest.raises(RecordingError, match="no regular file"):
        gi.open_recording(tmp_path / "run.gscope")
    with pytest.raises(RecordingError, match="no regular file"):
        gi.record(tmp_path / "run.gscope").start()
    assert time.monotonic() - began < 10


def test_another_program_that_opens_the_file_and_leaves_is_no_matter(tmp_path):
    """Reading a file's first bytes gives up this process's locks on it, were they read the plain way."""
    path = tmp_path / "run.gscope"
    with gi.record(path) as recorder:
        train(mlp(), 2)
        recorder.flush()
        gi.open_recording(path).close()
        look = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT id FROM runs')); c.close()"
        )
        subprocess.run([sys.executable, "-c", look, str(path)], check=True)
        assert (tmp_path / "run.gscope-wal").exists()
        train(mlp(), 2)
    assert (recorder.failure, recorder.nodes) == ("", 36)
    assert nodes_in(path) == 36


class KilledMeanwhile:
    """A connection that keeps what a kill in the middle of moving the log into the file would have left."""

    def __init__(self, connection, path, kept):
        self._connection, self._path, self._kept = connection, path, kept

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, sql, *parameters):
        if "TRUNCATE" not in sql or not self._path.exists():
            return self._connection.execute(sql, *parameters)
        before = self._path.read_bytes()
        if os.path.exists(f"{self._path}-wal"):
            shutil.copy(f"{self._path}-wal", f"{self._kept}-wal")
        done = self._connection.execute(sql, *parameters)
        after = self._path.read_bytes()
        pages = range(0, len(after), 4096)
        self._kept.write_bytes(b"".join((before, after)[at // 4096 % 2][at : at + 4096] for at in pages))
        return done


@pytest.mark.parametrize("way", ["the log is deleted", "the file is moved"])
def test_a_kill_while_the_log_is_moved_into_the_file_damages_nothing(tmp_path, way):
    path, there, kept = tmp_path / "run.gscope", tmp_path / "run.gscope", tmp_path / "kept.gscope"
    with gi.record(path) as recorder:
        train(mlp(), 6)
        recorder.flush()
        if way == "the file is moved":
            there = path.rename(tmp_path / "moved.gscope")
        else:
            os.remove(f"{path}-wal")
            os.remove(f"{path}-shm")
        file = recorder._writer._file
        file.connection = KilledMeanwhile(file.connection, there, kept)
        train(mlp(), 6)
        recorder.flush()
        assert nodes_in(kept) == 6 * 9
    assert [name for name in os.listdir(tmp_path) if not name.startswith("kept")] == [there.name]
    assert nodes_in(there) == recorder.nodes == 12 * 9


@pytest.mark.slow
def test_whoever_looks_at_the_file_for_a_moment_does_not_leave_it_with_a_log(tmp_path, monkeypatch):
    path = tmp_path / "run.gscope"
    with gi.record(path) as recorder:
        train(mlp(), 2)
        recorder.flush()
        reader = sqlite3.connect(path, check_same_thread=False)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        monkeypatch.setattr(
            recording_file, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: reader.close())
        )
    assert os.listdir(tmp_path) == ["run.gscope"]
    assert nodes_in(path) == 18
