"""The schema of a recording: its tables, the version of their layout, and how a file is recognised.

Per-node rows are kept in *pages*: the columns of many nodes of one backward in a few blobs, one SQLite row. So the
writer thread holds the interpreter for a moment a page, not for a moment a node, and a reader takes in 100,000 nodes
with a handful of NumPy calls. Everything that is asked for by name is an ordinary table.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile

from .compiled_calls import INSIDE
from .file_watch import read_header

__all__ = [
    "APPLICATION_ID",
    "BusyRecordingError",
    "HAPPENED",
    "OLDEST",
    "SCHEMA",
    "TABLES",
    "RecordingError",
    "add_tables",
    "check_file",
    "create",
    "for_its_owner",
    "name_beside",
    "remove",
    "tables_of",
]

APPLICATION_ID = 0x47534350  # "GSCP"
SCHEMA = 6
OLDEST = 4
"""The oldest layout that is read: what has come since are tables, which are empty there."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes; the user version stands at 60, the application id at 68

_TABLES_OF_4 = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, title TEXT, framework TEXT, keep TEXT, pid INTEGER, host TEXT, rank INTEGER, world INTEGER,
    job TEXT, restart INTEGER, cwd TEXT, started INTEGER, ended INTEGER, state TEXT);
CREATE TABLE iterations (
    id INTEGER PRIMARY KEY, run INTEGER, number INTEGER, started INTEGER, ended INTEGER, label TEXT);
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY, run INTEGER, iteration INTEGER, number INTEGER, parent INTEGER, thread TEXT,
    started INTEGER, ended INTEGER, state TEXT, error TEXT, nodes INTEGER DEFAULT 0, bad INTEGER,
    loss);
CREATE TABLE modules (id INTEGER PRIMARY KEY, path TEXT);
CREATE TABLE locations (id INTEGER PRIMARY KEY, filename TEXT, lineno INTEGER, function TEXT, source TEXT);
CREATE TABLE specs (id INTEGER PRIMARY KEY, shape TEXT, dtype TEXT, device TEXT, itemsize INTEGER);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY, name TEXT, module INTEGER, parameter TEXT, location INTEGER, place INTEGER,
    edges TEXT, outputs TEXT, saved TEXT);
CREATE VIEW edges AS
    SELECT nodes.id AS node, each.key AS nr, json_extract(each.value, '$[0]') AS target,
        json_extract(each.value, '$[1]') AS input_nr
    FROM nodes, json_each(nodes.edges) AS each;
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, task INTEGER, first INTEGER, count INTEGER,
    nodes BLOB, tensors BLOB, histograms BLOB, small BLOB, previews TEXT, checksum INTEGER);
CREATE INDEX pages_of_task ON pages (task, first);
CREATE TABLE tensor_values (id INTEGER PRIMARY KEY, iteration INTEGER, nbytes INTEGER, data BLOB);
CREATE INDEX values_of_iteration ON tensor_values (iteration);
CREATE TABLE layouts (id INTEGER PRIMARY KEY, tensors TEXT);
CREATE TABLE steps (
    id INTEGER PRIMARY KEY, run INTEGER, iteration INTEGER, task INTEGER, time INTEGER, optimizer INTEGER,
    number INTEGER, layout INTEGER, facts TEXT, parameter_values BLOB, gradients BLOB, present BLOB, norms BLOB);
CREATE TABLE events (
    id INTEGER PRIMARY KEY, run INTEGER, iteration INTEGER, task INTEGER, node INTEGER, time INTEGER,
    kind TEXT, text TEXT);
CREATE TABLE violations (
    id INTEGER PRIMARY KEY, run INTEGER, iteration INTEGER, task INTEGER, node INTEGER, time INTEGER, operator TEXT,
    saved_name TEXT, saved_version INTEGER, current_version INTEGER, message TEXT);
"""

_ADDED = {
    5: """
CREATE TABLE series (
    id INTEGER PRIMARY KEY, run INTEGER, kind TEXT, name TEXT, width INTEGER, facts BLOB, buckets BLOB,
    checksum INTEGER);
CREATE TABLE left_out (
    id INTEGER PRIMARY KEY, run INTEGER, kind TEXT, count INTEGER, first INTEGER, last INTEGER);
""",
    6: """
