"""The instruments are tested on both frameworks."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def fw(request: pytest.FixtureRequest) -> Any:
    """A framework: gradscope, or PyTorch where it is installed."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="the same instruments on PyTorch")
    return importlib.import_module(request.param)
