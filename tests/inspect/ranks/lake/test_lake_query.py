"""Questions in SQL: they read the dataset and nothing else, and end."""

from __future__ import annotations

import builtins
import threading

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.output.terminal_text import one_line, printable
from gradscope.inspect.ranks.lake.lake_export import export_run
from gradscope.inspect.ranks.lake.lake_query import QueryError, ask
from gradscope.inspect.ranks.lake.lake_schema import TABLES
from gradscope.inspect.recording import RecordingError
from tests.inspect.ranks.jobs import record_ranks
from tests.inspect.recording.programs import recorded

pytest.importorskip("duckdb", reason="the extra `lake`")
pytest.importorskip("pyarrow", reason="the extra `lake`")


@pytest.fixture
def lake(tmp_path):
    record_ranks(tmp_path / "2026", 2, steps=3)  # a name that looks like a number
    export_run([str(tmp_path / "2026")], str(tmp_path / "la'ke[1]"))
    return str(tmp_path / "la'ke[1]")


def test_the_tables_are_there(lake):
    answer = ask(lake, "select run, rank, count(*) as nodes from nodes group by all order by rank")
    assert (answer.columns, answer.rows) == (("run", "rank", "nodes"), [("2026", 0, 27), ("2026", 1, 27)])
    sql = "select count(distinct gradient) from steps where name = '0.weight' and step = 2"
    assert ask(lake, sql).rows == [(1,)]
    assert ask(lake, "select world from runs").rows == [(2,), (2,)]


def test_a_table_without_files_is_empty(tmp_path):
    recorded(tmp_path / "run", steps=1).close()
    export_run([str(tmp_path / "run")], str(tmp_path / "lake"))
    assert ask(str(tmp_path / "lake"), "select * from steps").columns == tuple(c.name for c in TABLES["steps"])
    assert ask(str(tmp_path / "lake"), "select * from steps").rows == []


def test_no_more_rows_are_made_than_are_wanted(lake):
    answer = ask(lake, "select iteration from nodes order by 1", limit=2)
    assert (answer.rows, answer.more) == ([(1,), (1,)], True)
    assert ask(lake, "select 1", limit=1).more is False


@pytest.mark.parametrize(
    "sql",
    ["copy runs to '{0}/x.csv'", "create table t as select 1", "attach '{0}/x.db'", "select 1; drop view nodes", ""],
)
def test_a_question_writes_nothing(lake, tmp_path, sql):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(QueryError, match="only questions are answered"):
        ask(lake, sql.format(lake.replace("'", "''")))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_question_reads_nothing_else(lake, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(QueryError, match="disabled by configuration"):
        ask(lake, f"select * from read_csv('{tmp_path}/secret.csv')")


def test_wrong_sql_is_told(lake):
    with pytest.raises(QueryError, match="nodess"):
        ask(lake, "select * from nodess")
    with pytest.raises(QueryError, match="syntax error"):
        ask(lake, "selct 1")


def test_a_question_that_would_not_end_is_given_up(lake):
    told = threading.Event()
    with pytest.raises(QueryError, match=r"no answer within 1 s\nAsk for less"):
        ask(
            lake, "select count(*) from range(10000000000) a, range(100000) b", timeout=1, progress=lambda _: told.set()
        )
    assert told.is_set()


def test_a_question_is_cancelled_while_its_progress_is_shown(lake):
    """Ctrl-C comes while a question is worked on: it ends at once, and so does its thread."""
    told = []

    def interrupted(share):
        told.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(lake, "select count(*) from range(1000000000000) a, range(1000000) b", progress=interrupted)
    assert len(told) == 1
    assert 0.0 <= told[0] <= 1.0
    assert not [thread for thread in threading.enumerate() if thread.name == "gradscope query"]


def test_hostile_names_are_nothing_but_names(tmp_path):
    hostile = "we'; drop view nodes; --\x1b[2J\"\n"
    model = gs.nn.Module()
    model.register_parameter(hostile, gs.nn.Parameter(gs.ones(2)))
    model.forward = lambda: next(model.parameters()).sum()
    with gi.record(tmp_path / "run.gscope"):
        model().backward()
    run = "../../x'; drop table runs; --/rank=7"
    done = export_run([str(tmp_path / "run.gscope")], str(tmp_path / "lake"), name=run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "run.gscope"]
    assert not {"/", "'", ";", "="} & set(done.run)
    found = ask(str(tmp_path / "lake"), "select run, rank, parameter from nodes where parameter != ''")
    assert found.rows == [(done.run, 0, one_line(printable(hostile)))]
    named = ask(str(tmp_path / "lake"), "select name from series where kind = 'gradient'")
    assert named.rows == [(one_line(printable(hostile)),)]


def test_a_half_written_file_is_not_read(lake, tmp_path):
    folder = next((tmp_path / "la'ke[1]" / "nodes").rglob("*.parquet")).parent
    (folder / "tasks-000000000004-000000000009.parquet.half-77").write_bytes(b"PAR1")
    assert ask(lake, "select count(*) from nodes").rows == [(54,)]


@pytest.mark.parametrize("left", [0, 4, 7, 1000, -1])
def test_a_file_that_was_copied_half_is_named(lake, tmp_path, left):
    whole = next((tmp_path / "la'ke[1]" / "nodes").rglob("*.parquet"))
    whole.with_name("cut.parquet").write_bytes(whole.read_bytes()[:left])
    with pytest.raises(QueryError) as caught:
        ask(lake, "select count(*) from nodes")
    assert str(caught.value).startswith(
        f"{whole.with_name('cut.parquet')} is cut off or damaged, and no Parquet file\nCopy it anew"
    )
    assert "VIEW" not in str(caught.value)


@pytest.mark.parametrize("middle", [b"\0" * 100, b"\0" * 96 + b"\x08\0\0\0"])
def test_a_damaged_file_is_told_without_a_statement_that_nobody_wrote(lake, tmp_path, middle):
    file = next((tmp_path / "la'ke[1]" / "nodes").rglob("*.parquet"))
    file.write_bytes(b"PAR1" + middle + b"PAR1")
    with pytest.raises(QueryError) as caught:
        ask(lake, "select 1")
    assert str(file) in str(caught.value)
    assert "VIEW" not in str(caught.value)


def test_without_duckdb_the_extra_is_named(lake, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RecordingError, match=r"pip install 'gradscope-debugger\[lake\]'"):
        ask(lake, "select 1")
