"""A recording as a table in a Parquet file."""

import builtins

import pytest

from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.reports.parquet import arrow_table, write_parquet


def test_a_parquet_file(recording, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet`")
    assert write_parquet(recording, tmp_path / "nodes.parquet") == 27
    table = parquet.read_table(tmp_path / "nodes.parquet")
    assert table.num_rows == 27
    assert table.column("name").to_pylist()[:2] == ["MeanBackward0", "PowBackward0"]
    assert table.column("parameter").to_pylist().count("0.weight") == 3
    norms = table.column("grad_outputs_norm").to_pylist()
    assert norms[0] == recording.tasks()[0].nodes[0].grad_outputs[0].norm


def test_without_pyarrow_the_extra_is_named(recording, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RecordingError, match=r"pip install 'gradscope-debugger\[parquet\]'"):
        arrow_table(recording)
