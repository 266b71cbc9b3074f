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


# --- attention -------------------------------------------------------------------------------------------------------

UNSEEN = np.zeros((72, 72), "f")
UNSEEN[5], UNSEEN[:, 7], UNSEEN[60:, 30:] = -np.inf, -np.inf, -1e30
OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": UNSEEN},
    "bool mask": {"attn_mask": UNSEEN == 0},
    "scale": {"scale": 0.4, "is_causal": True},
    "negative scale": {"scale": -0.5},
}


def operands(queries=72, keys=72, heads=4):
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((2, heads, n, 16)) * 2).astype("f") for n in (queries, keys, keys, queries)]


def attended(lib, arrays, **options):
    *inputs, g = [lib.tensor(a) for a in arrays]
    for leaf in inputs:
        leaf.requires_grad_()
    given = {n: lib.tensor(o) if isinstance(o, np.ndarray) else o for n, o in options.items()}
    output = lib.nn.functional.scaled_dot_product_attention(*inputs, **given)
    return [part.detach().numpy() for part in (output, *lib.autograd.grad(output, inputs, g))]


def all_close(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_both_forms_of_attention_are_pytorchs(torch, options):
    arrays = operands()
    expected = attended(torch, arrays, **options)
    for form in both("softmax_loops", lambda: attended(gs, arrays, **options)):
        all_close(form, expected)


@pytest.mark.parametrize(("queries", "keys"), [(300, 300), (100, 30), (30, 100), (1, 3000)])
def test_causal_attention_of_all_lengths(torch, queries, keys):
    arrays = operands(queries, keys, heads=8)
    expected = attended(torch, arrays, is_causal=True)
    for form in both("softmax_loops", lambda: attended(gs, arrays, is_causal=True)):
        all_close(form, expected)


def test_large_scores_keep_their_differences(torch):
    """Scores of 1e4, of which the largest leaves nothing to the others or shares with an equal one."""
    query, key, value, g = operands()
    arrays = query * 30, key * 30, value, g
    key[:, :, 1] = key[:, :, 0]
    expected = attended(torch, arrays)[0]
    for output, *gradients in both("softmax_loops", lambda: attended(gs, arrays)):
        np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-4)
        assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_nan_and_infinity_stay_in_their_queries():
    arrays = operands()
    arrays[0][0, 0, 3, 0], arrays[0][0, 0, 40, 2] = np.nan, np.inf
    for output, g_query, *_ in both("softmax_loops", lambda: attended(gs, arrays, is_causal=True)):
        lost = np.isnan(output).any(3)
        assert np.argwhere(lost).tolist() == [[0, 0, 3], [0, 0, 40]]
        assert np.isnan(g_query[0, 0, [3, 40]]).all()
        assert np.isfinite(np.delete(g_query[0, 0], [3, 40], axis=0)).all()


def test_a_second_derivative_of_attention_is_pytorchs(torch):
    arrays = [a / 3 for a in operands()]

    def second(lib):
        *inputs, g = [lib.tensor(a) for a in arrays]
        for leaf in inputs:
            leaf.requires_grad_()
        output = lib.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
        first = lib.autograd.grad(output, inputs, g, create_graph=True)
        return [a.numpy() for a in lib.autograd.grad(sum((a * a).sum() for a in first), inputs)]

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = second(torch)
    all_close(second(gs), expected)
