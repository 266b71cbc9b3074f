"""Modules, losses, random numbers and optimizers on another array module: the same code, the same numbers."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests import strict_arrays

# Importing strict_arrays makes the device known.
DEVICE = strict_arrays.strict.__name__


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 10),
        nn.LayerNorm(10),
    )


def steps(model: nn.Module, name: str, x: gs.Tensor, target: gs.Tensor) -> None:
    optimizer = getattr(gs.optim, name)(model.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_training_asks_nothing_of_the_host(name: str) -> None:
    gs.manual_seed(0)
    model = network()
    other = copy.deepcopy(model).to(DEVICE)
    x, target = gs.rand(6, 1, 8, 8), gs.tensor([1, 2, 3, 4, 5, 6])
    steps(model, name, x, target)
    steps(other, name, x.to(DEVICE), target.to(DEVICE))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert b.device.type == DEVICE
        numpy.testing.assert_allclose(a.detach().numpy(), b.detach().cpu().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: gs.rand(3, device=DEVICE),
        lambda: gs.randn(3, device=DEVICE),
        lambda: gs.randint(5, (3,), device=DEVICE),
        lambda: gs.randperm(3, device=DEVICE),
        lambda: gs.multinomial(gs.ones(3).to(DEVICE), 2),
        lambda: gs.multinomial(gs.ones(3).to(DEVICE), 2, True),
        lambda: gs.bernoulli(gs.full((3,), 0.5).to(DEVICE)),
        lambda: gs.ones(3).to(DEVICE).normal_(),
        lambda: gs.ones(3).to(DEVICE).exponential_(),
        lambda: gs.ones(3).to(DEVICE).bernoulli_(0.5),
        lambda: gs.ones(3).to(DEVICE).random_(4),
        lambda: nn.functional.dropout(gs.ones(5).to(DEVICE)),
        lambda: nn.functional.embedding(gs.tensor([1]).to(DEVICE), gs.ones(3, 2).to(DEVICE), max_norm=0.5),
        lambda: nn.init.trunc_normal_(gs.ones(3, 2).to(DEVICE)),
        lambda: nn.Linear(2, 2, device=DEVICE).weight,
    ],
)
def test_random_numbers_are_made_where_they_are_wanted(draw: Any) -> None:
    assert draw().device.type == DEVICE


def test_a_generator_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'strict' device type for generator but found 'cpu'"):
        gs.rand(2, device=DEVICE, generator=gs.Generator())


@pytest.mark.parametrize(
    "use",
    [
        lambda index: nn.functional.one_hot(index),
        lambda index: nn.functional.one_hot(index, 4),
        lambda index: gs.repeat_interleave(index),
        lambda index: index.repeat_interleave(index),
    ],
)
def test_sizes_that_depend_on_values_are_asked_for(use: Any) -> None:
    index = gs.tensor([2, 0, 1])
    assert use(index.to(DEVICE)).tolist() == use(index).tolist()


def test_what_asks_for_values_asks_the_device() -> None:
    x = gs.tensor([1.0, 2.0]).to(DEVICE)
    assert 1.0 in x
    assert 3.0 not in x
    with gs.autograd.set_detect_anomaly(True):
        w = x.clone().requires_grad_()
        (w * 2).sum().backward()
        with (
            numpy.errstate(all="ignore"),
            pytest.raises(RuntimeError, match="returned nan"),
            pytest.warns(UserWarning, match="Error detected in DivBackward0"),
        ):
            (w * 0 / (w * 0)).sum().backward()


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_parametrized_weights_ask_nothing_of_the_host(kind: str) -> None:
    gs.manual_seed(0)
    module = getattr(nn.utils.parametrizations, kind)(nn.Linear(4, 3))
    other = copy.deepcopy(module).to(DEVICE)
    x = gs.rand(2, 4)
    for layer, batch in ((module, x), (other, x.to(DEVICE))):
        layer(batch).pow(2).sum().backward()
    for a, b in zip(module.parameters(), other.parameters(), strict=True):
        numpy.testing.assert_allclose(a.grad.numpy(), b.grad.cpu().numpy(), rtol=1e-4, atol=1e-5)
    made = getattr(nn.utils.parametrizations, kind)(nn.Linear(4, 3).to(DEVICE))
    assert made.weight.device.type == DEVICE


def test_batches_of_rows_on_a_device() -> None:
    rows = gs.utils.data.TensorDataset(gs.arange(5).to(DEVICE))
    batches = [batch for (batch,) in gs.utils.data.DataLoader(rows, batch_size=2)]
    assert {batch.device.type for batch in batches} == {DEVICE}
    assert [batch.cpu().tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
