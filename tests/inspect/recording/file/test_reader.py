"""Reading: what is there, lazily, while it is written, after a crash, and from damaged bytes."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.reports.text_view import overview_text
from tests.inspect.recording.killing import read_all
from tests.inspect.recording.programs import recorded


def test_nodes_are_a_sequence(tmp_path):
    nodes = recorded(tmp_path / "run.gscope", steps=1).tasks()[0].nodes
    assert len(nodes) == 9
    assert [n.index for n in nodes] == list(range(9))
    assert nodes[-1] == nodes[8] == list(nodes)[8]
    assert nodes[2:5] == [nodes[2], nodes[3], nodes[4]]
    assert nodes[::-3] == [nodes[8], nodes[5], nodes[2]]
    assert nodes[7:2] == []
    assert [node.norm for node in nodes] == [node.grad_outputs[0].norm for node in nodes]
    with pytest.raises(IndexError, match="there is no 9"):
        nodes[9]


def small_backwards(path, times):
    w, wide = gs.ones(4, requires_grad=True), gs.ones(100, requires_grad=True)
    with gi.record(path):
        for step in range(times):
            ((w * float(step)).exp().sum() + (wide * 2.0).sum()).backward()
    return gi.open_recording(path)


def test_many_small_backwards_are_read_as_each_alone(tmp_path, monkeypatch):
    path = tmp_path / "run.gscope"
    together = small_backwards(path, 100)
    asked, rows = [], together._database.rows
    monkeypatch.setattr(together._database, "rows", lambda *query: asked.append(query) or rows(*query))
    found = [list(task.nodes) for task in together.tasks()]
    assert len(asked) < 20
    assert found == [list(gi.open_recording(path).task(task.id).nodes) for task in together.tasks()]
    assert any(summary.infs for nodes in found for node in nodes for summary in node.grad_outputs or ())


def test_a_damaged_backward_hides_none_of_those_beside_it(tmp_path):
    path = tmp_path / "run.gscope"
    small_backwards(path, 10).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE pages SET checksum = checksum + 1 WHERE id = 5")
    recording = gi.open_recording(path)
    for task in recording.tasks():
        if task.id == 5:
            with pytest.raises(RecordingError, match="checksum"):
                list(task.nodes)
        else:
            assert len(list(task.nodes)) == task.count


def test_find(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=2)
    found = recording.find("param:*.bias", iteration=2)
    assert [(task, node.parameter) for task, node in found] == [(2, "2.bias"), (2, "0.bias")]
    with pytest.raises(gi.BreakpointError):
        recording.find("what:ever")


def test_a_backward_is_looked_up_not_searched_for(tmp_path):
    class Unsearchable(dict):
        def __iter__(self):
            raise AssertionError("searched")

        keys = values = items = __iter__

    recording = recorded(tmp_path / "run.gscope", steps=3)
    second = recording.tasks()[1]
    recording._tasks = Unsearchable(recording._tasks)
    assert recording.task(second.id) is second


def test_what_is_not_there(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=1)
    with pytest.raises(RecordingError, match="has no backward 7"):
        recording.task(7)
    with pytest.raises(RecordingError, match="has no node 99"):
        recording.value(1, 99)
    with pytest.raises(ValueError, match="grad_outputs"):
        recording.value(1, 0, "grads")


def test_an_empty_recording(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        pass
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        read_all(recording)
        assert recording.tasks() == []


def test_it_is_read_while_it_is_written(tmp_path):
    x = gs.ones(3, requires_grad=True)
    with gi.record(tmp_path / "run.gscope") as recorder:
        (x * 2).sum().backward()
        recorder.flush()
        with gi.open_recording(tmp_path / "run.gscope") as recording:
            assert [task.count for task in recording.tasks()] == [3]
            assert recording.runs[0].state == "running"
            (x * 2).sum().backward()
            recorder.flush()
            recording.refresh()
            assert [task.count for task in recording.tasks()] == [3, 3]


READ_AT_EXIT = """
import atexit, sys

atexit.register(lambda: print(len(recording.find("op:*"))))  # the last of all to be called

import gradscope.inspect as gi

