"""Compiled softmax, its logarithm and their derivatives, beside NumPy's forms and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both

NAMES = ["softmax", "log_softmax"]
SHAPES = [(300, 64), (4, 8, 16, 40), (7, 3001), (1, 20_000), (20_000, 1), (6000, 3)]


def numbers(shape):
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) * 5).astype("f"), rng.standard_normal(shape).astype("f")


def special_rows():
    """Return rows with infinities, NaN of both signs, masked parts and numbers that only their largest keeps finite."""
    x, g = numbers((2000, 12))
    x[:6, 3] = np.inf, -np.inf, np.nan, -np.nan, 3e38, -3e38
    x[6], x[7], x[8] = -np.inf, np.inf, 0
    x[9, 4:] = -np.inf
    return x, g


def result_and_gradient(lib, name, x, g):
    x = lib.tensor(x, requires_grad=True)
    y = getattr(lib.nn.functional, name)(x, dim=-1)
    return [part.detach().numpy() for part in (y, *lib.autograd.grad(y, x, lib.tensor(g)))]


def close(ours, theirs):
    """Compare up to rounding, which grows with the sums that are taken from the numbers of a row."""
    for one, other in zip(ours, theirs, strict=True):
        largest = abs(other[abs(other) < 1e30]).max()
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * largest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_forms_agree(name, shape):
    close(*both("softmax_loops", result_and_gradient, gs, name, *numbers(shape)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_they_are_pytorchs(torch, name, shape):
    expected = result_and_gradient(torch, name, *numbers(shape))
    for form in both("softmax_loops", result_and_gradient, gs, name, *numbers(shape)):
        close(form, expected)


@pytest.mark.parametrize("name", NAMES)
def test_special_rows_are_pytorchs(torch, name):
    expected = result_and_gradient(torch, name, *special_rows())
    for form in both("softmax_loops", result_and_gradient, gs, name, *special_rows()):
        close(form, expected)


def test_a_masked_element_has_no_weight():
    x = special_rows()[0]
    for weights in both("softmax_loops", lambda: gs.softmax(gs.tensor(x), -1).numpy()):
        assert not weights[9, 4:].any()
        np.testing.assert_allclose(weights[9].sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_another_order_and_an_expanded_gradient(torch, name):
    x, _ = numbers((40, 600))

    def run(lib):
        leaf = lib.tensor(x, requires_grad=True)
        y = getattr(lib.nn.functional, name)(leaf.t(), dim=-1)
        (y * y).sum().backward()
        return [y.detach().numpy(), leaf.grad.numpy()]

    expected = run(torch)
    for form in both("softmax_loops", run, gs):
        close(form, expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_derivative_is_that_of_the_formula(torch, name):
    x, g = numbers((300, 64))

    def second(lib):
        leaf = lib.tensor(x, requires_grad=True)
        y = getattr(lib.nn.functional, name)(leaf, dim=1)
        (first,) = lib.autograd.grad(y, leaf, lib.tensor(g), create_graph=True)
        nodes.append(first.grad_fn.name())
        return [lib.autograd.grad((first * first).sum(), leaf)[0].numpy()]

    nodes: list[str] = []
    close(second(gs), second(torch))
    assert nodes[0] == nodes[1]


def test_a_probability_close_to_one_keeps_the_digits_of_its_logarithm():
    x = np.zeros((2000, 12), "f") + 77.5
    x[:, 1:] = 69.25
    expected = -np.log1p(11 * np.exp(-8.25))
    for logs in both("softmax_loops", lambda: gs.log_softmax(gs.tensor(x), -1).numpy()):
        np.testing.assert_allclose(logs[:, 0], expected, rtol=5e-4)
