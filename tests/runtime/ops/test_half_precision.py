"""Half precision: sums, and what is made of them, are computed in single precision and rounded once."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

ONES = numpy.ones((4096, 3), numpy.float16)  # 2048 + 1 is 2048 in half precision
LARGE = numpy.array([[60000, 1], [60000, 2], [-60000, 3]], numpy.float16)  # 65504 is the largest number
VECTOR = numpy.array([300, 400], numpy.float16)


def functional(m: Any) -> Any:
    return m.nn.functional


REDUCTIONS = {
    "sum": lambda m, x: x.sum(0),
    "sum to a size": lambda m, x: x.sum_to_size(1, *x.shape[1:]),
    "mean": lambda m, x: x.mean(0),
    "mean of all": lambda m, x: x.mean(),
    "nansum": lambda m, x: x.nansum(0),
    "nanmean": lambda m, x: x.nanmean(0),
    "cumsum": lambda m, x: x.cumsum(0),
    "var": lambda m, x: x.var(0, correction=0),
    "std": lambda m, x: x.std(0, correction=0),
    "var and mean": lambda m, x: m.var_mean(x, 0, correction=0)[1],
    "norm": lambda m, x: m.linalg.vector_norm(x, dim=0),
    "3-norm": lambda m, x: m.linalg.vector_norm(x, 3, dim=0),
    "normalize": lambda m, x: functional(m).normalize(x, dim=0),
    "logsumexp": lambda m, x: x.logsumexp(0),
    "softmax": lambda m, x: x.softmax(0),
    "log_softmax": lambda m, x: x.log_softmax(0),
    "layer_norm": lambda m, x: functional(m).layer_norm(x, x.shape[-1:]),
    "l1_loss": lambda m, x: functional(m).l1_loss(x, x * 0),
    "rms_norm": lambda m, x: functional(m).rms_norm(x, x.shape[-1:], m.ones(x.shape[-1:], dtype=x.dtype)),
    "renorm": lambda m, x: x.reshape(x.shape[0], -1).renorm(2, 1, 1.0),
    "avg_pool": lambda m, x: functional(m).avg_pool2d(x.abs().reshape(1, 1, x.shape[0], -1), (x.shape[0], 1)),
    "adaptive_avg_pool": lambda m, x: functional(m).adaptive_avg_pool2d(x.abs().reshape(1, 1, x.shape[0], -1), (1, 1)),
    "interpolate": lambda m, x: functional(m).interpolate(x.abs().reshape(1, 1, -1), size=2, mode="area"),
    "embedding_bag": lambda m, x: functional(m).embedding_bag(
        m.arange(x.shape[0])[None], x.reshape(x.shape[0], -1), mode="mean"
    ),
    "embedding with a largest norm": lambda m, x: functional(m).embedding(
        m.arange(x.shape[0]), x.reshape(x.shape[0], -1).clone(), max_norm=1.0
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("array", [ONES, LARGE, VECTOR], ids=["many", "large", "vector"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_rounded_once(torch: Any, name: str, array: Any) -> None:
    found, expected = (REDUCTIONS[name](m, m.tensor(array)).numpy() for m in (gs, torch))
    assert found.dtype == expected.dtype == numpy.float16
    numpy.testing.assert_allclose(found, expected, rtol=4e-3, atol=1e-6)


def _nll(m: Any, x: Any) -> Any:
    return functional(m).cross_entropy(x, m.zeros(x.shape[0], dtype=m.int64), m.ones(3, dtype=m.float16))


def _channels(m: Any, x: Any, weight: Any) -> Any:
    images = (x * 300).reshape(2, 3, -1)
    return functional(m).batch_norm(images, None, None, weight, training=True) * functional(m).group_norm(
        images, 3, weight
    )


GRADIENTS = {
    "an operand that was broadcast": (lambda m, x, b: x + b, (4096, 3), (3,)),
    "the bias of a layer": (lambda m, x, w, b: functional(m).linear(x, w, b), (4096, 3), (2, 3), (2,)),
    "a cross entropy": (lambda m, x: _nll(m, x), (4096, 3)),
    "channels": (_channels, (512, 3), (3,)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_rounded_once(torch: Any, name: str) -> None:
    function, *shapes = GRADIENTS[name]
    generator = numpy.random.default_rng(0)
    arrays = [generator.uniform(0.5, 1.5, shape).astype(numpy.float16) for shape in shapes]
    found = []
    for m in (gs, torch):
        tensors = [m.tensor(array, requires_grad=True) for array in arrays]
        value = function(m, *tensors)
        found.append([value.detach().numpy(), *(g.numpy() for g in m.autograd.grad(value.sum(), tensors))])
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype == numpy.float16
        numpy.testing.assert_allclose(mine, theirs, rtol=5e-3, atol=5e-2)


def test_the_gradient_of_the_bias_of_a_normalization_is_rounded_once() -> None:
    # PyTorch's is 2048 for each of its threads.
    bias = gs.ones(3, dtype=gs.float16, requires_grad=True)
    gs.nn.functional.layer_norm(gs.zeros(4096, 3, dtype=gs.float16), (3,), None, bias).sum().backward()
    assert bias.grad.tolist() == [4096, 4096, 4096]


def test_clipping_leaves_a_half_precision_gradient_its_direction() -> None:
    weight = gs.zeros(2, dtype=gs.float16, requires_grad=True)
    weight.grad = gs.tensor(VECTOR)
    norm = gs.nn.utils.clip_grad_norm_([weight], 5.0)
    assert float(norm) == 500.0
    assert weight.grad.tolist() == pytest.approx([3.0, 4.0], rel=1e-3)


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_integrals_are_scaled_once_they_are_summed(name: str) -> None:
    values = numpy.random.default_rng(0).uniform(0, 4, (3, 5000)).astype(numpy.float16)
    found = getattr(gs, name)(gs.tensor(values), dx=1e-7).numpy()
    exact = getattr(gs, name)(gs.tensor(values).double(), dx=1e-7).numpy()
    assert found.dtype == numpy.float16
    numpy.testing.assert_allclose(found, exact, rtol=1e-3, atol=6e-8)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["multi_margin_loss", "multilabel_margin_loss"])
def test_margin_losses_of_many_classes_are_rounded_once(name: str, reduction: str) -> None:
    scores = numpy.random.default_rng(0).normal(0, 2, (2, 3000)).astype(numpy.float16)
    labels = gs.full((2, 3000), -1)
    labels[:, :50] = gs.arange(50)
    target = gs.tensor([5, 7]) if name == "multi_margin_loss" else labels

    def value_and_gradient(kind: Any) -> list[Any]:
        x = gs.tensor(scores, dtype=kind, requires_grad=True)
        loss = getattr(gs.nn.functional, name)(x, target, reduction=reduction)
        loss.sum().backward()
        return [loss.detach().numpy(), x.grad.numpy()]

    for found, expected in zip(value_and_gradient(gs.float16), value_and_gradient(gs.float32)):
        assert found.dtype == numpy.float16
        numpy.testing.assert_allclose(found, expected.astype(numpy.float16), rtol=2e-3, atol=1e-6)


def test_a_squared_excess_may_be_larger_than_half_precision_holds() -> None:
    x = gs.zeros(1, 3000, dtype=gs.float16)
    x[0, 7] = 400.0
    assert gs.nn.functional.multi_margin_loss(x, gs.tensor([0]), p=2).item() == pytest.approx(401**2 / 3000 + 1, 1e-3)


NUMBERS = {
    "a product with a small number": lambda m, x: x * 1e-8,
    "a product with a large number": lambda m, x: 1e5 * x,
    "a quotient by a large number": lambda m, x: x / 300_000,
    "a large number's quotient": lambda m, x: 1e5 / x,
    "a product with a scalar tensor": lambda m, x: x * m.tensor(1e-8),
    "a quotient by a scalar tensor": lambda m, x: x / m.tensor(3e5),
    "a product in place": lambda m, x: x.clone().mul_(1e-8),
    "a quotient in place": lambda m, x: x.clone().div_(3e5),
    "a quotient into a tensor": lambda m, x: m.div(x.detach(), 3e5, out=m.zeros(4, dtype=m.float16)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_beside_half_precision_may_be_more_or_less_than_it_holds(torch: Any, name: str) -> None:
    def value_and_gradient(m: Any) -> list[Any]:
        x = m.tensor([60000.0, 3.0, 1000.0, 0.1], dtype=m.float16, requires_grad=True)
        result = NUMBERS[name](m, x)
        if result.requires_grad:
            result.backward(m.full_like(result, 1000.0))
        return [result.detach().numpy(), result.detach().numpy() if x.grad is None else x.grad.numpy()]

    for found, expected in zip(value_and_gradient(gs), value_and_gradient(torch)):
        assert found.dtype == numpy.float16
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.torch
def test_the_factor_of_half_precision_is_differentiated_twice(torch: Any) -> None:
    def second(m: Any) -> Any:
        x = m.tensor([3.0], dtype=m.float16, requires_grad=True)
        (first,) = m.autograd.grad((x * x / 1e5).sum() * 1e4, x, create_graph=True)
        return m.autograd.grad(first.sum(), x)[0].tolist()

    assert second(gs) == second(torch) == pytest.approx([0.2], 1e-2)


MEANS = {
    "mean": lambda m, x: x.mean(),
    "mean along a dimension": lambda m, x: x.mean(0),
    "var and mean": lambda m, x: m.var_mean(x)[1],
    "mse_loss": lambda m, x: functional(m).mse_loss(x, x.detach() - 1),
    "bce": lambda m, x: functional(m).binary_cross_entropy_with_logits(x, m.zeros_like(x)),
    "soft_margin_loss": lambda m, x: functional(m).soft_margin_loss(x, m.ones_like(x)),
    "hinge_embedding_loss": lambda m, x: functional(m).hinge_embedding_loss(x, m.ones_like(x)),
    "adaptive_avg_pool": lambda m, x: functional(m).adaptive_avg_pool1d(x[None], 1),
    "sum and number": lambda m, x: x.sum() / x.numel(),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", MEANS)
def test_the_gradient_of_a_mean_of_more_than_half_precision_counts(torch: Any, name: str) -> None:
    def gradient(m: Any) -> Any:
        x = m.full((100_000,), 0.5, dtype=m.float16, requires_grad=True)
        MEANS[name](m, x).sum().backward(m.tensor(500.0, dtype=m.float16))
        return x.grad.numpy()

    found, expected = gradient(gs), gradient(torch)
    assert found.dtype == numpy.float16
    assert expected.all()
    numpy.testing.assert_allclose(found, expected, rtol=1e-2)


def test_the_gradient_of_the_likelihood_of_many_examples() -> None:
    # PyTorch's own, on a CPU, is 0: its count of examples is of half precision.
    x = gs.zeros(100_000, 2, dtype=gs.float16, requires_grad=True)
    gs.nn.functional.cross_entropy(x, gs.zeros(100_000, dtype=gs.int64)).backward(gs.tensor(500.0, dtype=gs.float16))
    numpy.testing.assert_allclose(x.grad[0].numpy(), [-0.0025, 0.0025], rtol=1e-2)
