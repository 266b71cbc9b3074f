"""Convolutions: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.nn.modules.layers import same_layer
from tests.side_by_side import same_complaint

LAYERS: dict[str, Any] = {
    "conv1d": (lambda n: n.Conv1d(2, 3, 3), (2, 2, 6)),
    "conv2d": (lambda n: n.Conv2d(2, 4, 3, 2, 1, groups=2, bias=False), (1, 2, 6, 5)),
    "conv2d same": (lambda n: n.Conv2d(2, 2, (3, 1), padding="same", dilation=2), (1, 2, 6, 5)),
    "conv2d reflected": (
        lambda n: n.Conv2d(2, 2, (4, 3), padding=(2, 1), padding_mode="reflect", bias=False),
        (1, 2, 6, 5),
    ),
    "conv1d going round": (lambda n: n.Conv1d(2, 2, 4, padding="same", padding_mode="circular", dilation=2), (1, 2, 7)),
    "conv3d valid": (lambda n: n.Conv3d(1, 1, 2, padding="valid", padding_mode="replicate"), (1, 1, 3, 3, 3)),
    "conv3d": (lambda n: n.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
    "transposed": (lambda n: n.ConvTranspose2d(2, 3, 3, 2, 1, 1), (1, 2, 4, 4)),
    "transposed 1d": (lambda n: n.ConvTranspose1d(2, 4, 3, groups=2), (1, 2, 4)),
    "transposed 3d": (lambda n: n.ConvTranspose3d(2, 3, 2, stride=2), (1, 2, 2, 1, 2)),
}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


def test_fresh_parameters_are_bounded_as_documented() -> None:
    gs.manual_seed(0)
    assert 0.05 < nn.Conv2d(4, 8, 5).weight.detach().abs().max().item() <= 0.1


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Conv2d(3, 4, 2, groups=2),
        lambda n: n.Conv2d(2, 3, 2, groups=2),
        lambda n: n.Conv2d(2, 2, 2, stride=2, padding="same"),
        lambda n: n.ConvTranspose2d(1, 2, 3, padding_mode="reflect"),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


def test_an_unknown_padding_mode() -> None:
    with pytest.raises(ValueError, match=r"padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}"):
        nn.Conv2d(1, 1, 3, padding_mode="mirror")
