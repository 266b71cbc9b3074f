"""What training scripts set before they begin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from threadpoolctl import threadpool_info

import gradscope as gs
from gradscope.runtime import settings
from gradscope.runtime.kernels import threads
from tests.side_by_side import same_complaint


@pytest.fixture
def _threads_of_before() -> Iterator[None]:
    before = gs.get_num_threads()
    yield
    gs.set_num_threads(before)


@pytest.mark.usefixtures("_threads_of_before")
def test_one_number_of_threads_is_for_kernels_and_products() -> None:
    for number in (2, 1):
        gs.set_num_threads(number)
        used = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        assert (gs.get_num_threads(), threads.count(), used) == (number, number, {number})


@pytest.mark.slow
@pytest.mark.parametrize(("said", "number"), [("3", 3), ("2,1", 2), ("", None), ("0", None), ("many", None)])
def test_the_environment_says_how_many_threads_there_are_at_first(said: str, number: int | None) -> None:
    program = "import gradscope as gs; print(gs.get_num_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": said}
    out = subprocess.run([sys.executable, "-c", program], check=True, env=environment, capture_output=True, text=True)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(out.stdout) == (number or available)


def test_settings_are_kept() -> None:
    precision = gs.get_float32_matmul_precision()
    gs.set_float32_matmul_precision("high")
    gs.use_deterministic_algorithms(True, warn_only=True)
    assert gs.get_float32_matmul_precision() == "high"
    assert gs.are_deterministic_algorithms_enabled()
    assert gs.is_deterministic_algorithms_warn_only_enabled()
    gs.use_deterministic_algorithms(False)
    assert not gs.are_deterministic_algorithms_enabled()
    gs.set_float32_matmul_precision(precision)


def test_the_number_of_operators_at_once_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings._Settings, "interop_threads", None)
    assert gs.get_num_interop_threads() == gs.get_num_threads()
    gs.set_num_interop_threads(3)
    gs.set_num_interop_threads(5)
    assert gs.get_num_interop_threads() == 5


def test_what_is_warned_of_once_can_be_warned_of_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gs.compiler, "_state", {"told": True})
    monkeypatch.setattr(settings._Settings, "warn_always", False)
    gs.compile(abs)
    gs.set_warn_always(True)
    assert gs.is_warn_always_enabled()
    with pytest.warns(UserWarning, match="compiles nothing"):
        gs.compile(abs)


@pytest.mark.torch
def test_wrong_settings(torch: Any) -> None:
    same_complaint(torch, lambda m: m.set_num_threads(0))
    same_complaint(torch, lambda m: m.set_num_interop_threads(0))
    same_complaint(torch, lambda m: m.set_num_interop_threads(2.5))
    same_complaint(torch, lambda m: m.set_warn_always(1))
    with pytest.raises(RuntimeError, match="no precision of products"):
        gs.set_float32_matmul_precision("low")


def test_switches_of_libraries_can_be_set() -> None:
    gs.backends.cudnn.benchmark, gs.backends.cuda.matmul.allow_tf32 = True, True
    assert gs.backends.cudnn.benchmark
    gs.backends.cudnn.benchmark, gs.backends.cuda.matmul.allow_tf32 = False, False
    assert not gs.backends.mps.is_available()
    assert gs.backends.cudnn.version() is None
