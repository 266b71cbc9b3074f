"""Batch normalisations without running statistics: which modules, and what they compute afterwards."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint


def _net(m: Any) -> Any:
    n = m.nn
    inner = n.Sequential(n.BatchNorm2d(2, track_running_stats=False), n.BatchNorm3d(2), n.SyncBatchNorm(2))
    return n.Sequential(n.BatchNorm1d(2), inner, n.InstanceNorm1d(2, track_running_stats=True))


@pytest.mark.torch
def test_the_same_modules_are_changed_as_in_pytorch(torch: Any) -> None:
    texts = []
    for m in (gs, torch):
        net = _net(m)
        assert m.func.replace_all_batch_norm_modules_(net) is net
        texts.append([repr(net), list(net.state_dict()), [name for name, _ in net.named_buffers()]])
        alone = m.nn.BatchNorm1d(2)
        assert m.func.replace_all_batch_norm_modules_(alone).running_var is None
    assert texts[0] == texts[1]
    same_complaint(torch, lambda m: m.func.replace_all_batch_norm_modules_(3))


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
def test_the_batch_is_normalized_by_itself_in_training_and_in_evaluation(torch: Any, training: bool) -> None:
    def normalized(m: Any, x: Any) -> Any:
        return m.func.replace_all_batch_norm_modules_(m.nn.BatchNorm1d(3).to(m.float64)).train(training)(x)

    compare(torch, normalized, numpy.random.default_rng(0).normal(size=(4, 3)), names=False)


def test_gradients_per_sample_go_through_it() -> None:
    net = gs.func.replace_all_batch_norm_modules_(gs.nn.Sequential(gs.nn.Conv1d(1, 2, 1), gs.nn.BatchNorm1d(2)))
    params = dict(net.named_parameters())

    def loss(params: Any, sample: Any) -> Any:
        return (gs.func.functional_call(net, params, (sample.unsqueeze(0),)) ** 3).sum()

    samples = gs.randn(4, 1, 5)
    found = gs.func.vmap(gs.func.grad(loss), in_dims=(None, 0))(params, samples)
    one = gs.func.grad(loss)(params, samples[2])
    for name, gradient in one.items():
        numpy.testing.assert_allclose(found[name][2].detach().numpy(), gradient.detach().numpy(), atol=1e-4)
