"""The derivatives in plain mathematics: computed as they stand there, and compared with what runs."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import gradscope as gs
import gradscope.nn.functional as F
from gradscope.runtime.ops.declaration.registry import OPERATORS
from gradscope.runtime.ops.derivative_text import derivative_text
from gradscope.runtime.ops.plain_derivatives import FORMULAS, WORDS, plain_derivative

PHI = np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))
KNOWN = {
    "sum": lambda values, dim=0: np.sum(values, dim, keepdims=True),
    "mean": lambda values: np.mean(values, -1, keepdims=True),
    "exp": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Phi": PHI,
    "phi": lambda x: np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),
    "dim": 1,
    "n": 12,
    "exponent": 3.0,
}


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def positive(*shape):
    return np.abs(normal(*shape)) + 0.5


X = {"self": normal(3, 4)}
TWO = {**X, "other": positive(3, 4)}
TARGET = {**X, "target": positive(3, 4)}
FACTORS = {"self": normal(3, 4), "mat2": normal(4, 5)}
NORM = {"input": normal(3, 4), "weight": normal(4), "bias": normal(4)}
CALLS = {
    "Addmm": (gs.addmm, {"self": normal(3, 5), "mat1": normal(3, 4), "mat2": normal(4, 5)}),
    "BinaryCrossEntropyWithLogits": (F.binary_cross_entropy_with_logits, TARGET),
    "Bmm": (gs.bmm, {"self": normal(2, 3, 4), "mat2": normal(2, 4, 5)}),
    "Div": (gs.div, TWO),
    "Gelu": (F.gelu, X),
    "LogSoftmax": (lambda x: F.log_softmax(x, 1), X),
    "Mean": (gs.mean, X),
    "Mm": (gs.mm, FACTORS),
    "MseLoss": (F.mse_loss, TARGET),
    "NativeLayerNorm": (lambda x, weight, bias: F.layer_norm(x, (4,), weight, bias, 0.0), NORM),
    "Pow": (lambda x: x**3.0, {"self": positive(3, 4)}),
    "Relu": (gs.relu, X),
    "Rsub": (gs.rsub, TWO),
    "Sigmoid": (gs.sigmoid, X),
    "Silu": (F.silu, X),
    "Softmax": (lambda x: F.softmax(x, 1), X),
    "Sqrt": (gs.sqrt, {"self": positive(3, 4)}),
    "T": (gs.t, X),
    "Tanh": (gs.tanh, X),
}


@pytest.mark.parametrize("operator", FORMULAS)
def test_a_formula_is_what_the_operator_computes(operator):
    call, arrays = CALLS[operator]
    tensors = {name: gs.tensor(values, requires_grad=True) for name, values in arrays.items()}
    result = call(*tensors.values())
    g = normal(*result.shape)
    result.backward(gs.tensor(g))
    known = {**KNOWN, **arrays, "g": g, "result": result.detach().numpy()}
    if "input" in arrays:
        known["std"] = np.std(arrays["input"], -1, keepdims=True)
        known["xhat"] = (arrays["input"] - np.mean(arrays["input"], -1, keepdims=True)) / known["std"]
    for name, formula in FORMULAS[operator].items():
        assert np.allclose(eval(formula, known), tensors[name].grad.numpy()), (name, formula)


@pytest.mark.parametrize("operator", [*FORMULAS, *WORDS])
def test_what_is_written_plainly_belongs_to_an_operator_and_names_its_arguments(operator):
    declared = {name.strip() for names, _ in derivative_text(f"{operator}Backward0") for name in names.split(",")}
    assert set(dict(plain_derivative(f"{operator}Backward0"))) <= declared


def test_no_text_has_a_conjugate_and_every_operator_has_one():
    for op in OPERATORS.values():
        if op.differentiable:
            found = plain_derivative(op.node_name)
            assert found, op.name
            assert not any(re.search(r"\bconj\(", formula) for _, formula in found), op.name


def test_what_was_conjugated_keeps_its_brackets():
    assert dict(plain_derivative("DivBackward0"))["other"] == "-g * self / other**2"
    assert plain_derivative("CosBackward0") == (("self", "-g * F.sin(self)"),)
