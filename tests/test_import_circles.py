"""The arrows between files: no circle of imports, and a reason beside every import that is not at the top of its file.

Imports inside functions count: what is imported late is needed all the same. What only a type checker reads does not.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "gradscope", ROOT / "tui" / "gradscope_tui")


class Module:
    """A file of a package, as far as its imports go."""

    def __init__(self, package: Path, path: Path) -> None:
        parts = path.relative_to(package.parent).with_suffix("").parts
        self.path = path
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text()

    @cached_property
    def imports(self) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
        """Each import with whether it is indented, but for what stands under ``if TYPE_CHECKING``."""
        return list(_imports_in(ast.parse(self.text), indented=False))

    def targets(self, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """Yield the full names of what a statement imports."""
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
            return
        base = statement.module or ""
        if statement.level:
            parents = self.name.split(".")
            up = statement.level - self.is_package
            base = ".".join(parents[: len(parents) - up] + ([base] if base else []))
        yield from (f"{base}.{alias.name}" for alias in statement.names)


def _imports_in(node: ast.AST, *, indented: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, indented
        elif isinstance(child, ast.expr):  # most of a file, and no import stands in one
            continue
        elif not (isinstance(child, ast.If) and _asks_for_a_type_checker(child.test)):
            yield from _imports_in(child, indented=True)
        else:
            for other in child.orelse:
                yield from _imports_in(other, indented=True)


def _asks_for_a_type_checker(test: ast.expr) -> bool:
    return any(getattr(node, "id", getattr(node, "attr", "")) == "TYPE_CHECKING" for node in ast.walk(test))


def modules_of(*packages: Path) -> dict[str, Module]:
    """Return the modules of packages by name."""
    found = [Module(package, path) for package in packages for path in sorted(package.rglob("*.py"))]
    return {module.name: module for module in found}


def circles(modules: dict[str, Module]) -> list[list[str]]:
    """Return the groups of modules each of which imports, by some way, all others of its group."""
    graph = networkx.DiGraph()
    for module in modules.values():
        for statement, _ in module.imports:
            for target in module.targets(statement):
                of_what = target if target in modules else target.rpartition(".")[0]
                if of_what in modules and of_what != module.name:
                    graph.add_edge(module.name, of_what)
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def unexplained(module: Module) -> list[str]:
    """Return the indented imports that have no comment on their lines or above them.

    One comment stands for the imports of a block.
    """
    if not any(indented for _, indented in module.imports):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    explained = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    missing, last = [], 0
    for statement, indented in module.imports:
        own = range(statement.lineno - 1, (statement.end_lineno or statement.lineno) + 1)
        follows = last == statement.lineno - 1
        if indented and explained.isdisjoint(own) and not follows:
            missing.append(f"{module.name}, line {statement.lineno}: {ast.unparse(statement)}")
        elif indented:
            last = statement.end_lineno or statement.lineno
    return missing


MODULES = modules_of(*PACKAGES)


def test_imports_form_no_circle_of_files() -> None:
    assert circles(MODULES) == []


def test_an_indented_import_says_why_it_is_not_at_the_top() -> None:
    assert [line for module in MODULES.values() for line in unexplained(module)] == []


# --- what the two look at ---------------------------------------------------------------------------------------------


def package_with(folder: Path, **files: str) -> dict[str, Module]:
    """Return the modules of a package that is made of these files."""
    package = folder / "house"
    package.mkdir()
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return modules_of(package)


def test_a_circle_is_seen_through_relative_and_indented_imports(tmp_path: Path) -> None:
    files = {"__init__": "", "a": "from . import b", "b": "def f():\n    import house.c", "c": "from .a import x"}
    assert circles(package_with(tmp_path, **files)) == [["house.a", "house.b", "house.c"]]


def test_what_only_a_type_checker_reads_closes_no_circle(tmp_path: Path) -> None:
    files = {"a": "from .b import y", "b": "if TYPE_CHECKING:\n    from .a import x\nelse:\n    x = None"}
    assert circles(package_with(tmp_path, **files)) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    import math", 1),
        ("    import math  # late", 0),
        ("    # late\n    import math\n    import cmath", 0),
        ("    # late\n\n    import math", 1),
        ("    import math  # late\n    print()\n    import cmath", 1),
        ("    from math import (  # late\n        pi,\n    )\n    import cmath", 0),
    ],
)
def test_a_reason_stands_on_the_line_or_above_the_block(tmp_path: Path, body: str, expected: int) -> None:
    (module,) = package_with(tmp_path, a=f"def f():\n{body}\n").values()
    assert len(unexplained(module)) == expected
