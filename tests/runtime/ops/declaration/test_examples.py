"""The examples of operators that their samples make."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import gradscope as gs
from gradscope.runtime.ops.declaration import examples
from gradscope.runtime.ops.declaration.registry import OPERATORS, PUBLIC
from gradscope.runtime.ops.execution.codegen.docstrings import EXAMPLES, HEADING

# Those in declarations: of operators that draw, and have no samples, or whose samples say little.
DECLARED = {name: op.doc for name, op in OPERATORS.items() if ">>>" in op.doc}


def blocks() -> dict[str, str]:
    found = ("\n" + EXAMPLES.read_text(encoding="utf-8")).split("\n" + HEADING)[1:]
    return {name: text for name, _, text in (block.partition("\n") for block in found)}


@pytest.mark.filterwarnings("ignore")  # some operators warn that they are deprecated, or of an empty result
@pytest.mark.parametrize("name", blocks())
def test_the_example_of(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(blocks()[name], {"gs": gs}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@pytest.mark.parametrize("name", DECLARED)
def test_the_declared_example_of(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(DECLARED[name], {}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_what_follows_from_a_declaration_stands_before_its_example() -> None:
    lines = gs.scatter_reduce.__doc__.splitlines()
    assert lines.index("Examples") > lines.index(
        "Gradients flow to `self` and `src`. In place: ``scatter_reduce_``. ``out=`` takes a tensor for the result."
    )


def test_a_function_of_a_declaration_shows_its_example() -> None:
    assert gs.mul.__doc__.startswith(
        "mul(Tensor self, Tensor other)\n\nMultiply elementwise.\n\nGradients flow to `self`"
    )
    assert ">>> gs.mul(" in gs.mul.__doc__
    assert "It has no derivative." in gs.signbit.__doc__


def test_public_operators_have_an_example() -> None:
    public: dict[str, Any] = {f.operator.name: f for f in PUBLIC.values() if hasattr(f, "operator")}
    assert {name for name, function in public.items() if ">>>" not in function.__doc__} == set()


def test_the_shortest_sample_with_a_dimension_is_shown() -> None:
    assert examples.render({"gs.exp": OPERATORS["exp"]}).startswith("# exp\n>>> gs.exp(gs.tensor([")
