"""The examples in the docstrings around training, and those of its page in the documentation, run as shown."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"

MODULES = [
    "gradscope.serialization.saving",
    "gradscope.utils.checkpoint",
    "gradscope.utils.checkpoint.logs",
    *(f"gradscope.utils.data.{name}" for name in ("collation", "dataset", "loader", "sampler")),
    *(f"gradscope.nn.utils.{name}" for name in ("init", "orthogonal", "parametrize", "stateless")),
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0
    assert tried


def test_the_page() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried > 20
