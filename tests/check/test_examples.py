"""The examples in the docstrings of gradscope.check."""

import doctest
import importlib
import pkgutil

import pytest

import gradscope.check


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(gradscope.check.__path__)] + [""])
def test_the_examples_run(name):
    module = importlib.import_module(f"gradscope.check.{name}".rstrip("."))
    failed, _ = doctest.testmod(module)
    assert failed == 0
