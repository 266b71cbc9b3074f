"""AdaptiveLogSoftmaxWithLoss beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint


def made(m: Any, **options: Any) -> Any:
    layer = m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, **options).double()
    random = numpy.random.RandomState(0)
    with m.no_grad():
        for p in layer.parameters():
            p.copy_(m.tensor(random.normal(size=tuple(p.shape))))
    return layer


INPUT = numpy.random.RandomState(1).normal(size=(6, 8))
TARGET = [0, 11, 4, 2, 6, 7]


@pytest.mark.torch
@pytest.mark.parametrize("head_bias", [False, True])
def test_values_and_derivatives(torch: Any, head_bias: bool) -> None:
    mine, theirs = (made(m, head_bias=head_bias) for m in (gs, torch))
    assert repr(mine) == repr(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for field in ("output", "loss"):
        compare(
            torch,
            lambda m, x, field=field: getattr(made(m, head_bias=head_bias)(x, m.tensor(TARGET)), field),
            INPUT,
            names=False,
        )
    compare(torch, lambda m, x: made(m, head_bias=head_bias).log_prob(x), INPUT, names=False)
    for x in (INPUT, INPUT[:1], INPUT * 10):
        assert mine.predict(gs.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    numpy.testing.assert_allclose(mine.log_prob(gs.tensor(INPUT)).exp().sum(1).tolist(), 1.0)


@pytest.mark.torch
def test_the_parameters_get_the_gradients_of_pytorch(torch: Any) -> None:
    found = []
    for m in (gs, torch):
        layer = made(m)
        layer(m.tensor(INPUT), m.tensor([0, 4, 1, 2, 6, 3])).loss.backward()
        found.append([None if p.grad is None else p.grad.numpy() for p in layer.parameters()])
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            numpy.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.torch
def test_one_example(torch: Any) -> None:
    compare(torch, lambda m, x: made(m)(x, m.tensor(9)).output, INPUT[0], names=False)


def test_it_works_on_other_devices(other_device: str) -> None:
    layer = made(gs).to(other_device)
    loss = layer(gs.tensor(INPUT).to(other_device), gs.tensor(TARGET).to(other_device)).loss
    loss.backward()
    assert loss.device.type == other_device
    numpy.testing.assert_allclose(loss.item(), made(gs)(gs.tensor(INPUT), gs.tensor(TARGET)).loss.item())


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, []),
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 12]),
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [0, 3]),
        lambda m: m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [5, 3]),
        lambda m: made(m)(m.tensor(INPUT), m.tensor([0, 1])),
        lambda m: made(m)(m.tensor(INPUT), m.tensor([[0, 1]])),
        lambda m: made(m)(m.tensor(INPUT[0]), m.tensor([0] * 8)),
        lambda m: made(m)(m.tensor(INPUT), m.tensor(0)),
        lambda m: made(m)(m.tensor(INPUT), m.tensor([0, 1, 2, 3, 4, 12])),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)
