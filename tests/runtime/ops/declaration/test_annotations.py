"""Parameters that mean the same in every operator's code have the alias that says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradscope.runtime.ops.declaration import annotations

OPS = Path(annotations.__file__).parents[1]
SOURCES = sorted(OPS.rglob("*.py"))
ALIASES = {
    "xp": "Namespace",
    "F": "Namespace",
    "g": "Gradient",
    "grad_output": "Gradient",
    "make": "Make",
    "dtype": "DType",
    "device": "Device",
    "generator": "RandomSource",
    "layout": "Layout",
    "memory_format": "MemoryFormat",
    "ord": "NormOrder",
    "out": "Out",
}


def bare(source: str) -> Iterator[str]:
    """Yield the parameters of a file that have an alias and are annotated as Any."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if parameter.arg in ALIASES and ast.unparse(parameter.annotation or ast.Constant(0)) == "Any":
                    yield f"{node.name}, line {node.lineno}: {parameter.arg} is {ALIASES[parameter.arg]}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(OPS)))
def test_a_parameter_with_an_alias_is_not_bare(path: Path) -> None:
    assert list(bare(path.read_text(encoding="utf-8"))) == []


def test_a_bare_one_is_found() -> None:
    source = "def _exp(xp: Any, self: Array, g: Gradient) -> Array: ...\n"
    assert list(bare(source)) == ["_exp, line 1: xp is Namespace"]


def test_the_aliases_are_there() -> None:
    assert set(ALIASES.values()) <= set(annotations.__all__)
