"""Instance normalization: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "instance norm 1d": (lambda n: n.InstanceNorm1d(3), (2, 3, 4)),
    "instance norm": (lambda n: n.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 2, 3)),
    "instance norm of one": (lambda n: n.InstanceNorm2d(3, affine=True), (3, 2, 3)),
    "instance norm 3d": (lambda n: n.InstanceNorm3d(2, affine=True, bias=False), (2, 2, 2, 2, 1)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
