"""Upsampling: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "upsample": (lambda n: n.Upsample(scale_factor=(2, 1.5), mode="bilinear"), (1, 2, 3, 4)),
    "upsample nearest": (lambda n: n.UpsamplingNearest2d(scale_factor=2), (1, 2, 3, 4)),
    "upsample bilinear": (lambda n: n.UpsamplingBilinear2d(size=(5, 3)), (1, 2, 3, 4)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
