"""The instruments are tested on both frameworks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from gradscope.inspect.adapters import NOT_TOLD


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Leave out what a PyTorch is too old for."""
    try:
        return (yield)
    except (RuntimeError, ValueError) as error:
        if str(error) == NOT_TOLD:
            pytest.skip(NOT_TOLD.partition("\n")[0])
        raise


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def fw(request: pytest.FixtureRequest) -> Any:
    """A framework: gradscope, or PyTorch where it is installed."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="the same instruments on PyTorch")
    return importlib.import_module(request.param)
