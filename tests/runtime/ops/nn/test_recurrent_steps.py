"""The derivative of a step is that of the operators which the step is composed of."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.dispatch import TENSOR_OPERATORS
from gradscope.runtime.ops.execution.bare_functions import array_operators
from gradscope.runtime.ops.nn import recurrent_steps as steps

CELLS = {"lstm": (steps.LSTM, 4, 2), "gru": (steps.GRU, 3, 1), "tanh": (steps.TANH, 1, 1), "relu": (steps.RELU, 1, 1)}


@pytest.mark.parametrize("name", CELLS)
def test_formulas_are_the_derivatives_of_steps(name: str) -> None:
    cell, gates, parts = CELLS[name]

    def make(*shape: int) -> Any:
        return gs.randn(*shape, dtype=gs.float64, requires_grad=True)

    projected, state = make(2, 3 * gates), tuple(make(2, 3) for _ in range(parts))
    w = steps.Weights(make(3 * gates, 3), make(3 * gates, 3), make(3 * gates), make(3 * gates))
    after, known = cell.step(projected, state, w)
    g = tuple(gs.randn_like(part) for part in after)
    expected = gs.autograd.grad(after, (projected, *state, w.bias_hh), g)
    arrays = [tuple(t.detach().numpy() for t in part) for part in (g, known)]
    recorded, bare = cell.back(g, known, TENSOR_OPERATORS), cell.back(*arrays, array_operators(numpy))
    for found, concatenated in ((recorded, gs.cat), (bare, numpy.concatenate)):
        ih, hh = concatenated(found.ih, 1), concatenated(found.hh, 1)
        weight = w.hh if concatenated is gs.cat else w.hh.detach().numpy()
        hidden = hh @ weight + (0 if found.hidden is None else found.hidden)
        mine = [ih, hidden, *([] if found.cell is None else [found.cell]), hh.sum(0)]
        for one, other in zip(mine, expected, strict=True):
            one = one.detach().numpy() if hasattr(one, "detach") else one
            numpy.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-12)
