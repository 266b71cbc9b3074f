"""Questions to a dataset of recordings in SQL, which DuckDB answers."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...recording import RecordingError
from .lake_schema import TABLES, check_lake

__all__ = ["Answer", "QueryError", "ask"]

_LOOK = 0.5  # seconds between two reports of progress

_QUESTIONS = {"SELECT", "EXPLAIN"}

_SQL_TYPES = {"text": "VARCHAR", "string": "VARCHAR", "int64": "BIGINT", "uint64": "UBIGINT", "bool": "BOOLEAN"}


class QueryError(Exception):
    """A question that cannot be answered: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that answer a question.

    Attributes
    ----------
    more : bool
        Whether there are more than were asked for.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    more: bool


def ask(
    lake: str,
    sql: str,
    *,
    limit: int | None = None,
    timeout: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Answer:
    """Answer a question about the tables ``nodes``, ``steps``, ``series`` and ``runs`` of a dataset.

    The question reads the dataset and nothing else, and writes nothing.

    Parameters
    ----------
    limit : int, optional
        How many rows at most.
    timeout : float, optional
        Seconds after which it is given up.
    progress : callable, optional
        Called now and then with the share of the work that is done, from 0 to 1.

    Raises
    ------
    QueryError
        If the SQL is wrong, or it takes longer.
    RecordingError
        If there is no such dataset, or DuckDB is not installed.
    """
    check_lake(lake)
    duckdb = _duckdb()
    connection = duckdb.connect(":memory:")
    try:
        kinds = {statement.type.name for statement in connection.extract_statements(sql)}
        if not kinds or not kinds <= _QUESTIONS:
            raise QueryError("only questions are answered\nWrite one SELECT, WITH, EXPLAIN or DESCRIBE.")
        try:
            for table in TABLES:
                connection.execute(_view(lake, table))
        except duckdb.Error as error:
            raise QueryError(_unreadable(connection, lake) or _without_statement(error)) from None
        # From here on the connection runs the question, which somebody may have sent.
        folder = os.path.join(os.path.abspath(lake), "")
        allowed = {folder, glob.escape(folder)}  # DuckDB checks the pattern as well as the files that it finds
        connection.execute(f"SET allowed_directories = [{', '.join(map(_quoted, sorted(allowed)))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return _Question(connection, sql, limit).answer(timeout, progress)
    except duckdb.InterruptException:
        raise QueryError(f"no answer within {timeout:g} s\nAsk for less, or give it longer with --timeout.") from None
    except (duckdb.InvalidInputException, duckdb.IOException) as error:
        raise QueryError(_unreadable(connection, lake) or _without_statement(error)) from None
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from None
    finally:
        connection.close()


class _Question:
    """A question that a thread of its own waits for, so that it can be watched and interrupted."""

    def __init__(self, connection: Any, sql: str, limit: int | None) -> None:
        self._connection = connection
        self._sql = sql
        self._limit = limit
        self._done = threading.Event()
        self._answer: Answer | None = None
        self._error: BaseException | None = None

    def answer(self, timeout: float | None, progress: Callable[[float], None] | None) -> Answer:
        """Return the answer, or raise what has been raised."""
        thread = threading.Thread(target=self._run, name="gradscope query", daemon=True)
        thread.start()
        waited = 0.0
        try:
            while not self._done.wait(_LOOK if timeout is None else max(min(_LOOK, timeout - waited), 0.0)):
                waited += _LOOK
                if timeout is not None and waited >= timeout:
                    self._connection.interrupt()
                    timeout = None if self._done.wait(_LOOK) else timeout
                if progress is not None:
                    progress(max(float(self._connection.query_progress()), 0.0) / 100)
        except KeyboardInterrupt:
            self._connection.interrupt()
            self._done.wait()
            raise
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._rows()
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def _rows(self) -> Answer:
        found = self._connection.execute(self._sql)
        if found.description is None:
            return Answer((), [], more=False)
        names = tuple(column[0] for column in found.description)
        if self._limit is None:
            return Answer(names, found.fetchall(), more=False)
        rows: Sequence[Any] = found.fetchmany(self._limit + 1)
        return Answer(names, list(rows[: self._limit]), more=len(rows) > self._limit)


def _unreadable(connection: Any, lake: str) -> str:
    """Return which files of a dataset are cut off, as where somebody has copied them half; empty if all are whole."""
    found = [path for table in TABLES for path in sorted(_files(lake, table)) if not _opens(connection, path)]
    if not found:
        return ""
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    what = f"{found[0]} is cut off or damaged, and no Parquet file{more}"
    return f"{what}\nCopy it anew, or remove it and ask of what is there."


def _opens(connection: Any, path: str) -> bool:
    """Whether DuckDB reads the end of a file, which says where all else is."""
    try:
        connection.execute(f"SELECT * FROM read_parquet({_quoted(glob.escape(path))}) LIMIT 0")
    except _duckdb().Error:
        return False
    return True


def _without_statement(error: Exception) -> str:
    """Return what DuckDB says, without the statement: that may be one of ours, which the person has not written."""
    return str(error).partition("\n\nLINE ")[0].strip()


def _files(lake: str, table: str) -> list[str]:
    return glob.glob(_pattern(lake, table), recursive=True)


def _pattern(lake: str, table: str) -> str:
    return os.path.join(glob.escape(os.path.abspath(lake)), table, "**", "*.parquet")


def _view(lake: str, table: str) -> str:
    """Return the statement that makes a view of a table's files, or of its columns without rows."""
    if _files(lake, table):
        found = [column for column in TABLES[table] if column.name in ("run", "rank", "from_iteration")]
        # Without types a run called 2026 would be a number.
        kinds = ", ".join(f"{column.name}: {_SQL_TYPES[column.type]}" for column in found)
        options = f"hive_partitioning = true, hive_types = {{{kinds}}}, union_by_name = true"
        return f"CREATE VIEW {table} AS SELECT * FROM read_parquet({_quoted(_pattern(lake, table))}, {options})"
    typed = (f'NULL::{_SQL_TYPES.get(column.type, "DOUBLE")} AS "{column.name}"' for column in TABLES[table])
    return f"CREATE VIEW {table} AS SELECT {', '.join(typed)} WHERE false"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb() -> Any:
    try:
        import duckdb  # optional dependency
    except ImportError:
        raise RecordingError(
            "questions in SQL need DuckDB, which is not installed\n"
            "Install it with `pip install 'gradscope-debugger[lake]'`."
        ) from None
    return duckdb
