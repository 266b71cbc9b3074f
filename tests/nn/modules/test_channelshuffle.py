"""Channel shuffle: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "channel shuffle": (lambda n: n.ChannelShuffle(2), (2, 4, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
