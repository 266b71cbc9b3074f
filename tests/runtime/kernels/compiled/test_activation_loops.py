"""Compiled activation functions and their derivatives, beside NumPy's forms and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.nn import functional
from tests.runtime.kernels.both_forms import both

CALLS = {
    "relu": lambda F, x: F.relu(x),
    "threshold": lambda F, x: F.threshold(x, 0.5, 2.0),
    "gelu": lambda F, x: F.gelu(x),
    "gelu_tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "silu": lambda F, x: F.silu(x),
    "sigmoid": lambda F, x: x.sigmoid(),
    "tanh": lambda F, x: x.tanh(),
    "logsigmoid": lambda F, x: F.logsigmoid(x),
    "softplus": lambda F, x: F.softplus(x),
    "softplus of 2x": lambda F, x: F.softplus(x, 2.0, 15.0),
    "mish": lambda F, x: F.mish(x),
    "elu": lambda F, x: F.elu(x, 0.7),
    "selu": lambda F, x: F.selu(x),
    "celu": lambda F, x: F.celu(x, 0.7),
    "celu of a negative number": lambda F, x: F.celu(x, -3.0),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.2),
    "hardswish": lambda F, x: F.hardswish(x),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -0.5, 0.7),
    "clamp": lambda F, x: x.clamp(-0.5, 0.7),
    "clamp from below": lambda F, x: x.clamp_min(-0.5),
    "clamp from above": lambda F, x: x.clamp(max=0.7),
    "clamp where the limits cross": lambda F, x: x.clamp(0.7, -0.5),
    "clamp with NaN": lambda F, x: x.clamp(float("nan"), 1.0),
    "huber": lambda F, x: F.huber_loss(x, x.detach() * 0.5, reduction="none", delta=0.7),
    "smooth_l1": lambda F, x: F.smooth_l1_loss(x, x.detach() * 0.5, reduction="none", beta=0.7),
    "hardshrink": lambda F, x: F.hardshrink(x, 0.3),
    "softshrink": lambda F, x: F.softshrink(x, 0.3),
    "rrelu": lambda F, x: F.rrelu(x),
}
KINKS = {"relu", "threshold", "leaky_relu", "rrelu", "hardswish", "hardsigmoid", "hardtanh", "hardshrink", "softshrink"}
KINKS |= {"huber", "smooth_l1"} | {name for name in CALLS if "clamp" in name}
TWICE = {name: call for name, call in CALLS.items() if name not in KINKS}
TOLERANCE = 1e-5  # 1 + tanh(u) cancels for negative u, and is times numbers of up to 30
SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 1e-30, 1.0, -1.0, 88.5, -88.5, 200.0, -200.0, 3e38, -3e38, np.inf, np.nan]


def numbers():
    """Return numbers of all magnitudes, with each special one among them, and gradients for them."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((150, 200)) * rng.choice([0.01, 1, 5, 30], (150, 200))).astype("f")
    x.reshape(-1)[: 7 * len(SPECIAL) : 7] = SPECIAL
    return x, rng.standard_normal(x.shape).astype("f")


def result_and_gradient(lib, F, call, x, g):
    x = lib.tensor(x, requires_grad=True)
    y = call(F, x)
    return [part.detach().numpy() for part in (y, *lib.autograd.grad(y, x, lib.tensor(g)))]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_forms_agree(call):
    compiled, plain = both("activation_loops", result_and_gradient, gs, functional, call, *numbers())
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=TOLERANCE)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_they_are_pytorchs(torch, call):
    expected = result_and_gradient(torch, torch.nn.functional, call, *numbers())
    not_nan = ~np.isnan(numbers()[0])
    for form in both("activation_loops", result_and_gradient, gs, functional, call, *numbers()):
        for one, other in zip(form, expected, strict=True):
            # Its gelu of infinity is NaN; whether NaN is beyond a kink depends on where in a vector it stands.
            known = np.isfinite(other) & not_nan
            np.testing.assert_allclose(one[known], other[known], rtol=2e-6, atol=TOLERANCE)


@pytest.mark.parametrize("call", TWICE.values(), ids=TWICE)
def test_a_second_derivative_is_that_of_the_formula(torch, call):
    def second(lib, F, x, g):
        x = lib.tensor(x, requires_grad=True)
        (first,) = lib.autograd.grad(call(F, x), x, lib.tensor(g), create_graph=True)
        return lib.autograd.grad(first.sum(), x)[0].numpy()

    x, g = numbers()
    x = np.clip(np.nan_to_num(x), -4, 4)
    np.testing.assert_allclose(second(gs, functional, x, g), second(torch, torch.nn.functional, x, g), atol=1e-5)


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_of_all_and_its_gradients_are_pytorchs(torch, name, reduction):
    x, y = np.random.default_rng(0).standard_normal((2, 70, 300)).astype("f") * 3
    x[0, :3] = np.nan, np.inf, -np.inf

    def run(lib, F):
        leaves = [lib.tensor(array, requires_grad=True) for array in (x, y)]
        gradients = lib.autograd.grad(getattr(F, name)(*leaves, reduction=reduction) * 3, leaves)
        finite = getattr(F, name)(*[leaf[1:] for leaf in leaves], reduction=reduction)
        return [part.detach().numpy() for part in (finite, *gradients)]

    expected = run(torch, torch.nn.functional)
    for form in both("activation_loops", run, gs, functional):
        for one, other in zip(form, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-9)
