"""The docstring of a package is a map of its folder: it says of each module and sub-package what is found there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    init.parent.relative_to(ROOT).as_posix(): init.parent
    for top in ("gradscope", "tui/gradscope_tui")
    for init in sorted((ROOT / top).rglob("__init__.py"))
}

# A file that is put into one of these is found there, and no list names it: the first words are the same for all.
REGISTERS = {
    "gradscope/check/formats": "the formats of a report of check",
    "gradscope/check/rules": "the rules of check",
    "gradscope/cli": "the subcommands",
    "gradscope/inspect/diagnosis/rules/batches": "rules of the doctor",
    "gradscope/inspect/diagnosis/rules/gradients": "rules of the doctor",
    "gradscope/inspect/diagnosis/rules/layers": "rules of the doctor",
    "gradscope/inspect/diagnosis/rules/losses": "rules of the doctor",
    "gradscope/inspect/diagnosis/rules/optimizers": "rules of the doctor",
    "gradscope/inspect/graphs/formats": "the formats of a graph",
    "tui/gradscope_tui/panes": "the panes",
}

# One module or several, and what is found there.
_ENTRY = re.compile(r"^- (:mod:`~\.\w+`(?:, :mod:`~\.\w+`)*): (\S.*)", re.MULTILINE)
_MENTION = re.compile(r":mod:`~?\.(\w+)")


@cache
def map_of(package: str) -> str:
    tree = ast.parse((PACKAGES[package] / "__init__.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def entries_of(package: str) -> list[tuple[str, str]]:
    """Return the modules that have an entry, each with what the entry says."""
    return [(name, text) for names, text in _ENTRY.findall(map_of(package)) for name in _MENTION.findall(names)]


def modules_of(package: str) -> set[str]:
    """Return the names of the modules and the packages in the folder of a package."""
    folder = PACKAGES[package]
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_map_has_an_entry_for_each_module_and_names_no_other(package: str) -> None:
    gone = set(_MENTION.findall(map_of(package))) - modules_of(package)
    assert not gone, f"the docstring of {package}/__init__.py names {', '.join(sorted(gone))}: moved, or renamed?"
    if package in REGISTERS:
        return
    entries = [name for name, _ in entries_of(package)]
    missing = modules_of(package) - set(entries)
    assert not missing, f"the docstring of {package}/__init__.py does not say what is in {', '.join(sorted(missing))}"
    assert len(entries) == len(set(entries)), f"{package}/__init__.py names a module twice"


def test_a_map_does_not_repeat_names() -> None:
    entries = [entry for package in PACKAGES for entry in entries_of(package)]
    echoes = [name for name, text in entries if text.lower().strip(".") == name.replace("_", " ")]
    assert not echoes, f"say what a person finds in {', '.join(echoes)}, not what it is called"


def test_a_register_is_a_package() -> None:
    assert REGISTERS.keys() <= PACKAGES.keys()


# A folder with more than this hides another in it.
ROOM = 20
LARGER = {
    "gradscope": "PyTorch's public names: a module each",
    "gradscope/nn/modules": "PyTorch's modules of layers",
}


def test_a_folder_holds_about_twenty_things() -> None:
    larger = {package: len(modules_of(package)) for package in PACKAGES if package not in LARGER}
    assert not {package: count for package, count in larger.items() if count > ROOM}, "which of them are a room?"


def test_a_larger_folder_is_there() -> None:
    assert LARGER.keys() <= PACKAGES.keys()


# Among these packages a file's name leads to one file: the instruments and the screen together, each other alone.
INSTRUMENTS = ("gradscope/check", "gradscope/cli", "gradscope/inspect", "gradscope/testing", "tui/gradscope_tui")
ALONE = [package for package in PACKAGES if package.count("/") == 1 and package not in INSTRUMENTS]

# Names that stand twice, and why both are what a person looks for.
ALIKE = {
    INSTRUMENTS: {
        "doctor": "the subcommand, which is called as its file is, and what it runs",
    },
    ("gradscope/nn",): {
        "attention": "PyTorch's module for which kernel is taken, and the layer, which pickled models name",
        "init": "PyTorch's module of initial values, and its module of layers without any",
        "rnn": "PyTorch's module of recurrent layers, and its module of the sequences they read",
    },
}


@pytest.mark.parametrize("tops", [INSTRUMENTS, *[(package,) for package in ALONE]], ids=", ".join)
def test_a_name_leads_to_one_file(tops: tuple[str, ...]) -> None:
    names = Counter(
        path.stem for top in tops for path in (ROOT / top).rglob("*.py") if path.stem not in ("__init__", "__main__")
    )
    twice = {name for name, count in names.items() if count > 1}
    assert twice == ALIKE.get(tops, {}).keys(), "rename one of the two, or say why not"


def test_what_stands_twice_is_in_a_package_that_is_there() -> None:
    assert ALIKE.keys() <= {INSTRUMENTS, *[(package,) for package in ALONE]}
