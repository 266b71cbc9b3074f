"""Small tensors: what one operator, view, hook, gradient or optimizer step costs beside its arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from workloads import models
from workloads.case import Work, case, nothing

micro = partial(case, "micro")
promotion = partial(case, "promotion", target=2.0)


def uniform(lib: Any, *shape: int, dtype: Any = np.float32, requires_grad: bool = False) -> Any:
    """Return numbers between 0 and 1, the same in every library."""
    return lib.tensor(np.random.default_rng(0).random(shape).astype(dtype), requires_grad=requires_grad)


def repeated(function: Callable[[], Any], times: int) -> Work:
    """Return the work of a function without arguments, over and over."""

    def body(prepared: None) -> Any:
        for _ in range(times):
            result = function()
        return result

    return nothing, body


# --- operators --------------------------------------------------------------------------------------------------------


@micro("recorded `a * b`, 8×8", target=0.6, operations=1000)
def recorded_mul(lib: Any) -> Work:
    a, b = (uniform(lib, 8, 8, requires_grad=True) for _ in range(2))
    return repeated(lambda: a * b, 1000)


@micro("`a * b` in `no_grad()`, 8×8", target=1.0, operations=1000)
def plain_mul(lib: Any) -> Work:
    a, b = (uniform(lib, 8, 8) for _ in range(2))

    def body(prepared: None) -> Any:
        with lib.no_grad():
            for _ in range(1000):
                result = a * b
        return result

    return nothing, body


@micro("`x + 1`, 8×8", target=1.0, operations=1000)
def number_on_the_right(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: x + 1, 1000)


@micro("`relu(x)`, 8×8", target=1.0, operations=1000)
def relu_8(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: lib.relu(x), 1000)


@micro("`exp(x)`, 8×8", target=1.0, operations=1000)
def exp_8(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: lib.exp(x), 1000)


@micro("`x.add_(y)`, 8×8", target=1.0, operations=1000)
def add_in_place(lib: Any) -> Work:
    x, y = uniform(lib, 8, 8), uniform(lib, 8, 8) * 1e-6
    return repeated(lambda: x.add_(y), 1000)


@micro("`cat([a, b])`, 8×8", target=1.0, operations=1000)
def cat_8(lib: Any) -> Work:
    a, b = (uniform(lib, 8, 8, requires_grad=True) for _ in range(2))
    return repeated(lambda: lib.cat([a, b]), 1000)


@micro("`linear(x, weight, bias)`, 8×8", target=1.0, operations=1000)
def linear_8(lib: Any) -> Work:
    x, weight, bias = (uniform(lib, *shape, requires_grad=True) for shape in ((8, 8), (8, 8), (8,)))
    return repeated(lambda: lib.nn.functional.linear(x, weight, bias), 1000)


@micro("`layer_norm(x)`, 8×8", target=1.0, operations=500)
def layer_norm_8(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: lib.nn.functional.layer_norm(x, (8,)), 500)


@micro("`2 - x`, 8×8", target=1.0, operations=1000)
def number_on_the_left(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: 2 - x, 1000)


@micro("`where(c, a, b)`, 8×8", target=1.0, operations=1000)
def where(lib: Any) -> Work:
    a, b = (uniform(lib, 8, 8, requires_grad=True) for _ in range(2))
    condition = a > 0.5
    return repeated(lambda: lib.where(condition, a, b), 1000)


@micro("`a @ b`, 8×8", target=1.0, operations=1000)
def matmul_8(lib: Any) -> Work:
    a, b = (uniform(lib, 8, 8, requires_grad=True) for _ in range(2))
    return repeated(lambda: a @ b, 1000)


@micro("`x.sum(1)`, 8×8", target=1.0, operations=1000)
def sum_8(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: x.sum(1), 1000)


@micro("`softmax(x, 1)`, 8×8", target=1.0, operations=500)
def softmax_8(lib: Any) -> Work:
    x = uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: lib.nn.functional.softmax(x, dim=1), 500)


# --- mixed dtypes beside the same operator on one dtype, in the same library ------------------------------------------


@promotion("float32 * float64 : float32 * float32", operations=1000, beside=recorded_mul)
def promoted_float64(lib: Any) -> Work:
    a, b = uniform(lib, 8, 8, requires_grad=True), uniform(lib, 8, 8, dtype=np.float64)
    return repeated(lambda: a * b, 1000)


@promotion("int64 * float32 : float32 * float32", operations=1000, beside=recorded_mul)
def promoted_int64(lib: Any) -> Work:
    a, b = lib.arange(64).view(8, 8), uniform(lib, 8, 8, requires_grad=True)
    return repeated(lambda: a * b, 1000)


@promotion("int64 * 2.0 : float32 * float32", operations=1000, beside=recorded_mul)
def promoted_number(lib: Any) -> Work:
    a = lib.arange(64).view(8, 8)
    return repeated(lambda: a * 2.0, 1000)


@promotion("2 - x : float32 * float32", operations=1000, beside=recorded_mul)
def promoted_left(lib: Any) -> Work:
    return number_on_the_left(lib)


# --- views, indexes and writes ----------------------------------------------------------------------------------------


@micro("chain of 6 views, recorded", target=1.0, operations=200)
def views(lib: Any) -> Work:
    x = uniform(lib, 4, 8, 16, requires_grad=True)
    return repeated(
        lambda: x.view(32, 16).transpose(0, 1).unsqueeze(0).permute(1, 2, 0).squeeze(2).reshape(4, 4, 32), 200
    )


@micro("chain of 4 indexes, recorded", target=1.0, operations=200)
def indexes(lib: Any) -> Work:
    x = uniform(lib, 8, 8, 16, requires_grad=True)
    return repeated(lambda: x[1:][..., ::2][0][:, None], 200)


@micro("`x[i] = v`, a number", target=1.0, operations=1000)
def setitem(lib: Any) -> Work:
    x = uniform(lib, 1000)

    def body(prepared: None) -> None:
        for i in range(1000):
            x[i] = 0.5

    return nothing, body


@micro("`x[i] = v`, a row", target=1.0, operations=1000)
def setitem_row(lib: Any) -> Work:
    x, row = uniform(lib, 1000, 8), uniform(lib, 8)

    def body(prepared: None) -> None:
        for i in range(1000):
            x[i] = row

    return nothing, body


@micro("`y[i] = v`, recorded, and its backward", target=1.0, operations=100)
def setitem_recorded(lib: Any) -> Work:
    x, value = uniform(lib, 100, requires_grad=True), uniform(lib, requires_grad=True)

    def body(prepared: None) -> None:
        x.grad = value.grad = None
        y = x * 1.0
        for i in range(100):
            y[i] = value
        y.sum().backward()

    return nothing, body


# --- gradients --------------------------------------------------------------------------------------------------------


def operators_on_16(lib: Any, count: int) -> Work:
    """Return the work of a chain of `count` operators, a multiple of four, forward and backward."""
    x = uniform(lib, 16, requires_grad=True)
    factor, summand, shift = (uniform(lib, 16) for _ in range(3))

    def body(prepared: None) -> None:
        x.grad = None
        y = x
        for _ in range(count // 4):
            y = y * factor
            y = y + summand
            y = y.tanh()
            y = y - shift
        y.sum().backward()

    return nothing, body


@micro("chain of 1,000 operators on 16 elements, forward and backward", target=0.7)
def chain(lib: Any) -> Work:
    return operators_on_16(lib, 1000)


@micro("backward of one node", target=0.3, operations=200)
def one_node(lib: Any) -> Work:
    x = lib.tensor(2.0, requires_grad=True)
    factor = lib.tensor(3.0)

    def prepare() -> list[Any]:
        return [x * factor for _ in range(200)]

    def body(products: list[Any]) -> None:
        for product in products:
            product.backward()

    return prepare, body


@micro("backward of a tree of 10,000 adds", target=1.0)
def tree(lib: Any) -> Work:
    seed = lib.ones(16)

    def prepare() -> Any:
        level = [lib.ones(16, requires_grad=True) for _ in range(10_001)]
        while len(level) > 1:
            odd = level[-1:] if len(level) % 2 else []
            level = [left + right for left, right in zip(level[::2], level[1::2], strict=False)] + odd
        return level[0]

    def body(root: Any) -> None:
        root.backward(seed)

    return prepare, body


def small_loss(lib: Any) -> tuple[Any, Callable[[], Any]]:
    """Return a weight and a loss of four operators that depends on it."""
    x, weight = uniform(lib, 8, 8), uniform(lib, 8, 8, requires_grad=True)
    return weight, lambda: ((x @ weight).tanh() * x).sum()


@micro("`autograd.grad` of a graph of 4 nodes, with its forward", target=0.9, operations=200)
def grad_small(lib: Any) -> Work:
    weight, loss = small_loss(lib)
    return repeated(lambda: lib.autograd.grad(loss(), weight), 200)


@micro("the same with `create_graph=True`", target=1.0, operations=200)
def grad_create_graph(lib: Any) -> Work:
    weight, loss = small_loss(lib)
    return repeated(lambda: lib.autograd.grad(loss(), weight, create_graph=True), 200)


@micro("the same in anomaly mode", target=1.0, operations=100)
def anomaly_mode(lib: Any) -> Work:
    weight, loss = small_loss(lib)

    def body(prepared: None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says that the mode is on
            with lib.autograd.detect_anomaly():
                for _ in range(100):
                    lib.autograd.grad(loss(), weight)

    return nothing, body


@micro("4 linear layers of 8 with full backward hooks", target=0.8, operations=50)
def full_backward_hooks(lib: Any) -> Work:
    model = models.mlp(lib, 8, 8, 8, 8, 8)
    x = uniform(lib, 4, 8, requires_grad=True)
    for layer in model:
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    return repeated(lambda: model(x).sum().backward(), 50)


@micro("training step of an MLP 8-16-16-4, batch 4", target=1.0, operations=50)
def small_step(lib: Any) -> Work:
    model = models.mlp(lib, 8, 16, 16, 4)
    x, labels = uniform(lib, 4, 8), lib.tensor([0, 1, 2, 3])
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    return repeated(step, 50)


# --- optimizers -------------------------------------------------------------------------------------------------------


def optimizer_step(lib: Any, name: str, **options: Any) -> Work:
    """Return the work of an optimizer's step over 200 small parameters."""
    parameters = [uniform(lib, 8, 8, requires_grad=True) for _ in range(200)]
    for parameter in parameters:
        parameter.grad = uniform(lib, 8, 8)
    optimizer = getattr(lib.optim, name)(parameters, lr=1e-6, **options)
    return repeated(optimizer.step, 5)


@micro("SGD over 200 parameters of 8×8", target=1.0, operations=5)
def sgd_200(lib: Any) -> Work:
    return optimizer_step(lib, "SGD")


@micro("SGD with momentum over 200 parameters of 8×8", target=1.0, operations=5)
def momentum_200(lib: Any) -> Work:
    return optimizer_step(lib, "SGD", momentum=0.9)


@micro("Adam over 200 parameters of 8×8", target=1.0, operations=5)
def adam_200(lib: Any) -> Work:
    return optimizer_step(lib, "Adam")


@micro("AdamW over 200 parameters of 8×8", target=1.0, operations=5)
def adamw_200(lib: Any) -> Work:
    return optimizer_step(lib, "AdamW")


@micro("RMSprop over 200 parameters of 8×8", target=1.0, operations=5)
def rmsprop_200(lib: Any) -> Work:
    return optimizer_step(lib, "RMSprop")
