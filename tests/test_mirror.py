"""Tests mirror the sources: whoever looks for the test of a module finds it at the same path, or is told where it is.

``gradscope/a/b.py`` is tested in ``tests/a/test_b.py``; where that would be long, in ``tests/a/test_b_ASPECT.py`` as
well. A package is tested as if it were a module: ``gradscope/a/__init__.py`` in ``tests/test_a.py``. The terminal UI,
``tui/gradscope_tui/``, is tested in ``tests/tui/``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mirror import ACROSS, REGISTERED, TESTED_IN, TESTED_THROUGH

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SOURCES = {"": ROOT / "gradscope", "tui/": ROOT / "tui" / "gradscope_tui"}


def _named(prefix: str, path: Path) -> str:
    """Return the name of a module, which is the path of its test without ``test_``: ``nn/modules/conv``."""
    return (prefix + path.with_suffix("").as_posix()).removesuffix("/__init__")


MODULES = {
    _named(prefix, path.relative_to(top)): path
    for prefix, top in SOURCES.items()
    for path in sorted(top.rglob("*.py"))
    if path.parent != top or path.stem not in ("__init__", "__main__")
}
TEST_FILES = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def holds_behaviour(module: str) -> bool:
    """Whether the module defines or declares something, and is not only a list of names or a map of its folder."""
    is_map = MODULES[module].name == "__init__.py"
    return any(
        isinstance(statement, ast.ClassDef)
        or (isinstance(statement, ast.FunctionDef) and not statement.name.startswith("__"))
        # So an operator is declared.
        or (not is_map and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
        for statement in tree_of(module).body
    )


def module_of(test: str) -> str:
    """Return the module that a test file mirrors: the longest name that it begins with, or nothing."""
    folder, _, name = test.rpartition("/")
    words = name.removesuffix(".py").removeprefix("test_").split("_")
    candidates = (f"{folder}/{'_'.join(words[:count])}".lstrip("/") for count in range(len(words), 0, -1))
    return next((module for module in candidates if module in MODULES), "")


MIRRORED = {module_of(test) for test in TEST_FILES} - {""}


def names_in(module: str) -> set[str]:
    """Return what a test may call of the module: functions, classes, constants, and operators it declares."""
    names = {module.rpartition("/")[2]}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"^([a-z_0-9]+)\(", node.value))
    return {name for name in names if not name.startswith("__")}


def imports_of(module: str) -> set[str]:
    """Return the modules that the module imports names of, wherever in it."""
    prefix = "tui/" if module.startswith("tui/") else ""
    is_package = MODULES[module].name == "__init__.py"
    here = module.split("/") if is_package else module.split("/")[:-1]
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            base = "/".join([*above, *filter(None, (node.module or "").split("."))])
            found.update({base, *(f"{base}/{alias.name}" for alias in node.names)})
    plain = {name.replace(".", "/").removeprefix("gradscope_tui/").removeprefix("gradscope/") for name in found}
    return ({prefix + name for name in plain} | plain) & MODULES.keys()


# The files by folder: thousands of tests that take no time would take most of theirs in being told of.
FOLDERS = sorted({module.partition("/")[0] for module in MODULES})


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_modules_of_a_folder_have_their_tests(folder: str) -> None:
    wrong = []
    for module in MODULES:
        if module.partition("/")[0] != folder:
            continue
        room, _, name = module.rpartition("/")
        # What all of a register must pass does not keep one of it from a test of its own.
        there = [module in MIRRORED or room in REGISTERED, module in TESTED_IN, module in TESTED_THROUGH]
        if sum(there) == 1 or not holds_behaviour(module):
            continue
        if not any(there):
            wrong.append(f"write tests/{room}/test_{name}.py, or say in tests/mirror.py where {module} is tested")
        else:
            wrong.append(f"{module} stands in more than one place: is its line in tests/mirror.py outdated?")
    assert not wrong, "\n".join(wrong)


def test_a_test_file_has_its_module() -> None:
    wrong = []
    for test in sorted(TEST_FILES):
        across = {place for place in ACROSS if test == place or test.startswith(f"{place}/")}
        if not module_of(test) and not across:
            wrong.append(f"{test} mirrors no module: move it, or say in tests/mirror.py what it crosses")
        elif module_of(test) and across:
            wrong.append(f"{test} mirrors {module_of(test)}: its line in tests/mirror.py is outdated")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("module", "test"), TESTED_IN.items())
def test_the_test_of_another_calls_the_module(module: str, test: str) -> None:
    words = set(re.findall(r"\w+", (TESTS / test).read_text(encoding="utf-8")))
    assert names_in(module) & words, f"tests/{test} mentions nothing that {module} defines"


@pytest.mark.parametrize(("module", "user"), TESTED_THROUGH.items())
def test_the_module_is_used_by_the_one_through_which_it_is_tested(module: str, user: str) -> None:
    assert module in imports_of(user), f"{user} does not import {module}"
    way = [module]
    while way[-1] in TESTED_THROUGH:
        way.append(TESTED_THROUGH[way[-1]])
        assert way.count(way[-1]) == 1, f"a circle: {way}"
    assert way[-1] in MIRRORED | TESTED_IN.keys() or way[-1].rpartition("/")[0] in REGISTERED, f"untested: {way}"


def test_the_table_names_what_there_is() -> None:
    assert {*TESTED_IN, *TESTED_THROUGH} - MODULES.keys() == set()
    assert {*TESTED_IN.values(), *REGISTERED.values()} - TEST_FILES == set()
    assert REGISTERED.keys() <= {module.rpartition("/")[0] for module in MODULES}
    assert {place for place in ACROSS if not (TESTS / place).exists()} == set()
