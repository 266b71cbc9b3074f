"""Compiled rows of attention, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both

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


def result_and_gradients(lib, arrays, **options):
    *inputs, g = [lib.tensor(a) for a in arrays]
    for leaf in inputs:
        leaf.requires_grad_()
    given = {n: lib.tensor(o) if isinstance(o, np.ndarray) else o for n, o in options.items()}
    output = lib.nn.functional.scaled_dot_product_attention(*inputs, **given)
    return [part.detach().numpy() for part in (output, *lib.autograd.grad(output, inputs, g))]


def close(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_both_forms_are_pytorchs(torch, options):
    arrays = operands()
    expected = result_and_gradients(torch, arrays, **options)
    for form in both("attention_loops", lambda: result_and_gradients(gs, arrays, **options)):
        close(form, expected)


@pytest.mark.parametrize(("queries", "keys"), [(300, 300), (100, 30), (30, 100), (1, 3000)])
def test_causal_attention_of_all_lengths(torch, queries, keys):
    arrays = operands(queries, keys, heads=8)
    expected = result_and_gradients(torch, arrays, is_causal=True)
    for form in both("attention_loops", lambda: result_and_gradients(gs, arrays, is_causal=True)):
        close(form, expected)


def test_large_scores_keep_their_differences(torch):
    """Scores of 1e4, of which the largest leaves nothing to the others or shares with an equal one."""
    query, key, value, g = operands()
    arrays = query * 30, key * 30, value, g
    key[:, :, 1] = key[:, :, 0]
    expected = result_and_gradients(torch, arrays)[0]
    for output, *gradients in both("attention_loops", lambda: result_and_gradients(gs, arrays)):
        np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-4)
        assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_nan_and_infinity_stay_in_their_queries():
    arrays = operands()
    arrays[0][0, 0, 3, 0], arrays[0][0, 0, 40, 2] = np.nan, np.inf
    for output, g_query, *_ in both("attention_loops", lambda: result_and_gradients(gs, arrays, is_causal=True)):
        lost = np.isnan(output).any(3)
        assert np.argwhere(lost).tolist() == [[0, 0, 3], [0, 0, 40]]
        assert np.isnan(g_query[0, 0, [3, 40]]).all()
        assert np.isfinite(np.delete(g_query[0, 0], [3, 40], axis=0)).all()


def test_a_second_derivative_is_pytorchs(torch):
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
    close(second(gs), expected)
