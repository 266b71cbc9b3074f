"""Recordings whose file is moved, replaced or deleted while it is written, and whose program is then killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import gradscope.inspect as gi
from tests.inspect.recording.killing import committed, read_all, record_endlessly

_TIMEOUT = 60  # seconds


def _move(path: Path, folder: Path) -> Path:
    return path.rename(folder / "moved.gscope")


def _move_folder(path: Path, folder: Path) -> Path:
    return path.parent.rename(folder / "elsewhere") / path.name


def _replace(path: Path, folder: Path) -> Path:
    foreign = folder / "foreign"
    foreign.write_bytes(b"a stranger's file")
    os.replace(foreign, path)
    return path.with_name("run-1.gscope")


def _delete(path: Path, folder: Path) -> Path:
    path.unlink()
    return path.with_name("run-1.gscope")


def _delete_log(path: Path, folder: Path) -> Path:
    for ending in ("-wal", "-shm"):
        os.remove(f"{path}{ending}")
    return path


WAYS: tuple[Callable[[Path, Path], Path], ...] = (_move, _move_folder, _replace, _delete, _delete_log)


def move_one(folder: Path, number: int) -> tuple[str, int, int]:
    """Interfere with a recording, and kill the program once it writes on; return how, and how many nodes are left.

    Returns
    -------
    way : str
    before, after : int
        Nodes that were committed before the file was interfered with, and that are in the end.
    """
    chance = random.Random(number)
    way = WAYS[number % len(WAYS)]
    folder = folder / str(number)
    path = folder / "runs" / "run.gscope"
    path.parent.mkdir(parents=True)
    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(folder / "said", os.O_CREAT | os.O_WRONLY, 0o600), 2)
            record_endlessly(path)
        finally:
            os._exit(1)
    try:
        _until(lambda: committed(path) > 0)
        time.sleep(chance.uniform(0, 0.3))
        before = committed(path)
        there = way(path, folder)
        _until(lambda: committed(there) > before)
        _until(lambda: len(_said(folder)) == (0 if way is _delete_log else 2))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if way is _replace:
        assert path.read_bytes() == b"a stranger's file"
    with gi.open_recording(there) as recording:
        read_all(recording)
        after = sum(task.count for task in recording.tasks())
    shutil.rmtree(folder)
    return way.__name__.strip("_"), before, after


def _said(folder: Path) -> list[str]:
    return (folder / "said").read_text(encoding="utf-8").splitlines()


def _until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + _TIMEOUT
    while not reached():
        assert time.monotonic() < end, "the recording does not go on"
        time.sleep(0.02)
