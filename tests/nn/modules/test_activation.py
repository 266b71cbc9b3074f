"""Activations: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.modules.layers import same_layer

LAYERS: dict[str, Any] = {
    "relu": (lambda n: n.ReLU(), (2, 3)),
    "relu6": (lambda n: n.ReLU6(), (2, 3)),
    "leaky": (lambda n: n.LeakyReLU(0.2), (2, 3)),
    "prelu": (lambda n: n.PReLU(3), (2, 3)),
    "elu": (lambda n: n.ELU(0.5), (2, 3)),
    "celu": (lambda n: n.CELU(0.5), (2, 3)),
    "selu": (lambda n: n.SELU(), (2, 3)),
    "gelu": (lambda n: n.GELU(approximate="tanh"), (2, 3)),
    "silu": (lambda n: n.SiLU(), (2, 3)),
    "mish": (lambda n: n.Mish(), (2, 3)),
    "sigmoid": (lambda n: n.Sigmoid(), (2, 3)),
    "tanh": (lambda n: n.Tanh(), (2, 3)),
    "log sigmoid": (lambda n: n.LogSigmoid(), (2, 3)),
    "softsign": (lambda n: n.Softsign(), (2, 3)),
    "tanhshrink": (lambda n: n.Tanhshrink(), (2, 3)),
    "hardtanh": (lambda n: n.Hardtanh(-0.5, 0.5), (2, 3)),
    "hardsigmoid": (lambda n: n.Hardsigmoid(), (2, 3)),
    "hardswish": (lambda n: n.Hardswish(), (2, 3)),
    "hardshrink": (lambda n: n.Hardshrink(), (2, 3)),
    "softshrink": (lambda n: n.Softshrink(0.3), (2, 3)),
    "softplus": (lambda n: n.Softplus(2.0), (2, 3)),
    "threshold": (lambda n: n.Threshold(0.1, 20.0), (2, 3)),
    "softmax": (lambda n: n.Softmax(dim=1), (2, 3)),
    "softmax 2d": (lambda n: n.Softmax2d(), (2, 3, 2, 2)),
    "glu": (lambda n: n.GLU(1), (2, 4)),
    "rrelu": (lambda n: n.RReLU(0.2, 0.2, inplace=False), (2, 3)),
    "softmin": (lambda n: n.Softmin(dim=1), (2, 3)),
    "log softmax": (lambda n: n.LogSoftmax(dim=1), (2, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])
