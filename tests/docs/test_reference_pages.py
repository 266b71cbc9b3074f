"""The API reference has a page for every public package, and every operator is on one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import gradscope
from gradscope.runtime.ops.families import PUBLIC

HOOK = Path(__file__).parents[2] / "docs" / "hooks" / "reference_pages.py"

# Names that PyTorch has and that do nothing here, described where they stand.
WITHOUT_A_PAGE = {"backends", "compiler", "distributed", "jit", "version"}


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("reference_pages", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_has_a_page(hook: ModuleType) -> None:
    described = {module.partition(".")[0] for modules in hook.PACKAGES for module in modules}
    assert set(gradscope._LAZY) - described == WITHOUT_A_PAGE


def test_every_operator_is_on_one_page(hook: ModuleType) -> None:
    listed = [path for paths in hook.names_of_gradscope().values() for path in paths]
    public = {f"gradscope.{name}" for name in PUBLIC if not name.startswith("_") and not name.endswith("_")}
    assert sorted(set(listed)) == sorted(listed)
    assert public - set(listed) == set()


def test_a_function_with_its_modules_name_is_described_in_the_module(hook: ModuleType) -> None:
    assert "gradscope.autograd.gradcheck.gradcheck" in hook.public_objects("gradscope.autograd")
