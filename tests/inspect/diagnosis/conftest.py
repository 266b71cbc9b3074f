"""Each test starts without a ledger or tracker of an earlier one, and sees its own objects only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradscope.inspect.diagnosis.no_gradient import dataflow_ledger
from gradscope.inspect.records import module_tracking


@pytest.fixture(autouse=True)
def _no_ledger() -> Iterator[None]:
    dataflow_ledger._latest = module_tracking._latest = None
    yield
    dataflow_ledger._latest = module_tracking._latest = None


@pytest.fixture(autouse=True)
def _own_objects(own_objects: None) -> None:
    """Look through the objects of one test: those of a long run, again and again, take their time."""
