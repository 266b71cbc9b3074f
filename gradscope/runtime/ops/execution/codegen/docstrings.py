"""What ``help()`` shows of an operator: what is declared, what follows from it, its neighbours and an example.

The examples are written by :mod:`gradscope.runtime.ops.declaration.stubs`, the neighbours by hand.
"""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...declaration.registry import Operator

__all__ = ["EXAMPLES", "HEADING", "docstring", "with_neighbours"]

_DECLARATION = Path(__file__).parents[2] / "declaration"

EXAMPLES = _DECLARATION / "examples.txt"
"""The examples of operators, each below :data:`HEADING` and the operator's name."""

HEADING = "# "

_NEIGHBOURS = _DECLARATION / "see_also.txt"  # a line for each function: its name in gradscope, a colon, the others'
_SECTION = "\n\nExamples\n--------\n"
_HEADING = "Examples\n"


def docstring(op: Operator) -> str:
    """Return the operator's docstring: its schema, what the declaration says, what follows from it, and an example."""
    doc = inspect.cleandoc(op.doc) if "\n" in op.doc else op.doc
    told, heading, shown = doc.partition(_SECTION)
    if not heading and (example := _examples().get(op.name)):
        heading, shown = _SECTION, f">>> import gradscope as gs\n{example}"
    base = op.name.partition(".")[0]
    return with_neighbours(base, f"{op.schema}\n\n{told.rstrip()}\n\n{_facts(op)}{heading}{shown}\n")


def with_neighbours(name: str, documented: str, namespace: str | None = None) -> str:
    """Return a docstring with the section "See Also" before its examples, where the function has neighbours."""
    names = _neighbours().get(f"{namespace}_{name}" if namespace else name)
    if names is None or "See Also" in documented or _HEADING not in documented:
        return documented
    heading = documented.find(_HEADING)
    margin = documented.rfind("\n", 0, heading) + 1
    indent = documented[margin:heading]
    return f"{documented[:margin]}{indent}See Also\n{indent}--------\n{indent}{names}\n\n{documented[margin:]}"


@cache
def _neighbours() -> dict[str, str]:
    """Return the names that a user of a function looks for next, by the function's name as the registry has it."""
    lines = _NEIGHBOURS.read_text(encoding="utf-8").splitlines()
    return {_registered(name): names for name, _, names in (line.partition(": ") for line in lines)}


def _registered(name: str) -> str:
    """Return ``linalg_norm`` for ``linalg.norm``, and ``gelu`` for ``nn.functional.gelu``."""
    return name.removeprefix("nn.functional.").replace(".", "_")


@cache
def _examples() -> dict[str, str]:
    """Return the examples by the names of operators; none before they have been written for the first time."""
    text = EXAMPLES.read_text(encoding="utf-8") if EXAMPLES.exists() else ""
    blocks = ("\n" + text).split("\n" + HEADING)[1:]
    return {name: example.rstrip("\n") for name, _, example in (block.partition("\n") for block in blocks)}


def _facts(op: Operator) -> str:
    names = [f"`{parameter.name}`" for parameter in op.edged] if op.differentiable else []
    told = f"Gradients flow to {' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}." if names else ""
    facts = [
        told or "It has no derivative.",
        "The result is a view: it shares memory and version with the tensor." if op.view else "",
        f"In place: ``{op.name.partition('.')[0]}_``." if op.inplace else "",
        "``out=`` takes a tensor for the result." if op.out else "",
        f"Other names: {', '.join(f'``{name}``' for name in op.alias)}." if op.alias else "",
    ]
    return " ".join(filter(None, facts))
