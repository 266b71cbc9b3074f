"""Embeddings: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.nn.modules.layers import with_numbers
from tests.side_by_side import same_complaint


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Embedding(3, 2, padding_idx=5),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


@pytest.mark.torch
def test_embedding(torch: Any) -> None:
    layers = {lib: with_numbers(lib, lambda n: n.Embedding(5, 3, padding_idx=-1)) for lib in (gs, torch)}
    assert repr(layers[gs]) == repr(layers[torch])
    found = []
    for lib, layer in layers.items():
        layer(lib.tensor([[0, 4], [4, 2]])).sum().backward()
        found.append(layer.weight.grad.tolist())
    assert found[0] == found[1]
    fresh = nn.Embedding(4, 2, padding_idx=1)
    assert fresh.weight[1].tolist() == [0.0, 0.0]
    rows = gs.rand(4, 2)
    assert nn.Embedding.from_pretrained(rows)(gs.tensor([3])).tolist() == rows[3:].tolist()


@pytest.mark.torch
def test_embedding_bag(torch: Any) -> None:
    def plain(n: Any) -> Any:
        return n.EmbeddingBag(5, 3, padding_idx=-1)

    def other(n: Any) -> Any:
        return n.EmbeddingBag(5, 3, 2.0, 1.0, mode="sum", include_last_offset=True)

    for make in (plain, other):
        layers = {lib: with_numbers(lib, make) for lib in (gs, torch)}
        assert repr(layers[gs]) == repr(layers[torch])
        assert list(layers[gs].state_dict()) == list(layers[torch].state_dict())
        found = []
        for lib, layer in layers.items():
            bags = layer(lib.tensor([0, 4, 4, 2, 1]), lib.tensor([0, 2, 5]))
            bags.square().sum().backward()
            found.append([bags.detach().numpy(), layer.weight.grad.numpy()])
        for mine, theirs in zip(*found, strict=True):
            numpy.testing.assert_allclose(mine, theirs)
    assert nn.EmbeddingBag(4, 2, padding_idx=1).weight[1].tolist() == [0.0, 0.0]
    rows = gs.rand(4, 2)
    frozen = nn.EmbeddingBag.from_pretrained(rows, mode="max")
    assert not frozen.weight.requires_grad
    assert frozen(gs.tensor([[1, 3]])).tolist() == [rows[[1, 3]].max(0)[0].tolist()]
