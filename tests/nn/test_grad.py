"""Gradients of convolutions that nobody runs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

rng = numpy.random.default_rng(0)


@pytest.mark.parametrize("settings", [{}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2, "padding": 2}])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_they_are_those_of_autograd_and_of_pytorch(torch: Any, spatial: int, settings: dict[str, Any]) -> None:
    groups = settings.get("groups", 1)
    input_array = rng.normal(size=(2, 4, *(6, 5, 7)[:spatial]))
    weight_array = rng.normal(size=(2, 4 // groups, *(3, 2, 3)[:spatial]))
    found = {}
    for m in (gs, torch):
        x, weight = (m.tensor(array, requires_grad=True) for array in (input_array, weight_array))
        y = getattr(m.nn.functional, f"conv{spatial}d")(x, weight, None, **settings)
        seed = m.ones_like(y) * 2
        of_input = getattr(m.nn.grad, f"conv{spatial}d_input")(x.shape, weight, seed, **settings)
        of_weight = getattr(m.nn.grad, f"conv{spatial}d_weight")(x, weight.shape, seed, **settings)
        expected = m.autograd.grad(y, (x, weight), seed)
        for one, other in zip((of_input, of_weight), expected, strict=True):
            numpy.testing.assert_allclose(one.detach().numpy(), other.numpy(), rtol=1e-10, atol=1e-12)
        found[m] = [of_input.detach().numpy(), of_weight.detach().numpy()]
    for one, other in zip(found[gs], found[torch], strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
