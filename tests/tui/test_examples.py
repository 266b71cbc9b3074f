"""The examples in the docstrings of the terminal UI."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import gradscope_tui


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(gradscope_tui.__path__, "gradscope_tui.")])
def test_the_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
