"""Normalization over layers, groups and neighbours: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.nn.modules.layers import same_layer
from tests.side_by_side import same_complaint

LAYERS: dict[str, Any] = {
    "layer norm": (lambda n: n.LayerNorm((3, 2)), (2, 3, 2)),
    "layer norm without": (lambda n: n.LayerNorm(3, elementwise_affine=False), (2, 3)),
    "group norm": (lambda n: n.GroupNorm(2, 4), (2, 4, 3)),
    "group norm without": (lambda n: n.GroupNorm(1, 4, affine=False), (2, 4)),
    "group norm without bias": (lambda n: n.GroupNorm(2, 4, bias=False), (2, 4)),
    "rms norm": (lambda n: n.RMSNorm((3, 2)), (2, 3, 2)),
    "rms norm without": (lambda n: n.RMSNorm(3, eps=1e-3, elementwise_affine=False), (2, 3)),
    "response norm": (lambda n: n.LocalResponseNorm(3, alpha=0.1), (2, 5, 3, 2)),
    "response norm 1d": (lambda n: n.LocalResponseNorm(2), (2, 5, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


@pytest.mark.torch
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_response_norm_of_torch_is_that_of_pytorch(torch: Any, size: int) -> None:
    values = numpy.random.default_rng(0).normal(size=(2, 6, 3, 2))
    layers = [lib.nn.CrossMapLRN2d(size, alpha=0.5, k=2) for lib in (gs, torch)]
    assert repr(layers[0]) == repr(layers[1])
    found, expected = (layer(lib.tensor(values)) for layer, lib in zip(layers, (gs, torch), strict=True))
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_response_norm_of_torch_has_the_gradient_of_what_it_computes() -> None:
    x = gs.tensor(numpy.random.default_rng(0).normal(size=(2, 5, 2, 1)), requires_grad=True)
    assert gs.autograd.gradcheck(gs.nn.CrossMapLRN2d(3, alpha=0.5), (x,))


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.GroupNorm(3, 4),
        lambda n: n.CrossMapLRN2d(3)(n.Parameter(n.Linear(2, 3).weight.data)),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))