CREATE TABLE module_types (id INTEGER PRIMARY KEY, run INTEGER, path TEXT, kind TEXT, arguments TEXT);
""",
}
"""The tables that a layout has and the one before it has not."""

TABLES = _TABLES_OF_4 + "".join(_ADDED.values())
"""The tables of a recording."""

HAPPENED = (
    "SELECT run, iteration, 'bad' AS what FROM tasks WHERE bad IS NOT NULL UNION ALL"
    " SELECT run, iteration, 'failed' FROM tasks WHERE state = 'failed' UNION ALL"
    " SELECT run, iteration, 'violation' FROM violations UNION ALL"
    f" SELECT run, iteration, kind FROM events WHERE kind NOT IN ('left out', '{INSIDE}')"
)
"""What went wrong in iterations (their rows), and where the user has made a note."""


class RecordingError(Exception):
    """A recording that cannot be written or read: what is wrong with the file, and what to do.

    See Also
    --------
    open_recording

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope.inspect as gi
    >>> try:
    ...     gi.open_recording(os.path.join(tempfile.mkdtemp(), "run.gscope"))
    ... except gi.RecordingError:
    ...     print("there is no such recording")
    there is no such recording
    """


class BusyRecordingError(RecordingError):
    """A recording that another process is writing now."""


def create(path: str) -> None:
    """Put an empty recording in the place of what is there; at no moment there is half of one.

    What the file may be read by stays as it was; a new one is its owner's alone.

    Raises
    ------
    sqlite3.Error, OSError
        If it cannot be written; then nothing is left behind.
    """
    descriptor, fresh = tempfile.mkstemp(prefix=".gradscope-", suffix=".new", dir=os.path.dirname(path) or ".")
    try:
        os.close(descriptor)
        if os.path.isfile(path):
            os.chmod(fresh, stat.S_IMODE(os.stat(path).st_mode))
        _lay_out(fresh)
        remove(path)
        os.replace(fresh, path)
    except BaseException:
        remove(fresh)
        raise


def _lay_out(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA page_size = 8192")  # pages of nodes are large, and each of SQLite's has its price
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.executescript(f"BEGIN; {TABLES} COMMIT;")
    finally:
        connection.close()


def name_beside(path: str) -> str:
    """Return the path of an empty file beside `path`, made now and its owner's alone: ``run-1.gscope``.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    stem, ending = os.path.splitext(path)
    number = 1
    while True:
        name = f"{stem}-{number}{ending}"
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            number += 1
        else:
            return name


def for_its_owner(path: str, flags: int) -> int:
    """Open a file that only its owner may read, if it is new: the ``opener`` of :func:`open`."""
    return os.open(path, flags, 0o600)


def tables_of(version: int) -> str:
    """Return what makes the tables of a layout."""
    return _TABLES_OF_4 + "".join(added for layout, added in _ADDED.items() if layout <= version)


def add_tables(connection: sqlite3.Connection, *, temporary: bool = False) -> None:
    """Give a recording of an older layout the tables that have come since.

    Parameters
    ----------
    temporary : bool
        Only this connection sees them, and the file stays as it is.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    missing = "".join(added for layout, added in _ADDED.items() if layout > version)
    if temporary:
        connection.executescript(missing.replace("CREATE TABLE", "CREATE TEMP TABLE"))
    elif missing:
        connection.executescript(f"BEGIN; {missing} PRAGMA user_version = {SCHEMA}; COMMIT;")


def check_file(path: str) -> None:
    """Raise unless a file is a recording that this version reads.

    Raises
    ------
    RecordingError
        If it is not there, is none, or was written by a newer version.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            kind = "a directory" if os.path.isdir(path) else "no regular file"
            raise RecordingError(f"{path} is {kind}, not a recording")
        header = read_header(path)
    except FileNotFoundError:
        raise RecordingError(
            f"there is no recording {path}\nMake one with `gradscope record SCRIPT -o {os.path.basename(path)}`."
        ) from None
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not header:
        raise RecordingError(f"{path} is empty: it holds no recording")
    if len(header) < _HEADER and _MAGIC.startswith(header[: len(_MAGIC)]):
        raise RecordingError(f"{path} is cut short: it holds no recording")
    version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if not header.startswith(_MAGIC) or application != APPLICATION_ID:
        raise RecordingError(f"{path} is not a gradscope recording")
    if version < OLDEST:
        raise RecordingError(
            f"{path} was written by an older gradscope: its layout is {version}, this one reads {OLDEST} to {SCHEMA}\n"
            "Record it again, or view it with the gradscope that wrote it."
        )
    if version > SCHEMA:
        raise RecordingError(
            f"{path} was written by a newer gradscope: its layout is {version}, this one reads up to {SCHEMA}\n"
            "Upgrade with `pip install -U gradscope-debugger`."
        )


def remove(path: str) -> None:
    """Delete a recording with what SQLite keeps beside it."""
    for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        try:
            os.remove(name)
        except FileNotFoundError:
            continue
