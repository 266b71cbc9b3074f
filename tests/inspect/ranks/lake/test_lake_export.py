"""What is new in recordings is added to a dataset, once, and each file is there whole or not at all."""

from __future__ import annotations

import os
import shutil

import pytest

import gradscope.inspect as gi
from gradscope.inspect.ranks.lake import lake_export
from gradscope.inspect.ranks.lake.lake_export import export_run, follow_run
from gradscope.inspect.ranks.lake.lake_schema import TABLES
from gradscope.inspect.recording import RecordingError
from tests.inspect.ranks.jobs import being_rank, record_ranks
from tests.inspect.recording.programs import mlp, recorded, train

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `lake`")


def export(tmp_path, **options):
    return export_run([str(tmp_path / "run")], str(tmp_path / "lake"), **options)


def files(tmp_path):
    lake = tmp_path / "lake"
    return sorted(str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file())


def rows(tmp_path, table):
    return parquet.read_table(tmp_path / "lake" / table)


def test_runs_ranks_and_iterations_are_partitions(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=3)
    done = export(tmp_path)
    assert (done.run, done.nodes, done.steps, done.running) == ("run", 2 * 27, 2 * 12, False)
    assert files(tmp_path) == [
        "gradscope-lake.json",
        *(f"nodes/run=run/rank={r}/from_iteration=0/tasks-000000000001-000000000003.parquet" for r in range(2)),
        *(f"runs/run=run/rank={r}/run.parquet" for r in range(2)),
        *(f"series/run=run/rank={r}/series.parquet" for r in range(2)),
        *(f"steps/run=run/rank={r}/from_iteration=0/steps-000000000001-000000000003.parquet" for r in range(2)),
    ]
    for table, columns in TABLES.items():
        assert sorted(rows(tmp_path, table).column_names) == sorted(column.name for column in columns)


def test_the_rows_are_what_the_recording_holds(tmp_path):
    record_ranks(tmp_path / "run", 1, steps=2)
    export(tmp_path)
    table = rows(tmp_path, "nodes").sort_by([("task", "ascending"), ("index", "ascending")]).to_pydict()
    with gi.open_recording(tmp_path / "run" / "rank-0.gscope") as recording:
        nodes = [(task, node) for task in recording.tasks() for node in task.nodes]
        assert table["name"] == [node.name for _, node in nodes]
        assert table["iteration"] == [task.iteration for task, _ in nodes]
        assert table["grad_outputs_norm"] == pytest.approx([node.norm for _, node in nodes])
        assert table["lineno"] == [node.location and node.location.lineno for _, node in nodes]


def test_series_are_written_anew_by_each_export(tmp_path):
    for steps in (2, 5):
        record_ranks(tmp_path / "run", 1, steps=steps)
        shutil.rmtree(tmp_path / "lake", ignore_errors=True)
        for _ in range(2):
            export(tmp_path)
        found = rows(tmp_path, "series").to_pydict()
        with gi.open_recording(tmp_path / "run" / "rank-0.gscope") as recording:
            buckets = [(one.kind, one.name, bucket) for one in recording.series() for bucket in one.buckets]
        assert len(buckets) == 5 * steps
        assert list(zip(found["kind"], found["name"])) == [(kind, name) for kind, name, _ in buckets]
        for column, attribute in (("first_iteration", "first"), ("samples", "samples"), ("mean", "mean")):
            assert found[column] == [getattr(bucket, attribute) for _, _, bucket in buckets]


def test_what_is_there_is_not_written_again(tmp_path):
    with being_rank(0, 1), gi.record(f"{tmp_path}/run/") as recorder:
        train(mlp(), 5)
        recorder.flush()
        # The newest iterations of a program that runs may still get backwards.
        assert [(done.nodes, done.running) for done in (export(tmp_path), export(tmp_path))] == [(27, True), (0, True)]
    assert export(tmp_path).nodes == 18
    assert export(tmp_path).nodes == 0
    assert rows(tmp_path, "nodes").num_rows == 45
    assert rows(tmp_path, "runs").column("state").to_pylist() == ["finished"]


def test_a_program_is_followed_to_its_end(tmp_path, monkeypatch):
    recorder = gi.record(tmp_path / "run")
    recorder.start()
    train(mlp(), 5)
    recorder.flush()
    monkeypatch.setattr(lake_export.time, "sleep", lambda seconds: recorder.stop())
    looks = list(follow_run([str(tmp_path / "run")], str(tmp_path / "lake")))
    assert [(look.nodes, look.running) for look in looks] == [(27, True), (18, False)]


