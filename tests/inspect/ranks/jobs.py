"""Ranks of a job, recorded one after the other in this process: what torchrun tells each stands in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import gradscope.inspect as gi
from tests.inspect.recording.programs import mlp, train


@contextmanager
def being_rank(rank: int, world: int, *, restart: int = 0, port: int = 29500) -> Iterator[None]:
    """Let this process be a rank."""
    told = {"RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "here", "MASTER_PORT": port}
    told["TORCHELASTIC_RESTART_COUNT"] = restart
    with mock.patch.dict(os.environ, {name: str(value) for name, value in told.items()}):
        yield


def record_ranks(
    folder: Any, world: int, ranks: Iterable[int] | None = None, *, steps: int = 2, lr: float = 0.1, **place: Any
) -> None:
    """Record a training on each rank of a job, or on some of them, into a directory."""
    for rank in range(world) if ranks is None else ranks:
        with being_rank(rank, world, **place), gi.record(f"{folder}/", title="train.py"):
            train(mlp(), steps, lr)
