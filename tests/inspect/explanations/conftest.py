"""Explanations are tested on both frameworks; each test starts without a ledger of an earlier one."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from gradscope.inspect.explanations import dataflow


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def fw(request: pytest.FixtureRequest) -> Any:
    """A framework: gradscope, or PyTorch where it is installed."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="the same instruments on PyTorch")
    return importlib.import_module(request.param)


@pytest.fixture(autouse=True)
def _no_ledger() -> Iterator[None]:
    dataflow._latest = None
    yield
    dataflow._latest = None
