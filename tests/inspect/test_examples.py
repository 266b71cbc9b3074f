"""The examples in the docstrings of gradscope.inspect and of the command run as shown."""

import doctest
import importlib
import pkgutil

import pytest

import gradscope.cli
import gradscope.inspect

MODULES = [
    "gradscope.cli", "gradscope.inspect",
    *(m.name for m in pkgutil.walk_packages(gradscope.inspect.__path__, "gradscope.inspect.")),
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if ".adapters.torch." in name:
        pytest.importorskip("torch", reason="is about PyTorch")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_public_function_and_class_of_the_package_is_documented_with_types():
    for name in gradscope.inspect.__all__:
        thing = getattr(gradscope.inspect, name)
        assert thing.__doc__, name
        assert not thing.__doc__.startswith(f"{name}("), f"{name} has dataclass's own docstring"
