"""Modules, losses, random numbers and optimizers on another array module: the same code, the same numbers."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn


def network() -> nn.Module:
    return nn.Sequential(
        # Of a bias before a batch norm the gradient is rounding alone, which Adam makes as large as any other.
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 10),
        nn.LayerNorm(10),
    )


def steps(model: nn.Module, name: str, x: gs.Tensor, target: gs.Tensor) -> None:
    settings = {} if name == "Rprop" else {"weight_decay": 0.1}
    optimizer = getattr(gs.optim, name)(model.parameters(), lr=0.01, **settings)
    for step in range(3):
        if step == 2:
            state = optimizer.state_dict()
            optimizer = getattr(gs.optim, name)(model.parameters(), lr=0.01, **settings)
            optimizer.load_state_dict(state)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()


STEPPING = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor"


@pytest.mark.parametrize("name", STEPPING.split())
def test_training_asks_nothing_of_the_host(name: str, other_device: str) -> None:
    gs.manual_seed(0)
    model = network()
    other = copy.deepcopy(model).to(other_device)
    x, target = gs.rand(6, 1, 8, 8), gs.tensor([1, 2, 3, 4, 5, 6])
    steps(model, name, x, target)
    steps(other, name, x.to(other_device), target.to(other_device))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert b.device.type == other_device
        numpy.testing.assert_allclose(a.detach().numpy(), b.detach().cpu().numpy(), rtol=1e-4, atol=1e-5)


def packed(model: Any, x: Any) -> Any:
    output, _ = model(nn.utils.rnn.pack_padded_sequence(x, [2, 5, 4], enforce_sorted=False))
    return nn.utils.rnn.pad_packed_sequence(output)[0]


def masked(model: Any, x: Any) -> Any:
    padding = gs.tensor([[False] * 5, [False, False, False, True, True], [False] * 5], device=x.device)
    causal = nn.Transformer.generate_square_subsequent_mask(5, device=x.device) < 0
    return model(x, src_mask=causal, src_key_padding_mask=padding, is_causal=True)


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (lambda: nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2), packed),
        (lambda: nn.GRU(4, 3, bidirectional=True), packed),
        (lambda: nn.RNN(4, 3, batch_first=True), lambda model, x: model(x)[0]),
        (lambda: nn.LSTMCell(4, 3), lambda model, x: model(x[0])[0]),
        (lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True), lambda model, x: model(x, x, x)[0]),
        (lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0), masked),
        (lambda: nn.Transformer(4, 2, 1, 1, 6, 0.0), lambda model, x: model(x, x[:3])),
    ],
    ids=["lstm", "gru", "rnn", "cell", "attention", "layer", "transformer"],
)
def test_networks_over_sequences_ask_nothing_of_the_host(make: Any, use: Any, other_device: str) -> None:
    model, x = make().double(), gs.randn(5, 3, 4, dtype=gs.float64)
    other = copy.deepcopy(model).to(other_device)
    outputs = use(model, x), use(other, x.to(other_device))
    assert outputs[1].device.type == other_device
    numpy.testing.assert_allclose(*(o.detach().cpu().numpy() for o in outputs), rtol=1e-9)
    for output in outputs:
        (output**2).sum().backward()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert b.grad.device.type == other_device
        numpy.testing.assert_allclose(a.grad.numpy(), b.grad.cpu().numpy(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    "draw",
    [
        lambda device: gs.rand(3, device=device),
        lambda device: gs.randn(3, device=device),
        lambda device: gs.randint(5, (3,), device=device),
        lambda device: gs.randperm(3, device=device),
        lambda device: gs.multinomial(gs.ones(3).to(device), 2),
        lambda device: gs.multinomial(gs.ones(3).to(device), 2, True),
        lambda device: gs.bernoulli(gs.full((3,), 0.5).to(device)),
        lambda device: gs.ones(3).to(device).normal_(),
        lambda device: gs.ones(3).to(device).exponential_(),
        lambda device: gs.ones(3).to(device).bernoulli_(0.5),
        lambda device: gs.ones(3).to(device).random_(4),
        lambda device: nn.functional.dropout(gs.ones(5).to(device)),
        lambda device: nn.functional.embedding(gs.tensor([1]).to(device), gs.ones(3, 2).to(device), max_norm=0.5),
        lambda device: nn.init.trunc_normal_(gs.ones(3, 2).to(device)),
        lambda device: nn.Linear(2, 2, device=device).weight,
    ],
)
def test_random_numbers_are_made_where_they_are_wanted(draw: Any, other_device: str) -> None:
    assert draw(other_device).device.type == other_device


def test_a_generator_of_another_device_is_refused(other_device: str) -> None:
    with pytest.raises(RuntimeError, match=f"Expected a '{other_device}' device type for generator but found 'cpu'"):
        gs.rand(2, device=other_device, generator=gs.Generator())


@pytest.mark.parametrize(
    "use",
    [
        lambda index: nn.functional.one_hot(index),
        lambda index: nn.functional.one_hot(index, 4),
        lambda index: gs.repeat_interleave(index),
        lambda index: index.repeat_interleave(index),
    ],
)
def test_sizes_that_depend_on_values_are_asked_for(use: Any, other_device: str) -> None:
    index = gs.tensor([2, 0, 1])
    assert use(index.to(other_device)).tolist() == use(index).tolist()


def test_what_asks_for_values_asks_the_device(other_device: str) -> None:
    x = gs.tensor([1.0, 2.0]).to(other_device)
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


def on_both(function: Any, other_device: str, *tensors: gs.Tensor) -> None:
    """Assert that the value and the gradients are the same on the host and on the device, where they stay."""
    found = []
    for device in ("cpu", other_device):
        inputs = [t.to(device).detach().requires_grad_(t.requires_grad) for t in tensors]
        result = function(*inputs)
        assert result.device.type == device
        result.sum().backward()
        found.append([result.detach().cpu().numpy(), *(x.grad.cpu().numpy() for x in inputs if x.requires_grad)])
    for here, there in zip(*found, strict=True):
        numpy.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-6)


SIGNS, LABELS, F = gs.tensor([1.0, -1.0, 1.0]), gs.tensor([[0, 2, -1], [1, -1, 0], [2, 1, 0]]), nn.functional
LOSSES = {
    "margin_ranking": lambda x, y, signs, labels: F.margin_ranking_loss(x[0], y[0], signs),
    "hinge_embedding": lambda x, y, signs, labels: F.hinge_embedding_loss(x, signs),
    "cosine_embedding": lambda x, y, signs, labels: F.cosine_embedding_loss(x, y, signs),
    "triplet_margin": lambda x, y, signs, labels: F.triplet_margin_loss(x, y, x + signs, swap=True),
    "soft_margin": lambda x, y, signs, labels: F.soft_margin_loss(x, signs),
    "multilabel_soft_margin": lambda x, y, signs, labels: F.multilabel_soft_margin_loss(x, (signs > 0).float()),
    "multilabel_margin": lambda x, y, signs, labels: F.multilabel_margin_loss(x, labels),
    "multi_margin": lambda x, y, signs, labels: F.multi_margin_loss(x, labels[2], 2),
    "poisson": lambda x, y, signs, labels: F.poisson_nll_loss(x, signs + 2, full=True),
    "gaussian": lambda x, y, signs, labels: F.gaussian_nll_loss(x, signs, x.exp(), full=True),
    "ctc": lambda x, y, signs, labels: F.ctc_loss(
        (x[:, None] + y[:, :, None]).log_softmax(2), labels.clamp(1), [3, 2, 3], [1, 2, 3], zero_infinity=True
    ),
    "pdist": lambda x, y, signs, labels: F.pdist(x, 3.0),
    "cosine_similarity": lambda x, y, signs, labels: F.cosine_similarity(x, y),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_losses_stay_on_the_device(loss: Any, other_device: str) -> None:
    gs.manual_seed(0)
    on_both(
        lambda x, signs, labels: loss(x, x.flip(0) * 2, signs, labels),
        other_device,
        gs.randn(3, 3, requires_grad=True),
        SIGNS,
        LABELS,
    )


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_stays_on_the_device(mode: str, other_device: str) -> None:
    gs.manual_seed(0)
    for pad in ((1, 2), (2, 1, 1, -1)):
        on_both(lambda x: F.pad(x, pad, mode).square(), other_device, gs.randn(1, 3, 4, requires_grad=True))  # noqa: B023
    convolution = nn.Conv1d(3, 2, 3, padding=1, padding_mode=mode)
    other = copy.deepcopy(convolution).to(other_device)
    x = gs.randn(1, 3, 4)
    numpy.testing.assert_allclose(
        convolution(x).detach().numpy(), other(x.to(other_device)).detach().cpu().numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_parametrized_weights_ask_nothing_of_the_host(kind: str, other_device: str) -> None:
    gs.manual_seed(0)
    module = getattr(nn.utils.parametrizations, kind)(nn.Linear(4, 3))
    other = copy.deepcopy(module).to(other_device)
    x = gs.rand(2, 4)
    for layer, batch in ((module, x), (other, x.to(other_device))):
        layer(batch).pow(2).sum().backward()
    for a, b in zip(module.parameters(), other.parameters(), strict=True):
        numpy.testing.assert_allclose(a.grad.numpy(), b.grad.cpu().numpy(), rtol=1e-4, atol=1e-5)
    made = getattr(nn.utils.parametrizations, kind)(nn.Linear(4, 3).to(other_device))
    assert made.weight.device.type == other_device


def test_batches_of_rows_on_a_device(other_device: str) -> None:
    rows = gs.utils.data.TensorDataset(gs.arange(5).to(other_device))
    batches = [batch for (batch,) in gs.utils.data.DataLoader(rows, batch_size=2)]
    assert {batch.device.type for batch in batches} == {other_device}
    assert [batch.cpu().tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
