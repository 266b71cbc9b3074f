"""Normalisations of large arrays: compiled, in NumPy's form, and in PyTorch; their derivatives of both orders."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels import threads
from tests.runtime.kernels.both_forms import both


def channels_last(x):
    return x.permute(0, 2, 3, 1).contiguous()


def batch_of_vectors(F, x, w, b):
    last = channels_last(x)
    y = F.batch_norm(last.reshape(-1, x.shape[1]), None, None, w, b, True)
    return y.reshape(last.shape).permute(0, 3, 1, 2)


NORMS = {
    "layer": lambda F, x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
    "layer of two dimensions": lambda F, x, w, b: F.layer_norm(x, x.shape[-2:], w, b),
    "batch": lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch, channels last": lambda F, x, w, b: F.batch_norm(
        channels_last(x).permute(0, 3, 1, 2), None, None, w, b, True
    ),
    "batch of vectors": batch_of_vectors,
    "group": lambda F, x, w, b: F.group_norm(x, 4, w, b),
}
SHAPES = [(16, 8, 40, 40), (3, 8, 7, 1000), (1, 8, 1, 4000), (2000, 8, 4, 4)]
CASES = [(name, shape) for name in NORMS for shape in SHAPES]


def parameters(name, shape, given=True):
    rng = np.random.default_rng(0)
    of = {"layer": shape[-1:], "layer of two dimensions": shape[-2:]}.get(name, shape[1:2])
    x = (rng.standard_normal(shape) * 3 + 2).astype("f")
    g = rng.standard_normal(shape).astype("f")
    weights = [rng.standard_normal(of).astype("f") for _ in range(2)] if given else []
    return x, g, weights


def run(lib, name, x, g, weights):
    """Return the normalised input, and the gradients of it, the weight and the bias."""
    leaves = [lib.tensor(a, requires_grad=True) for a in (x, *weights)]
    y = NORMS[name](lib.nn.functional, leaves[0], *(leaves[1:] or (None, None)))
    return [part.detach().numpy() for part in (y, *lib.autograd.grad(y, leaves, lib.tensor(g)))]


def close(ours, theirs, tolerance=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.nanmax(abs(other)))


@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["weights", "plain"])
def test_both_forms_agree(name, shape, given):
    close(*both("normalization_loops", run, gs, name, *parameters(name, shape, given)))


@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
def test_they_are_pytorchs(torch, name, shape):
    expected = run(torch, name, *parameters(name, shape))
    for form in both("normalization_loops", run, gs, name, *parameters(name, shape)):
        close(form, expected)


@pytest.mark.parametrize("name", NORMS)
def test_doubles_are_pytorchs(torch, name):
    x, g, weights = parameters(name, SHAPES[0])
    given = [x.astype("d"), g.astype("d"), [w.astype("d") for w in weights]]
    close(run(gs, name, *given), run(torch, name, *given), 1e-12)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_spreads_as_in_pytorch(torch, name, value):
    x, g, weights = parameters(name, SHAPES[0])
    x[0, 0, 0, 0] = value
    expected = run(torch, name, x, g, weights)
    for form in both("normalization_loops", run, gs, name, x, g, weights):
        for one, other in zip(form, expected, strict=True):
            np.testing.assert_array_equal(np.isnan(one), np.isnan(other))


@pytest.mark.parametrize("name", NORMS)
def test_only_what_is_asked_for_gets_a_gradient(torch, name):
    x, g, weights = parameters(name, SHAPES[0])

    def gradients(lib, which):
        leaves = [lib.tensor(a, requires_grad=i == which) for i, a in enumerate((x, *weights))]
        NORMS[name](lib.nn.functional, *leaves).backward(lib.tensor(g))
        assert [leaf.grad is not None for leaf in leaves] == [i == which for i in range(3)]
        return [leaves[which].grad.numpy()]

    for which in range(3):
        close(gradients(gs, which), gradients(torch, which))


@pytest.mark.parametrize("name", NORMS)
def test_threads_give_what_one_gives(name):
    given = parameters(name, (32, 8, 80, 80))
    before = threads.count()
    threads.set_count(1)
    alone = run(gs, name, *given)
    threads.set_count(3)
    try:
        for one, other in zip(run(gs, name, *given), alone, strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        threads.set_count(before)


@pytest.mark.parametrize("name", NORMS)
def test_a_second_derivative_is_that_of_the_formula(torch, name):
    x, g, weights = parameters(name, (8, 8, 20, 20))

    def second(lib):
        leaves = [lib.tensor(a.astype("d"), requires_grad=True) for a in (x, *weights)]
        y = NORMS[name](lib.nn.functional, *leaves)
        first = lib.autograd.grad(y, leaves, lib.tensor(g.astype("d")), create_graph=True)
        total = sum((part * part).sum() for part in first)
        return [part.numpy() for part in lib.autograd.grad(total, leaves, allow_unused=True) if part is not None]

    close(second(gs), second(torch), 1e-9)


def test_running_statistics_are_pytorchs(torch):
    x, g, _ = parameters("batch", SHAPES[0])

    def trained(lib):
        norm = lib.nn.BatchNorm2d(8)
        for _ in range(3):
            norm(lib.tensor(x))
        norm.eval()
        leaf = lib.tensor(x, requires_grad=True)
        norm(leaf).backward(lib.tensor(g))
        statistics = [norm.running_mean, norm.running_var, leaf.grad, norm.weight.grad, norm.bias.grad]
        return [part.detach().numpy() for part in statistics]

    expected = trained(torch)
    for form in both("normalization_loops", trained, gs):
        close(form, expected)