recording = gi.open_recording(sys.argv[1])
"""


def test_what_nobody_has_closed_is_open_to_the_end(tmp_path):
    # Otherwise it would be closed while a thread reads from it, which SQLite does not survive.
    recorded(tmp_path / "run.gscope", steps=2).close()
    command = [sys.executable, "-c", READ_AT_EXIT, str(tmp_path / "run.gscope")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "18\n", "")


def test_what_nobody_has_closed_is_closed_when_it_is_let_go(tmp_path):
    recording = recorded(tmp_path / "run.gscope", steps=1)
    database = recording._database
    del recording
    gc.collect()  # its backwards know it
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.rows("SELECT 1")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"SQLite format 3\0", "cut short"),
        (b"not a database" * 100, "is not a gradscope recording"),
    ],
)
def test_other_files(tmp_path, data, message):
    (tmp_path / "x.gscope").write_bytes(data)
    with pytest.raises(RecordingError, match=message):
        gi.open_recording(tmp_path / "x.gscope")


def test_another_database_a_directory_and_nothing(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("CREATE TABLE runs (id)")
    with pytest.raises(RecordingError, match="is not a gradscope recording"):
        gi.open_recording(tmp_path / "x.db")
    with pytest.raises(RecordingError, match="is a directory"):
        gi.open_recording(tmp_path)
    with pytest.raises(RecordingError, match="there is no recording"):
        gi.open_recording(tmp_path / "none.gscope")


@pytest.mark.parametrize(
    ("version", "told"), [(99, "newer gradscope: its layout is 99"), (1, "older gradscope: its layout is 1")]
)
def test_a_recording_of_another_version(tmp_path, version, told):
    recorded(tmp_path / "x.gscope", steps=1).close()
    with closing(sqlite3.connect(tmp_path / "x.gscope")) as connection, connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(RecordingError, match=told):
        gi.open_recording(tmp_path / "x.gscope")


LACKS = {4: ("series", "left_out", "module_types"), 5: ("module_types",)}


def as_layout(path, layout):
    """Make of a recording what gradscope 0.3.0 (layout 4) or 0.7.0 (layout 5) would have written."""
    with closing(sqlite3.connect(path)) as connection, connection:
        drops = "".join(f"DROP TABLE {table}; " for table in LACKS[layout])
        connection.executescript(f"{drops} PRAGMA user_version = {layout};")


@pytest.mark.parametrize("layout", LACKS)
def test_a_recording_of_a_layout_before_is_read_and_gone_on_with(tmp_path, layout):
    path = tmp_path / "x.gscope"
    recorded(path, steps=2).close()
    with gi.open_recording(path) as recording:
        assert recording.series()
        assert recording.modules(1)
    as_layout(path, layout)
    before = path.read_bytes()
    with gi.open_recording(path) as recording:
        assert bool(recording.series()) == (layout == 5)
        assert recording.modules(1) == []
        assert recording.tasks()
    assert path.read_bytes() == before
    recorded(path, steps=2, append=True).close()
    with gi.open_recording(path) as recording:
        assert len(recording.runs) == 2
        assert recording.runs[-1].id in {record.run for record in recording.series()}
        assert [module.kind for module in recording.modules(2)] == ["Sequential", "Linear", "ReLU", "Linear"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path):
    recorded(tmp_path / "x.gscope", steps=1).close()
    (tmp_path / "x.gscope").chmod(0)
    with pytest.raises(RecordingError, match="cannot be read"):
        gi.open_recording(tmp_path / "x.gscope")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "run.gscope"
    recorded(path, steps=2, keep="all").close()
    return path.read_bytes()


def read_or_refuse(path):
    try:
        with gi.open_recording(path) as recording:
            read_all(recording)
    except RecordingError as error:
        assert str(path) in str(error)  # noqa: PT017


@settings(max_examples=40)
@given(st.data())
def test_damaged_bytes_never_give_anything_but_a_recording_error(sound, tmp_path_factory, data):
    damaged = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 20))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "run.gscope"
    path.write_bytes(damaged)
    read_or_refuse(path)


@settings(max_examples=25)
@given(st.floats(0, 1))
def test_a_truncated_file_never_gives_anything_but_a_recording_error(sound, tmp_path_factory, part):
    path = tmp_path_factory.mktemp("cut") / "run.gscope"
    path.write_bytes(sound[: int(len(sound) * part)])
    read_or_refuse(path)


def test_nothing_is_added_to_a_damaged_recording(sound, tmp_path):
    path = tmp_path / "run.gscope"
    for damage in (
        lambda data: data.replace(b"CREATE TABLE tasks", b"CREAT\xff TABLE tasks"),
        lambda data: data.replace(b"CREATE TABLE events", b"CREATE TABLE evants"),
    ):
        path.write_bytes(damage(sound))
        with pytest.raises(RecordingError) as raised:
            gi.record(path, append=True).start()
        assert str(path) in str(raised.value)
        assert raised.value.args[0].endswith("another file.")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tasks SET nodes = 'many'", "UPDATE tasks SET nodes = -1", "UPDATE tasks SET bad = 10000",
        "UPDATE tasks SET nodes = 10000", "UPDATE nodes SET name = NULL", "UPDATE nodes SET edges = '[[1]]'",
        "UPDATE nodes SET outputs = 'x'", "UPDATE nodes SET location = 77", "DELETE FROM nodes", "DELETE FROM specs",
        "DELETE FROM pages", "DROP TABLE events", "UPDATE pages SET count = 3, first = 100", "DELETE FROM modules",
        "UPDATE pages SET nodes = x'00'", "UPDATE tensor_values SET data = x'00'", "UPDATE specs SET shape = '\"a\"'",
        "UPDATE runs SET started = 'then'", "UPDATE locations SET lineno = 'first'", "UPDATE tasks SET started = 'x'",
        "UPDATE pages SET first = NULL", "UPDATE pages SET first = 'x'", "UPDATE iterations SET number = 'x'",
        "UPDATE tasks SET thread = 5, state = NULL", "DELETE FROM iterations",
    ],
)  # fmt: skip
def test_rows_that_make_no_sense(sound, tmp_path, statement):
    path = tmp_path / "run.gscope"
    path.write_bytes(sound)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    read_or_refuse(path)


def test_a_changed_number_in_a_page_is_noticed(sound, tmp_path):
    path = tmp_path / "run.gscope"
    path.write_bytes(sound)
    with closing(sqlite3.connect(path)) as connection, connection:
        (data,) = connection.execute("SELECT tensors FROM pages LIMIT 1").fetchone()
        data = bytearray(data)
        data[70] ^= 1
        connection.execute("UPDATE pages SET tensors = ?", (bytes(data),))
    with gi.open_recording(path) as recording, pytest.raises(RecordingError, match="checksum"):
        recording.tasks()[0].nodes[0]


def test_a_finished_recording_opens_where_nothing_can_be_written(sound, tmp_path):
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "run.gscope").write_bytes(sound)
    folder.chmod(0o555)
    try:
        with gi.open_recording(folder / "run.gscope") as recording:
            assert len(recording.tasks()) == 2
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_long_backward_opens_at_once(tmp_path):
    y = x = gs.ones(2, requires_grad=True)
    for _ in range(20_000):
        y = y * 1.0
    with gi.record(tmp_path / "run.gscope", "summaries"):
        y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    start = time.process_time()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        overview_text(recording)
        page = recording.tasks()[0].nodes[:50]
    assert time.process_time() - start < 1.0
    assert [node.index for node in page] == list(range(50))
    assert recording.tasks()[0].count == 20_002


def test_zeros_of_both_signs_are_read_as_they_were_recorded(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        for sign in (1.0, -1.0):
            x = gs.ones(2, requires_grad=True)
            (x * gs.tensor([0.0, 0.5]) * sign).sum().backward()
    recording = gi.open_recording(tmp_path / "run.gscope")
    tasks = [[node for node in task.nodes if node.operator == "Mul"] for task in recording.tasks()]
    found = [[node.grad_inputs[0].preview for node in nodes] for nodes in tasks]
    assert found == [["[1, 1]", "[0, 0.5]"], ["[-1, -1]", "[-0, -0.5]"]]
