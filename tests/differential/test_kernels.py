"""Random programs whose smallest arrays go through the kernels, compiled and in NumPy's form, agree with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from gradscope.runtime.kernels import forms
from tests.differential.live import known, live_program
from tests.differential.live import minimise as minimise_live
from tests.differential.programs import first_divergence, minimise, random_program
from tests.runtime.kernels.both_forms import numpy_alone

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(params=["compiled", "numpy"])
def _every_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No array is too small for a kernel."""
    monkeypatch.setattr(forms, "LEAST", 1)
    if request.param == "numpy":
        with numpy_alone():
            yield
        return
    pytest.importorskip("numba", reason="compiles kernels")
    yield


@pytest.mark.usefixtures("_every_size")
def test_random_programs_agree() -> None:
    for seed in range(200):
        generator = random.Random(seed)
        divergence = first_divergence(random_program(generator.choice, generator.randint(5, 25)))
        assert divergence is None, f"{minimise(divergence)}\n\n{divergence.program}"


@pytest.mark.usefixtures("_every_size")
def test_live_programs_agree() -> None:
    for seed in range(200):
        _, divergence, watch = live_program(seed)
        if divergence is not None and known(divergence) is None:
            pytest.fail(f"program {seed}\n{minimise_live(divergence, watch)}")