def test_iterations_are_put_into_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_export, "BLOCK", 2)
    recorded(tmp_path / "run", steps=5).close()
    export(tmp_path)
    assert [file.split("/")[3] for file in files(tmp_path) if file.startswith("nodes")] == [
        "from_iteration=0", "from_iteration=2", "from_iteration=4",
    ]  # fmt: skip


@pytest.mark.parametrize("gone", [0, 1, 2], ids=["the first", "the middle", "the last"])
def test_a_file_that_somebody_has_deleted_is_written_again(gone, tmp_path, monkeypatch):
    monkeypatch.setattr(lake_export, "BLOCK", 2)
    record_ranks(tmp_path / "run", 2, steps=5)
    assert export(tmp_path).steps == 40
    whole = {table: rows(tmp_path, table).num_rows for table in TABLES}
    before = files(tmp_path)
    for table in ("nodes", "steps"):
        folder = tmp_path / "lake" / table / "run=run" / "rank=1"
        sorted(folder.rglob("*.parquet"))[gone].unlink()
    assert (export(tmp_path).nodes, export(tmp_path).nodes) == (9 * (1 if gone == 0 else 2), 0)
    assert files(tmp_path) == before
    assert {table: rows(tmp_path, table).num_rows for table in TABLES} == whole


def test_what_is_written_again_and_what_is_new_are_files_of_their_own(tmp_path):
    with being_rank(0, 1), gi.record(f"{tmp_path}/run/") as recorder:
        for _ in range(2):
            train(mlp(), 5)
            recorder.flush()
            export(tmp_path)
        first, second = sorted((tmp_path / "lake" / "nodes").rglob("*.parquet"))
        first.unlink()
        train(mlp(), 5)
    export(tmp_path)
    made = sorted((tmp_path / "lake" / "nodes").rglob("*.parquet"))
    assert made[:2] == [first, second]
    assert len(made) == 3
    assert rows(tmp_path, "nodes").num_rows == 9 * 15


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    recorded(tmp_path / "run", steps=1).close()

    def full(table, path, **options):
        name = os.path.basename(path)
        assert (name[0], name.endswith(".parquet")) == ("_", False)  # no reader looks at it
        with open(path, "wb") as file:
            file.write(b"PAR1 and then the disk was full")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", full)
        with pytest.raises(OSError, match="No space left"):
            export(tmp_path)
    assert files(tmp_path) == ["gradscope-lake.json"]
    assert export(tmp_path).nodes == 9


def test_names_of_runs_are_those_of_directories(tmp_path):
    recorded(tmp_path / "run", steps=1).close()
    assert export(tmp_path, name="../../a b'; drop").run == "_.._a_b___drop"
    assert export(tmp_path, name="..").run == "run"
    assert all(os.sep not in entry.name for entry in (tmp_path / "lake" / "nodes").iterdir())


def test_another_run_of_the_same_name_is_refused(tmp_path):
    recorded(tmp_path / "run", steps=1).close()
    export(tmp_path)
    recorded(tmp_path / "run", steps=1).close()
    with pytest.raises(
        RecordingError, match=r"another run called 'run'.*\nGive this one a name of its own with --name"
    ):
        export(tmp_path)
    assert export(tmp_path, name="second").nodes == 9


def test_a_directory_that_is_something_else_is_left_alone(tmp_path):
    recorded(tmp_path / "run", steps=1).close()
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "thesis.tex").touch()
    with pytest.raises(RecordingError, match="is no dataset of recordings"):
        export(tmp_path)
    assert files(tmp_path) == ["thesis.tex"]


def test_what_repeats_has_a_dictionary_and_numbers_that_hardly_do_have_none(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=2)
    export(tmp_path)
    found = {}
    for table in ("nodes", "steps"):
        file = parquet.ParquetFile(next((tmp_path / "lake" / table).rglob("*.parquet")))
        group = file.metadata.row_group(0)
        columns = [group.column(place) for place in range(group.num_columns)]
        found.update({column.path_in_schema: "RLE_DICTIONARY" in column.encodings for column in columns})
    assert [found[name] for name in ("module", "iteration", "grad_outputs_nans", "kind")] == [True] * 4
    assert [found[name] for name in ("grad_outputs_norm", "grad_inputs_max", "norm", "value")] == [False] * 4
