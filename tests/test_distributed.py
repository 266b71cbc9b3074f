"""Processes that train together: a program that asks first runs alone."""

from __future__ import annotations

import pytest

import gradscope as gs


def test_a_program_is_alone() -> None:
    d = gs.distributed
    assert (d.is_available(), d.is_initialized(), d.get_rank(), d.get_world_size()) == (False, False, 0, 1)
    d.barrier()
    d.destroy_process_group()


def test_what_needs_others_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no distributed package"):
        gs.distributed.init_process_group(backend="nccl")
    with pytest.raises(RuntimeError, match="Use the module itself"):
        gs.nn.parallel.DistributedDataParallel(gs.nn.Linear(1, 1), device_ids=[0])
