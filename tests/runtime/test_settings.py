"""What training scripts set before they begin."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.side_by_side import same_complaint


def test_settings_are_kept() -> None:
    threads, precision = gs.get_num_threads(), gs.get_float32_matmul_precision()
    gs.set_num_threads(3)
    gs.set_float32_matmul_precision("high")
    gs.use_deterministic_algorithms(True, warn_only=True)
    assert (gs.get_num_threads(), gs.get_float32_matmul_precision()) == (3, "high")
    assert gs.are_deterministic_algorithms_enabled()
    assert gs.is_deterministic_algorithms_warn_only_enabled()
    gs.use_deterministic_algorithms(False)
    assert not gs.are_deterministic_algorithms_enabled()
    gs.set_num_threads(threads)
    gs.set_float32_matmul_precision(precision)


@pytest.mark.torch
def test_wrong_settings(torch: Any) -> None:
    same_complaint(torch, lambda m: m.set_num_threads(0))
    with pytest.raises(RuntimeError, match="no precision of products"):
        gs.set_float32_matmul_precision("low")


def test_switches_of_libraries_can_be_set() -> None:
    gs.backends.cudnn.benchmark, gs.backends.cuda.matmul.allow_tf32 = True, True
    assert gs.backends.cudnn.benchmark
    gs.backends.cudnn.benchmark, gs.backends.cuda.matmul.allow_tf32 = False, False
    assert not gs.backends.mps.is_available()
    assert gs.backends.cudnn.version() is None
