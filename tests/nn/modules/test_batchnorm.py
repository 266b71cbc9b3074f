"""Batch normalization: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.nn.modules.layers import same_layer
from tests.side_by_side import same_complaint

LAYERS: dict[str, Any] = {
    "batch norm 1d": (lambda n: n.BatchNorm1d(3), (4, 3)),
    "batch norm 2d": (lambda n: n.BatchNorm2d(3, momentum=None), (2, 3, 2, 2)),
    "batch norm 3d": (lambda n: n.BatchNorm3d(2, affine=False, track_running_stats=False), (2, 2, 2, 2, 1)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    same_layer(torch, *LAYERS[name])


def test_running_statistics_are_used_in_evaluation() -> None:
    layer = nn.BatchNorm1d(2)
    for _ in range(3):
        layer(gs.rand(8, 2) * 3 + 1)
    assert layer.num_batches_tracked.item() == 3
    layer.eval()
    x = gs.rand(1, 2)
    expected = (x - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    numpy.testing.assert_allclose(layer(x).detach().numpy(), expected.numpy(), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 3


@pytest.mark.parametrize(("layer", "shape"), [(nn.BatchNorm2d(2), (3, 2)), (nn.BatchNorm1d(2), (2,))])
def test_batch_norm_of_the_wrong_number_of_dimensions(layer: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected .*D input \(got .D input\)"):
        layer(gs.zeros(*shape))


def test_batch_normalization_over_all_processes_is_that_of_this_one(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        plain = lib.nn.Sequential(lib.nn.BatchNorm2d(3, momentum=None), lib.nn.Sequential(lib.nn.BatchNorm1d(3)))
        model = lib.nn.SyncBatchNorm.convert_sync_batchnorm(plain)
        assert model[0].weight is plain[0].weight
        assert model[0].running_mean is plain[0].running_mean
        x = lib.arange(24.0).reshape(2, 3, 4)
        found.append([model[0](x).tolist(), plain[0].running_var.tolist(), repr(model)])
    numpy.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    assert found[0][1:] == found[1][1:]
    same_complaint(torch, lambda lib: lib.nn.SyncBatchNorm(3)(lib.ones(3)))
    with pytest.raises(NotImplementedError, match="there are no process groups here"):
        gs.nn.SyncBatchNorm(3, process_group=object())
