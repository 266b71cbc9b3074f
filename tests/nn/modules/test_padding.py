"""Padding: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "constant pad": (lambda n: n.ConstantPad1d(2, 3.5), (2, 3)),
    "constant pad 2d": (lambda n: n.ConstantPad2d((1, 0, -1, 2), 3.5), (1, 3, 2)),
    "constant pad 3d": (lambda n: n.ConstantPad3d(1, -1.0), (2, 3, 1)),
    "zero pad": (lambda n: n.ZeroPad1d(2), (2, 3)),
    "zero pad 2d": (lambda n: n.ZeroPad2d((1, 0, 2, 1)), (2, 3)),
    "zero pad 3d": (lambda n: n.ZeroPad3d(1), (2, 3, 1)),
    "reflection": (lambda n: n.ReflectionPad1d((2, 1)), (2, 3)),
    "reflection 2d": (lambda n: n.ReflectionPad2d(1), (1, 2, 3)),
    "reflection 3d": (lambda n: n.ReflectionPad3d(1), (1, 2, 3, 2)),
    "replication": (lambda n: n.ReplicationPad1d((2, 1)), (2, 3)),
    "replication 2d": (lambda n: n.ReplicationPad2d(1), (1, 2, 3)),
    "replication 3d": (lambda n: n.ReplicationPad3d(1), (1, 2, 3, 2)),
    "going round": (lambda n: n.CircularPad1d((2, 1)), (2, 3)),
    "going round 2d": (lambda n: n.CircularPad2d(1), (1, 2, 3)),
    "going round 3d": (lambda n: n.CircularPad3d(1), (1, 2, 3, 2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
