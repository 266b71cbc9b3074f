"""The examples of pages of the documentation that are written as sessions with Python run as shown."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "examples"), [("autograd.md", 30), ("training.md", 20)])
def test_a_page(page: str, examples: int) -> None:
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried > examples
