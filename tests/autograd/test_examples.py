"""The examples in the docstrings of gradscope.autograd, and those of its page in the documentation, run as shown."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gradscope.autograd

MODULES = [
    "gradscope.autograd",
    *(m.name for m in pkgutil.walk_packages(gradscope.autograd.__path__, "gradscope.autograd.")),
]
PAGE = Path(__file__).parents[2] / "docs" / "autograd.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_page():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried > 30
