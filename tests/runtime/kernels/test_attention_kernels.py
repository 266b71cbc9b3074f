"""Attention in blocks, beside its formula on whole arrays; the block sizes are made small."""

import tracemalloc

import numpy as np
import pytest

from gradscope.runtime.kernels import attention_kernels as kernels
from tests.runtime.kernels.both_forms import numpy_alone


def whole(query, key, value, mask, causal, scale):
    """Return the weights of all keys, and the formula's output."""
    scores = query @ key.swapaxes(2, 3) * scale
    if causal:
        scores[..., ~np.tri(*scores.shape[2:], dtype=bool)] = -np.inf
    if mask is not None:
        scores = scores + mask
    powers = np.exp(scores)
    total = powers.sum(3, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return weights, weights @ value


def gradients(g, query, key, value, weights, scale):
    products = g @ value.swapaxes(2, 3)
    slopes = weights * (products - (weights * products).sum(3, keepdims=True)) * scale
    return slopes @ key, slopes.swapaxes(2, 3) @ query, weights.swapaxes(2, 3) @ g


@pytest.fixture(params=[1, 7, 40, 100, 1 << 16])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(kernels, "_SCORES", request.param)
    monkeypatch.setattr(kernels, "_CAUSAL_QUERIES", 3)


def operands(queries, keys, layout="heads"):
    rng = np.random.default_rng(0)
    sizes = [(2, 3, n, 4) for n in (queries, keys, keys, queries)]
    if layout == "places":
        return [rng.standard_normal((b, n, h, e)).swapaxes(1, 2) for b, h, n, e in sizes]
    return [rng.standard_normal(size) for size in sizes]


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (8, 5), (4, 9), (1, 1)])
@pytest.mark.parametrize("layout", ["heads", "places"])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_give_what_whole_arrays_give(small_blocks, queries, keys, layout, causal):
    query, key, value, g = operands(queries, keys, layout)
    for mask in (None, np.where(np.arange(queries * keys).reshape(queries, keys) % 4 == 1, -np.inf, 0.25)):
        given = mask, causal, 0.4
        weights, expected = whole(query, key, value, *given)
        output, logsumexp = kernels.attend(query, key, value, *given)
        found = kernels.attend_backward(g, query, key, value, output, logsumexp, *given)
        np.testing.assert_allclose(output, expected, atol=1e-12)
        for one, other in zip(found, gradients(g, query, key, value, weights, 0.4), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        if min(queries, keys) > 1:
            assert {a.strides[1] < a.strides[2] for a in (output, *found)} == {layout == "places"}


def test_results_lie_in_memory_as_their_operands():
    """As PyTorch's do: a layer that merges the heads again then needs no copy."""
    operand = np.ones((5, 2, 3, 4)).transpose(1, 2, 0, 3)  # places first, as torch.nn.MultiheadAttention has them
    output, logsumexp = kernels.attend(operand, operand, operand, None, False, 1.0)
    found = kernels.attend_backward(operand, operand, operand, operand, output, logsumexp, None, False, 1.0)
    assert {a.strides for a in (output, *found)} == {operand.strides}


def test_a_query_that_sees_no_key_gives_nothing():
    query, key, value, g = operands(3, 3)
    mask = np.zeros((3, 3))
    mask[1] = -np.inf
    output, logsumexp = kernels.attend(query, key, value, mask, False, 1.0)
    assert not output[:, :, 1].any()
    assert not logsumexp[:, :, 1].any()
    assert not kernels.attend_backward(g, query, key, value, output, logsumexp, mask, False, 1.0)[0][:, :, 1].any()


def test_an_expanded_gradient_is_read():
    query, key, value, _ = operands(5, 5)
    output, logsumexp = kernels.attend(query, key, value, None, True, 1.0)
    ones = np.ones_like(output)
    for g in (np.broadcast_to(1.0, output.shape), np.broadcast_to(ones[..., :1], output.shape)):
        found = kernels.attend_backward(g, query, key, value, output, logsumexp, None, True, 1.0)
        for one, other in zip(
            found, kernels.attend_backward(ones, query, key, value, output, logsumexp, None, True, 1.0), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_memory_does_not_grow_with_the_square_of_the_length():
    query = np.zeros((1, 1, 2048, 8), "f")
    tracemalloc.start()
    try:
        with numpy_alone():
            output, logsumexp = kernels.attend(query, query, query, None, True, 1.0)
            kernels.attend_backward(query, query, query, query, output, logsumexp, None, True, 1.0)
        assert tracemalloc.get_traced_memory()[1] < 2048 * 2048
    finally:
        tracemalloc.stop()
