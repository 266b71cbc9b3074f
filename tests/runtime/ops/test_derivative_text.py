from __future__ import annotations

from pathlib import Path

import pytest

from gradscope.runtime.ops.declaration.registry import OPERATORS
from gradscope.runtime.ops.derivative_text import derivative_text

ROOT = Path(__file__).parents[3]


def test_a_formula_is_the_expression_of_its_declaration():
    assert derivative_text("SqrtBackward0") == (("self", "g / conj(result * 2)"),)
    assert dict(derivative_text("DivBackward0"))["other"] == "-g * conj((self / other) / other)"


def test_of_a_function_that_only_returns_an_expression_that_is_the_formula():
    assert dict(derivative_text("AddBackward0"))["other"] == "g if alpha == 1 else g * conj(alpha)"


def test_a_longer_derivative_says_where_it_stands():
    ((arguments, text),) = derivative_text("NativeLayerNormBackward0")
    assert arguments == "input, weight, bias"
    path, _, line = text.rpartition(" ")[2].partition(":")
    assert "def _layer_norm_joint" in (ROOT / path).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize("name", ["AccumulateGrad", "MyFunctionBackward", ""])
def test_a_node_of_no_operator_has_none(name):
    assert derivative_text(name) == ()


@pytest.mark.slow
def test_every_differentiable_operator_has_a_text_for_every_derivative():
    for op in OPERATORS.values():
        if op.differentiable:
            found = derivative_text(op.node_name)
            assert found, op.name
            assert all(argument and text for argument, text in found), op.name
