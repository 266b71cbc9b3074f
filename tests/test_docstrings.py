"""Every example in a docstring prints what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import gradscope

ROOT = Path(gradscope.__file__).parent
MODULES = sorted(
    ".".join(("gradscope", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path.stem != "__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str) -> None:
    if ".torch" in name:
        pytest.importorskip("torch")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
