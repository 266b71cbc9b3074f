"""Fold and unfold: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "unfold": (lambda n: n.Unfold((2, 3), padding=1, stride=(1, 2)), (1, 2, 4, 5)),
    "fold": (lambda n: n.Fold((4, 5), (2, 2), dilation=2), (1, 8, 6)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
