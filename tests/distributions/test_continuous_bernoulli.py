"""Numbers between 0 and 1, around a half, where the closed forms have no value."""

from __future__ import annotations

import math

import numpy
import pytest

import gradscope as gs

# On both sides of the limits of the series, and far from them.
LOGITS = [-40.0, -3.0, -0.0041, -0.0039, -1e-6, 0.0, 1e-6, 0.0039, 0.0041, 3.0, 40.0]


def _made(requires_grad: bool = False) -> gs.distributions.ContinuousBernoulli:
    logits = gs.tensor(LOGITS, dtype=gs.float64, requires_grad=requires_grad)
    return gs.distributions.ContinuousBernoulli(logits=logits)


def _midpoints(count: int = 200_001) -> gs.Tensor:
    return ((gs.arange(count, dtype=gs.float64) + 0.5) / count).unsqueeze(-1)


def test_density_and_moments_agree_with_sums_on_both_sides_of_the_limits() -> None:
    numbers, grid = _made(), _midpoints()
    log_density = numbers.log_prob(grid)
    weights = log_density.exp() / grid.shape[0]
    numpy.testing.assert_allclose(weights.sum(0).numpy(), 1, rtol=1e-8)
    mean = (weights * grid).sum(0)
    numpy.testing.assert_allclose(numbers.mean.numpy(), mean.numpy(), rtol=1e-7)
    numpy.testing.assert_allclose(numbers.variance.numpy(), (weights * (grid - mean) ** 2).sum(0).numpy(), rtol=1e-6)
    entropy = -(weights * log_density).sum(0)
    numpy.testing.assert_allclose(numbers.entropy().numpy(), entropy.numpy(), rtol=1e-6, atol=1e-9)


def test_the_distribution_function_is_the_sum_of_the_density_and_has_its_inverse() -> None:
    numbers = _made()
    grid = _midpoints(1001)
    shares = numbers.cdf(grid)
    numpy.testing.assert_allclose(numbers.cdf(gs.zeros(1, dtype=gs.float64)).numpy(), 0, atol=1e-15)
    numpy.testing.assert_allclose(numbers.cdf(gs.ones(1, dtype=gs.float64)).numpy(), 1, atol=1e-12)
    slope = (numbers.cdf(grid + 1e-6) - numbers.cdf(grid - 1e-6)) / 2e-6
    numpy.testing.assert_allclose(slope[1:-1].numpy(), numbers.log_prob(grid).exp()[1:-1].numpy(), rtol=1e-5, atol=1e-7)
    inside = (shares > 1e-6) & (shares < 1 - 1e-6)
    numpy.testing.assert_allclose((numbers.icdf(shares) - grid)[inside].numpy(), 0, atol=1e-8)


def test_derivatives_by_the_parameter_are_smooth_over_the_limits() -> None:
    numbers = _made(requires_grad=True)
    logits = numbers.logits
    (slope,) = gs.autograd.grad(numbers.mean.sum(), logits)
    numpy.testing.assert_allclose(slope.numpy(), numbers.variance.detach().numpy(), rtol=1e-6)
    (of_density,) = gs.autograd.grad(numbers.log_prob(gs.tensor(0.3)).sum(), logits)
    numpy.testing.assert_allclose(of_density.numpy(), (0.3 - numbers.mean).detach().numpy(), rtol=1e-6, atol=1e-7)
    (of_samples,) = gs.autograd.grad(numbers.icdf(gs.tensor(0.3, dtype=gs.float64)).sum(), logits)
    assert of_samples.isfinite().all()
    middle = of_samples[2:9]
    numpy.testing.assert_allclose(middle.numpy(), 0.5 * 0.3 * 0.7, rtol=1e-2)


def test_single_precision_neither_overflows_nor_is_nan() -> None:
    logits = gs.tensor([-1e4, -100.0, 0.0, 100.0, 1e4], requires_grad=True)
    numbers = gs.distributions.ContinuousBernoulli(logits=logits)
    value = gs.tensor(0.25)
    answers = (numbers.log_prob(value), numbers.mean, numbers.variance, numbers.cdf(value), numbers.icdf(value))
    for answer in answers:
        assert answer.isfinite().all()
        (slope,) = gs.autograd.grad(answer.sum(), logits, retain_graph=True)
        assert slope.isfinite().all()


def test_limits_are_kept_and_the_probability_is_checked_before_it_is_kept_from_the_ends() -> None:
    wide = gs.distributions.ContinuousBernoulli(gs.tensor([0.45, 0.7]), lims=(0.4, 0.6))
    near, _, _ = wide.expand((3, 2))._split(wide.expand((3, 2)).logits)
    assert near.tolist() == [[True, False]] * 3
    assert 0 < gs.distributions.ContinuousBernoulli(gs.tensor(0.0)).probs.item() < 1e-6
    assert gs.distributions.ContinuousBernoulli(gs.tensor([0.2, 0.3])).param_shape == (2,)
    with pytest.raises(ValueError, match="Expected parameter probs"):
        gs.distributions.ContinuousBernoulli(gs.tensor(1.5))
    assert math.isclose(gs.distributions.ContinuousBernoulli(0.5).log_prob(gs.tensor(0.1)).item(), 0, abs_tol=1e-6)
