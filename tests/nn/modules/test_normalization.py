"""Normalization over layers, groups and neighbours: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

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
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.GroupNorm(3, 4),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))
