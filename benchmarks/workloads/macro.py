"""Real layers: training steps, attention, recurrent networks, normalisation, and element-wise work on large tensors.

A body returns its loss, which every library must agree on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from workloads import models
from workloads.case import Work, case, nothing

MEAN = {"target": 1.0, "plain_target": 1.35}
"""The targets of a workload that has none of its own: those of the geometric mean."""

macro = partial(case, "macro")


def normal(lib: Any, *shape: int, requires_grad: bool = False) -> Any:
    """Return normal numbers, the same in every library."""
    numbers = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    return lib.tensor(numbers, requires_grad=requires_grad)


def integers(lib: Any, bound: int, *shape: int) -> Any:
    """Return integers below a bound, the same in every library."""
    return lib.tensor(np.random.default_rng(2).integers(bound, size=shape))


def training(optimizer: Any, loss_of: Callable[[], Any]) -> Work:
    """Return the work of a training step."""

    def body(prepared: None) -> Any:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return nothing, body


# --- training steps ---------------------------------------------------------------------------------------------------


def mlp_step(lib: Any, batch: int) -> Work:
    """Return a training step of the MLP that classifies 28×28 pixels."""
    model = models.mlp(lib, 784, 256, 128, 10)
    images, labels = normal(lib, batch, 784), integers(lib, 10, batch)
    criterion = lib.nn.CrossEntropyLoss()
    return training(lib.optim.SGD(model.parameters(), lr=0.01), lambda: criterion(model(images), labels))


@macro("MLP 784-256-128-10, batch 64", target=0.85, plain_target=0.9, trains=True)
def mlp_64(lib: Any) -> Work:
    return mlp_step(lib, 64)


@macro("MLP 784-256-128-10, batch 512", target=0.95, plain_target=1.0, trains=True)
def mlp_512(lib: Any) -> Work:
    return mlp_step(lib, 512)


@macro("LeNet, batch 32", target=1.0, plain_target=1.2, trains=True)
def lenet(lib: Any) -> Work:
    model = models.lenet(lib)
    images, labels = normal(lib, 32, 1, 28, 28), integers(lib, 10, 32)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(optimizer, lambda: lib.nn.functional.cross_entropy(model(images), labels))


@macro("ResNet of 14 layers, 16 images of 32×32", target=1.2, plain_target=1.8, trains=True)
def resnet(lib: Any) -> Work:
    model = models.resnet(lib)
    images, labels = normal(lib, 16, 3, 32, 32), integers(lib, 10, 16)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(optimizer, lambda: lib.nn.functional.cross_entropy(model(images), labels))


def gpt_step(lib: Any, *, batch: int = 8, length: int = 64, **sizes: Any) -> Work:
    """Return a training step of a GPT over characters."""
    model = models.char_gpt(lib, length=length, **sizes)
    text = integers(lib, 65, batch, length + 1)

    def loss_of() -> Any:
        logits = model(text[:, :-1])
        return lib.nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())

    return training(lib.optim.AdamW(model.parameters(), lr=1e-3), loss_of)


@macro("GPT over characters, 2 layers of 128, fused attention", target=1.0, plain_target=1.3, trains=True)
def gpt_2(lib: Any) -> Work:
    return gpt_step(lib, layers=2, width=128, heads=4)


@macro("GPT over characters, 2 layers of 128, softmax by hand", target=1.0, plain_target=1.3, trains=True)
def gpt_2_by_hand(lib: Any) -> Work:
    return gpt_step(lib, layers=2, width=128, heads=4, fused=False)


@macro("GPT over characters, 6 layers of 192, fused attention", target=1.0, plain_target=1.3, trains=True)
def gpt_6(lib: Any) -> Work:
    return gpt_step(lib, layers=6, width=192, heads=6)


@macro("LSTM, 2 layers of 128, 50 steps, batch 32", target=1.3, plain_target=2.0, trains=True)
def lstm(lib: Any) -> Work:
    net = models.start(lib, lib.nn.LSTM(64, 128, num_layers=2, batch_first=True))
    head = models.start(lib, lib.nn.Linear(128, 10))
    series, labels = normal(lib, 32, 50, 64), integers(lib, 10, 32)
    optimizer = lib.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
    return training(optimizer, lambda: lib.nn.functional.cross_entropy(head(net(series)[0][:, -1]), labels))


@macro("LSTM cell of 128, 50 steps in Python, batch 32", target=1.3, plain_target=2.0, trains=True)
def lstm_cell(lib: Any) -> Work:
    cell = models.start(lib, lib.nn.LSTMCell(64, 128))
    head = models.start(lib, lib.nn.Linear(128, 10))
    series, labels = normal(lib, 50, 32, 64), integers(lib, 10, 32)

    def loss_of() -> Any:
        state = None
        for features in series:
            state = cell(features, state)
        return lib.nn.functional.cross_entropy(head(state[0]), labels)

    return training(lib.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3), loss_of)


@macro("8 layer norms with ReLU and a residual, 2048×256", target=1.0, plain_target=1.8, trains=True)
def layer_norm_heavy(lib: Any) -> Work:
    norms = lib.nn.ModuleList([lib.nn.LayerNorm(256) for _ in range(8)])
    x = normal(lib, 2048, 256)

    def loss_of() -> Any:
        y = x
        for norm in norms:
            y = y + lib.relu(norm(y))
        return (y * y).mean()

    return training(lib.optim.SGD(norms.parameters(), lr=0.01), loss_of)


@macro("mean of 32 embeddings of 64, batch 256, 10,000 words", **MEAN, trains=True)
def embedding_mean(lib: Any) -> Work:
    model = models.start(lib, lib.nn.Embedding(10_000, 64))
    head = models.start(lib, lib.nn.Linear(64, 10))
    words, labels = integers(lib, 10_000, 256, 32), integers(lib, 10, 256)
    optimizer = lib.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    return training(optimizer, lambda: lib.nn.functional.cross_entropy(head(model(words).mean(1)), labels))


@macro("autoencoder 784-256-64-256-784, batch 128, Adam", **MEAN, trains=True)
def autoencoder(lib: Any) -> Work:
    model = models.mlp(lib, 784, 256, 64, 256, 784, activation="Sigmoid")
    images = normal(lib, 128, 784)
    return training(
        lib.optim.Adam(model.parameters(), lr=1e-3), lambda: lib.nn.functional.mse_loss(model(images), images)
    )


@macro("critic 64-256-256-1 with a gradient penalty, batch 128", **MEAN, trains=True)
def gradient_penalty(lib: Any) -> Work:
    critic = models.mlp(lib, 64, 256, 256, 1, activation="Tanh")
    x = normal(lib, 128, 64, requires_grad=True)

    def loss_of() -> Any:
        score = critic(x).sum()
        (slope,) = lib.autograd.grad(score, x, create_graph=True)
        return ((slope.pow(2).sum(1).sqrt() - 1) ** 2).mean() + score / len(x)

    return training(lib.optim.Adam(critic.parameters(), lr=1e-3), loss_of)


# --- single layers and functions --------------------------------------------------------------------------------------


def forward_and_backward(function: Callable[..., Any], *inputs: Any) -> Work:
    """Return the work of a function and of its backward from a gradient of ones."""
    seed = function(*inputs).detach() * 0 + 1

    def body(prepared: None) -> Any:
        for tensor in inputs:
            tensor.grad = None
        result = function(*inputs)
        result.backward(seed)
        return result

    return nothing, body


@macro("multi-head attention, 8 heads of 32, batch 8, length 128", target=1.0, plain_target=1.3)
def attention(lib: Any) -> Work:
    layer = models.start(lib, lib.nn.MultiheadAttention(256, 8, batch_first=True))
    return forward_and_backward(
        lambda x: layer(x, x, x, need_weights=False)[0], normal(lib, 8, 128, 256, requires_grad=True)
    )


@macro("gelu, 4M elements", target=1.0, plain_target=4.0)
def gelu_4m(lib: Any) -> Work:
    return forward_and_backward(lib.nn.functional.gelu, normal(lib, 4096, 1024, requires_grad=True))


@macro("softmax, 4M elements in rows of 1024", target=1.1, plain_target=2.2)
def softmax_4m(lib: Any) -> Work:
    x = normal(lib, 4096, 1024, requires_grad=True)
    return forward_and_backward(lambda x: lib.nn.functional.softmax(x, dim=-1), x)


@macro("layer_norm, 4M elements in rows of 1024", target=1.1, plain_target=2.2)
def layer_norm_4m(lib: Any) -> Work:
    x, weight, bias = (normal(lib, *shape, requires_grad=True) for shape in ((4096, 1024), (1024,), (1024,)))
    return forward_and_backward(
        lambda *inputs: lib.nn.functional.layer_norm(inputs[0], (1024,), *inputs[1:]), x, weight, bias
    )


@macro("gelu by tanh, written out, 4M elements", target=0.7, plain_target=1.0)
def tanh_4m(lib: Any) -> Work:
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + lib.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    return forward_and_backward(gelu, normal(lib, 4096, 1024, requires_grad=True))


@macro("product of matrices of 1024×1024", target=1.1)
def matmul_1024(lib: Any) -> Work:
    a, b = (normal(lib, 1024, 1024, requires_grad=True) for _ in range(2))
    return forward_and_backward(lib.matmul, a, b)


@macro("gradcheck of a layer with tanh, 8×6 by 6×4", **MEAN)
def gradcheck(lib: Any) -> Work:
    rng = np.random.default_rng(3)
    x, weight = (lib.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((8, 6), (6, 4)))

    def body(prepared: None) -> bool:
        return lib.autograd.gradcheck(lambda x, weight: lib.tanh(x @ weight), (x, weight))

    return nothing, body
