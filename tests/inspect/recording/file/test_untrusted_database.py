"""Recordings that a stranger has made are refused, or cost no more than their size explains."""

import json
import sqlite3
import time
import zlib
from contextlib import closing

import pytest

import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file import untrusted_database as module
from gradscope.inspect.recording.file.array_blobs import unpack_array
from tests.gradscope_command import gradscope
from tests.inspect.recording.killing import read_all
from tests.inspect.recording.programs import mlp, recorded, train

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.fixture
def path(tmp_path):
    recorded(tmp_path / "run.gscope", steps=2, keep="all").close()
    return tmp_path / "run.gscope"


def alter(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def refused(path, match):
    began = time.process_time()
    with pytest.raises(RecordingError, match=match) as raised, gi.open_recording(path) as recording:
        read_all(recording)
    assert time.process_time() - began < 60
    return str(raised.value)


@pytest.mark.parametrize(
    ("script", "what"),
    [
        (f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS} i, 't', 'f', 'k', 1, 'h', '', '', 1, 1, 's' FROM n", "view"),
        (f"DROP TABLE tasks; CREATE VIEW tasks AS {ENDLESS} i FROM n", "view"),
        (f"DROP VIEW edges; CREATE VIEW edges AS {ENDLESS} i FROM n", "view"),
        ("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN DELETE FROM pages; END", "trigger"),
        ("CREATE VIRTUAL TABLE v USING fts5(x)", "table"),
        ("CREATE TABLE more (id)", "table"),
        ("CREATE INDEX more ON events (text)", "index"),
    ],
)
def test_what_no_recording_has_is_refused(path, script, what):
    alter(path, script)
    what_happened, what_to_do = refused(path, f"is refused: its {what}").splitlines()
    assert str(path) in what_happened
    assert what_to_do
    with pytest.raises(RecordingError, match="nothing can be added to it"):
        gi.record(path, append=True).start()


@pytest.mark.parametrize("command", [["view", "--text"], ["report"], ["diff"], ["view", "--export", "x.json"]])
def test_an_endless_view_hangs_no_command(path, command):
    alter(path, f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS} i, 't', 'f', 'k', 1, 'h', '', '', 1, 1, 's' FROM n")
    name, *options = command
    files = [path.name] * (2 if name == "diff" else 1)
    done = gradscope(name, *files, *options, cwd=path.parent, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 2
    assert "is refused: its view 'runs'" in done.stderr


def test_a_query_that_takes_too_long_is_ended(path, monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT", 0.2)
    with closing(module.Database(str(path))) as database, pytest.raises(ValueError, match="it takes longer than"):
        database.rows(f"{ENDLESS} count(*) FROM n")


def test_rows_and_bytes_that_no_file_of_its_size_holds_are_refused(path):
    with closing(module.Database(str(path))) as database:
        with pytest.raises(ValueError, match="claims to hold more"):
            database.rows(f"{ENDLESS} i FROM n")
        with pytest.raises(ValueError, match="claims to hold more"):
            database.rows(f"{ENDLESS} hex(zeroblob(100000)) FROM n")
        with pytest.raises(sqlite3.DataError, match="too big"):
            database.rows("SELECT zeroblob(100000000)")


def test_a_tree_that_leads_to_the_same_leaf_again_and_again(path):
    """Each page of the tree names one child over and over: few bytes, and rows without end."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO events (time, kind, text) VALUES (?, 'mark', ?)", [(1, "x" * 400)] * 60_000)
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
    data = bytearray(path.read_bytes())
    size = 8192

    def children(page):
        start = (page - 1) * size
        count = int.from_bytes(data[start + 3 : start + 5], "big")
        cells = [int.from_bytes(data[start + 12 + 2 * i : start + 14 + 2 * i], "big") for i in range(count)]
        return [start + cell for cell in cells] + [start + 8]

    assert data[(root - 1) * size] == 5, "an inner page"
    inner = [int.from_bytes(data[at : at + 4], "big") for at in children(root)]
    inner = [page for page in inner if data[(page - 1) * size] == 5] or [root]
    for page in {root, *inner}:
        places = children(page)
        largest = max((data[at : at + 4] for at in places), key=bytes)
        for at in places:
            data[at : at + 4] = largest
    path.write_bytes(data)
    began = time.process_time()
    try:
        with gi.open_recording(path) as recording:
            assert len(recording.events()) < len(data)
    except RecordingError:
        pass
    assert time.process_time() - began < 60


def test_pages_that_two_backwards_share_are_refused(path):
    alter(path, "UPDATE pages SET task = 1, first = first + 9 * (id - 1)")
    with gi.open_recording(path) as recording:
        recording.page_starts(1)
        recording._page_owners[1] = 2
        with pytest.raises(RecordingError, match="do not follow each other"):
            recording.page_starts(1)


def test_a_value_that_would_unpack_to_more_than_it_may_is_refused():
    bomb = json.dumps(["zlib", "<f8", [1 << 40]]).encode() + b"\n" + zlib.compress(bytes(1 << 20))
    with pytest.raises(ValueError, match="it claims to take"):
        unpack_array(bomb)


@pytest.mark.parametrize("data", [1 << 40, None, "text", 0.5])
def test_a_value_that_is_no_bytes_is_refused(path, data):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tensor_values SET data = ?", (data,))
    with (
        gi.open_recording(path) as recording,
        pytest.raises(RecordingError, match="value is damaged: it is"),
    ):
        recording.value(1, 0)


@pytest.mark.slow
def test_many_runs_and_iterations_are_grouped_once(tmp_path):
    path = tmp_path / "run.gscope"
    with gi.record(path):
        train(mlp(), 1)
    rows = ", ".join(f"({n}, 1, {n}, 0, 1, '')" for n in range(2, 20_000))
    tasks = ", ".join(f"({n}, 1, {n}, {n}, NULL, 't', 0, 1, 'finished', NULL, 0, NULL, NULL)" for n in range(2, 20_000))
    alter(path, f"INSERT INTO iterations VALUES {rows}; INSERT INTO tasks VALUES {tasks}")
    from gradscope.inspect.recording.reports.text_view import iterations_text, overview_text

    began = time.process_time()
    with gi.open_recording(path) as recording:
        assert len(iterations_text(recording).splitlines()) == 20_000
        overview_text(recording)
    assert time.process_time() - began < 20
