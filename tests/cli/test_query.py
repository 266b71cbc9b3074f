"""``gradscope query``."""

from __future__ import annotations

import json

import pytest

from gradscope.cli import main
from tests.inspect.ranks.jobs import record_ranks

pytest.importorskip("pyarrow", reason="the extra `lake`")
pytest.importorskip("duckdb", reason="the extra `lake`")

SQL = "select iteration, rank, max(grad_outputs_norm) > 0 as flows from nodes group by all order by 1, 2"


@pytest.fixture
def lake(tmp_path, capsys):
    record_ranks(tmp_path / "run", 2)
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "lake")]) == 0
    capsys.readouterr()
    return str(tmp_path / "lake")


def test_formats(lake, capsys):
    assert main(["query", lake, SQL, "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["iteration", "rank", "flows"],
        ["1", "0", "True"],
        ["1", "1", "True"],
    ]
    assert lines[3] == "... the first 2; --limit 0 shows all"
    assert main(["query", lake, SQL, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["iteration,rank,flows", "1,0,True"]
    assert main(["query", lake, SQL, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[3] == {"iteration": 2, "rank": 1, "flows": True}
    assert main(["query", lake, "select timestamp '2026-01-01' as day, 'nan'::double as x", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"day": "2026-01-01 00:00:00", "x": "nan"}]


def test_what_cannot_be_asked(lake, tmp_path, capsys):
    assert main(["query", lake, "select nothing"]) == 2
    assert capsys.readouterr().err.startswith("gradscope query: Binder Error: ")
    assert main(["query", str(tmp_path), "select 1"]) == 2
    assert "is no dataset of recordings" in capsys.readouterr().err


def test_who_asks_a_recording_is_told_to_export_it(lake, tmp_path, capsys):
    for asked in (tmp_path / "run", tmp_path / "run" / "rank-0.gscope"):
        assert main(["query", str(asked), "select 1"]) == 2
        told, how = capsys.readouterr().err.splitlines()
        assert told.startswith(f"gradscope query: {asked} is a ")
        assert how == f"`gradscope export {asked} -o lake/` makes it, and `gradscope query lake/ SQL` asks."
        assert main(["export", str(asked), "-o", lake, "--name", asked.name]) == 0
