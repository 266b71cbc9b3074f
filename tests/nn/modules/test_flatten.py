"""Flattening: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer
from tests.side_by_side import same_complaint

LAYERS: dict[str, Any] = {
    "flatten": (lambda n: n.Flatten(), (2, 3, 2)),
    "unflatten": (lambda n: n.Unflatten(1, (3, 2)), (2, 6)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Unflatten(1, 3),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))
