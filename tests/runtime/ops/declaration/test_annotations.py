"""Types of the operators' code say what is meant: each is precise, or an alias with a name, and not Any itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradscope.runtime.ops.declaration import annotations

OPS = Path(annotations.__file__).parents[1]
SOURCES = sorted(OPS.rglob("*.py"))


def allowed(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the types in which Any may stand.

    Those of ``*args`` and ``**kwargs``, for their names say what they are; what comes back of a function that takes
    both, for it passes them on to one of any signature; a callable of any signature; and what an alias stands for.
    """
    match node:
        case ast.FunctionDef(args=ast.arguments(vararg=args, kwarg=kwargs)):
            yield args and args.annotation
            yield kwargs and kwargs.annotation
            if args and kwargs:
                yield node.returns
        case ast.Subscript() if ast.unparse(node) == "Callable[..., Any]":
            yield node
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            yield node.value


def bare(source: str) -> list[str]:
    """Return the lines in which Any stands for what has a type or a name."""
    nodes = list(ast.walk(ast.parse(source)))
    known = {id(part) for node in nodes for kept in allowed(node) if kept for part in ast.walk(kept)}
    found = [node for node in nodes if isinstance(node, ast.Name) and node.id == "Any" and id(node) not in known]
    return [f"{line}: {source.splitlines()[line - 1].strip()}" for line in sorted({node.lineno for node in found})]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(OPS)))
def test_types_say_what_is_meant(path: Path) -> None:
    assert bare(path.read_text(encoding="utf-8")) == [], "the names are in declaration/annotations.py"


@pytest.mark.parametrize(
    "source",
    [
        "def _exp(xp: Any, self: Array) -> Array: ...",
        "def _svd(self: Array) -> tuple[Any, ...]: ...",
        "def draw(self, *args: Any) -> Any: ...",
        "total: Any = None",
        "choose: Callable[[Any], Array]",
        "Labels = list[Any]",
    ],
)
def test_a_bare_one_is_found(source: str) -> None:
    assert bare(source) == [f"1: {source}"]


@pytest.mark.parametrize(
    "source",
    [
        "def pad(self: Array, *widths: Any, **options: Any) -> Array: ...",
        "def wrapper(*args: Any, **kwargs: Any) -> Any: ...",
        "def as_method(body: Callable[..., Any]) -> Callable[..., Any]: ...",
        "Label: TypeAlias = Any",
    ],
)
def test_what_is_passed_on_and_aliases_may_be_of_any_type(source: str) -> None:
    assert bare(source) == []


def test_an_alias_is_listed() -> None:
    tree = ast.parse(Path(annotations.__file__).read_text(encoding="utf-8"))
    aliases = {ast.unparse(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert aliases == set(annotations.__all__)
