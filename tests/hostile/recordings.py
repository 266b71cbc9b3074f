"""Recordings that have been damaged, or made to harm, shown by every command that reads one."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.output.terminal_text import printable
from tests.hostile.guarded import silenced
from tests.inspect.recording.programs import mlp, train

COMMANDS = ("view", "report", "diff", "export")


def make_sound(path: Path) -> bytes:
    """Record all that there is to record; return the file."""
    with gi.record(path, keep="all") as recorder:
        train(mlp(), 3)
        recorder.mark("a note")
        x = gs.ones(3, requires_grad=True)
        (gs.log(x * 0) * 1).sum().backward()
        y = x.exp()
        z = y.sum()
        y += 1
        try:
            z.backward()
        except RuntimeError:
            pass
    return path.read_bytes()


# --- mutations -------------------------------------------------------------------------------------------------------


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 3, 20, 300))):
        data[chance.randrange(len(data))] = chance.randrange(256)


def _numbers(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 5, 50))):
        at = chance.randrange(len(data) - 8)
        data[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", bytes(4), b"\x7f\xff\xff\xff", b"\x80\0\0\0"))


def _pages(data: bytearray, chance: random.Random) -> None:
    size = 8192
    count = len(data) // size
    if count < 2:
        return
    for _ in range(chance.choice((1, 2, 5))):
        one, other = (chance.randrange(1, count) * size for _ in range(2))
        data[one : one + size] = data[other : other + size]


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _grow(data: bytearray, chance: random.Random) -> None:
    data += bytes(chance.randrange(1, 100_000)) if chance.random() < 0.5 else chance.randbytes(50_000)


_BYTES: tuple[Callable[[bytearray, random.Random], None], ...] = (_flip, _flip, _numbers, _pages, _cut, _grow)

_VALUES = (
    "NULL", "-1", "9223372036854775807", "1e308", "'\x1b[2J<script>alert(1)</script>'", "x'00ff'", "zeroblob(60000)",
    "'[[[[[[[[[['", "'[1e999, NaN]'", "'[[9223372036854775807, 1]]'", "''", "hex(randomblob(20000))", "'\u202e\u2066'",
    "replace(hex(zeroblob(9000)), '00', '[')",
)  # fmt: skip
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


def _by_sql(path: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        match chance.randrange(5):
            case 0:
                connection.execute(f"DROP TABLE {table}")
                connection.execute(f"CREATE VIEW {table} ({', '.join(columns)}) AS {_endless(len(columns))}")
            case 1:
                connection.execute(f"DELETE FROM {table} WHERE rowid % 2 = {chance.randrange(2)}")
            case 2:
                connection.execute(f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM runs; END")
            case _:
                for _ in range(chance.choice((1, 3))):
                    column, value = chance.choice(columns[1:] or columns), chance.choice(_VALUES)
                    connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}")


def _endless(count: int) -> str:
    return _ENDLESS.format(", ".join(["i"] * count))


def mutate(sound: bytes, path: Path, number: int) -> None:
    """Write the recording of a number."""
    chance = random.Random(number)
    if number % 3 == 0:
        path.write_bytes(sound)
        try:
            _by_sql(path, chance)
        except sqlite3.Error:
            pass
        return
    data = bytearray(sound)
    for _ in range(chance.choice((1, 1, 2))):
        if len(data) > 100:
            chance.choice(_BYTES)(data, chance)
    path.write_bytes(data)


# --- looking ---------------------------------------------------------------------------------------------------------


def look(path: Path, sound: Path) -> None:
    """Have every command look at a recording; what it says must be printable, and its errors of few lines."""
    name, folder = str(path), path.parent
    for command in (
        ["view", name, "--text"],
        ["view", name, "--iteration", "1", "--limit", "0"],
        ["view", name, "-c", "nodes; node 1; value; events; violations; iterations"],
        ["report", name, "-o", str(folder / "page.html")],
        ["diff", name, str(sound)],
        ["view", name, "--export", str(folder / "trace.json")],
    ):
        with silenced() as printed:
            status = main(command)
        out, error = printed["stdout"].getvalue(), printed["stderr"].getvalue()
        assert status in (0, 1, 2), f"{command}: exit status {status}"
        assert printable(out + error) == out + error, f"{command}: what is printed is not printable"
        assert "Traceback" not in error, f"{command}: {error}"
        assert status != 2 or 1 <= len(error.splitlines()) <= 3, f"{command}: {error}"


class Case:
    """The case of a number: a mutated recording that all commands look at."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="hostile-")
        self._folder = Path(self._kept.name)
        self._sound = self._folder / "sound.gscope"
        self._bytes = make_sound(self._sound)

    def __call__(self, number: int) -> None:
        path = self._folder / f"{os.getpid()}.gscope"
        mutate(self._bytes, path, number)
        look(path, self._sound)
        sys.stdout.flush()
