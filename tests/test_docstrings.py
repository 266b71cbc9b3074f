"""Every example in a docstring prints what it says, and every entry says more than the annotation beside it."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
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


SECTION = re.compile(r"^(?:Parameters|Other Parameters|Attributes|Returns|Yields|Raises|Warns)\n-+\n", re.MULTILINE)
NEXT_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
SOURCES = sorted([*ROOT.rglob("*.py"), *(ROOT.parent / "tui").rglob("*.py")])


def entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield what stands at the margin of a docstring's sections, and the indented lines below it."""
    for section in SECTION.finditer(docstring):
        rest = docstring[section.end() :]
        following = NEXT_SECTION.search(rest)
        for entry in re.finditer(
            r"^(\S.*)\n?((?:[ ]+.*\n?|\n(?=[ ]))*)", rest[: following and following.start()], re.MULTILINE
        ):
            yield entry[1], entry[2].strip()


def repeated_annotations(source: str) -> list[str]:
    """Return the entries without a description, but those that list the values that are allowed."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            docstring = inspect.cleandoc(ast.get_docstring(node) or "")
            found += [
                f"{node.name}, line {node.lineno}: {head}"
                for head, description in entries(docstring)
                if not description and "{" not in head
            ]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_no_entry_only_repeats_the_annotation_in(path: Path) -> None:
    assert repeated_annotations(path.read_text(encoding="utf-8")) == []


def test_an_entry_without_a_description_is_found() -> None:
    source = '''
def scale(x: Tensor, by: float, mode: str) -> Tensor:
    """Scale.

    Parameters
    ----------
    x : Tensor
        Of any shape.
    by : float
    mode : {"up", "down"}

    Returns
    -------
    Tensor
    """
'''
    assert repeated_annotations(source) == ["scale, line 2: by : float", "scale, line 2: Tensor"]
