"""A layer on gradscope and on PyTorch, with the same parameters."""

from __future__ import annotations

from typing import Any

import numpy

import gradscope as gs
from tests.side_by_side import compare

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


def with_numbers(lib: Any, make: Any) -> Any:
    """Return the layer with the same parameters in either library."""
    layer, numbers = make(lib.nn), numpy.random.default_rng(3)
    layer.to(lib.float64)
    for parameter in layer.parameters():
        parameter.data = lib.tensor(numbers.normal(size=tuple(parameter.shape)))
    return layer


def same_layer(torch: Any, make: Any, shape: tuple[int, ...]) -> None:
    """Compare text, state, result and gradients of a layer with PyTorch's, in training and in evaluation."""
    layers = {lib: with_numbers(lib, make) for lib in (gs, torch)}
    mine, theirs = layers.values()
    assert repr(mine) == repr(theirs).replace("torch", "gradscope")
    assert list(mine.state_dict()) == list(theirs.state_dict())
    shapes = [[tuple(p.shape) for p in layer.parameters()] for layer in (mine, theirs)]
    assert shapes[0] == shapes[1]
    compare(torch, lambda lib, x: layers[lib](x), normal(*shape), names=False, twice=False)
    for (_, a), (_, b) in zip(mine.named_buffers(), theirs.named_buffers(), strict=True):
        numpy.testing.assert_allclose(a.numpy(), b.numpy())
    for layer in (mine, theirs):
        layer.eval()
    compare(torch, lambda lib, x: layers[lib](x), normal(*shape), names=False, twice=False)
