"""Pooling: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "max pool": (lambda n: n.MaxPool2d(2), (1, 2, 4, 4)),
    "max pool 3d": (lambda n: n.MaxPool3d(2), (1, 2, 2, 4, 4)),
    "avg pool 3d": (lambda n: n.AvgPool3d(2, 1, divisor_override=3), (1, 2, 2, 3, 3)),
    "max pool 1d": (lambda n: n.MaxPool1d(3, 1), (1, 2, 4)),
    "avg pool": (lambda n: n.AvgPool2d(2, 1), (1, 2, 4, 4)),
    "avg pool 1d": (lambda n: n.AvgPool1d(2), (1, 2, 4)),
    "adaptive pool": (lambda n: n.AdaptiveAvgPool2d((2, 3)), (1, 2, 5, 4)),
    "adaptive pool 1d": (lambda n: n.AdaptiveAvgPool1d(2), (1, 2, 5)),
    "adaptive pool 3d": (lambda n: n.AdaptiveAvgPool3d((2, None, 1)), (1, 2, 3, 2, 4)),
    "adaptive max pool 1d": (lambda n: n.AdaptiveMaxPool1d(3), (1, 2, 5)),
    "adaptive max pool": (lambda n: n.AdaptiveMaxPool2d((2, None)), (1, 2, 5, 4)),
    "adaptive max pool 3d": (lambda n: n.AdaptiveMaxPool3d(2), (1, 2, 3, 2, 4)),
    "power pool 1d": (lambda n: n.LPPool1d(2, 3, stride=1), (1, 2, 5)),
    "power pool": (lambda n: n.LPPool2d(3, (2, 3), ceil_mode=True), (1, 2, 5, 4)),
    "power pool 3d": (lambda n: n.LPPool3d(2, 2), (1, 2, 2, 4, 2)),
    "fractional pool": (
        lambda n: n.FractionalMaxPool2d(2, 3, _random_samples=n.Buffer(n.Parameter().new_full((1, 2, 2), 0.4))),
        (1, 2, 6, 5),
    ),
    "fractional pool 3d": (
        lambda n: n.FractionalMaxPool3d(
            2, output_ratio=0.5, _random_samples=n.Buffer(n.Parameter().new_full((1, 2, 3), 0.7))
        ),
        (1, 2, 5, 6, 4),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
