"""Linear layers: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.nn.modules.layers import normal, same_layer, with_numbers
from tests.side_by_side import compare

LAYERS: dict[str, Any] = {
    "identity": (lambda n: n.Identity(3, x=1), (2, 3)),
    "linear": (lambda n: n.Linear(3, 4), (2, 3)),
    "linear without bias": (lambda n: n.Linear(3, 4, bias=False), (2, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


@pytest.mark.torch
def test_bilinear(torch: Any) -> None:
    layers = {lib: with_numbers(lib, lambda n: n.Bilinear(3, 4, 2)) for lib in (gs, torch)}
    compare(torch, lambda lib, x, y: layers[lib](x, y), normal(5, 3), normal(5, 4), names=False, twice=False)


def test_fresh_parameters_are_bounded_as_documented() -> None:
    gs.manual_seed(0)
    for parameter in nn.Linear(100, 50).parameters():
        assert 0.05 < parameter.detach().abs().max().item() <= 0.1
