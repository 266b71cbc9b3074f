"""Dropout: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.nn.modules.layers import same_layer
from tests.side_by_side import same_complaint

LAYERS: dict[str, Any] = {
    "alpha dropout": (lambda n: n.AlphaDropout(0.3).eval(), (2, 3)),
    "feature alpha dropout": (lambda n: n.FeatureAlphaDropout(0.3, inplace=True).eval(), (2, 3)),
    "dropout": (lambda n: n.Dropout(0.3).eval(), (2, 3)),
    "dropout2d": (lambda n: n.Dropout2d().eval(), (2, 3, 2, 2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Dropout(2.0),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


def test_dropout_only_in_training() -> None:
    gs.manual_seed(0)
    layer, x = nn.Dropout(0.5), gs.ones(1000)
    assert 300 < int((layer(x) == 0).sum().item()) < 700
    assert layer.eval()(x) is x
