"""Draws of further distributions: moments, refusals, and the derivative of gamma variables."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.declaration.registry import OPERATORS
from gradscope.runtime.ops.random import random_distributions
from tests.side_by_side import same_complaint

COUNT = 40_000


def test_their_moments() -> None:
    gs.manual_seed(0)
    x = gs.empty(COUNT, dtype=gs.float64)
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.01
    assert abs(x.log().std().item() - 0.25) < 0.01
    assert abs(x.geometric_(0.25).mean().item() - 4) < 0.1
    assert x.min().item() == 1
    assert abs(x.cauchy_(3.0, 2.0).median().item() - 3) < 0.1
    drawn = gs.binomial(gs.full((COUNT,), 10.0), gs.tensor(0.3).expand(COUNT))
    assert abs(drawn.mean().item() - 3) < 0.05
    assert abs(drawn.var().item() - 2.1) < 0.1
    assert abs(random_distributions.standard_gamma(gs.full((COUNT,), 2.5)).mean().item() - 2.5) < 0.05


def test_filling_counts_as_a_write() -> None:
    x = gs.ones(3)
    for fill in (lambda: x.log_normal_(), lambda: x.geometric_(0.5), lambda: x.cauchy_()):
        before = x._version
        fill()
        assert x._version == before + 1


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.ones(2).log_normal_(0, -1),
        lambda m: m.ones(2).geometric_(1.5),
        lambda m: m.ones(2).cauchy_(0, 0),
    ],
    ids=["log_normal", "geometric", "cauchy"],
)
def test_wrong_parameters(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.0, 50.0, 2e4])
def test_the_derivative_of_gamma_variables_agrees(torch: Any, shape: float) -> None:
    values = numpy.random.default_rng(0).gamma(shape, size=200)
    alphas = numpy.full(200, shape)
    mine = random_distributions._standard_gamma_grad(numpy, alphas, values)
    # PyTorch's approximation is good to three digits.
    theirs = torch._standard_gamma_grad(torch.tensor(alphas), torch.tensor(values)).numpy()
    numpy.testing.assert_allclose(mine, theirs, rtol=3e-3)


def test_the_derivative_of_gamma_variables_is_exact_for_exponential_ones() -> None:
    # Of shape 1, z = -log u: the derivative is -(dP/da) / exp(-z), with dP/da from the series of the incomplete gamma.
    z, step = 0.7, 1e-5

    def lower(a: float) -> float:
        terms = (math.exp(a * math.log(z) - z - math.lgamma(a + 1 + n) + n * math.log(z)) for n in range(60))
        return sum(terms)

    expected = -(lower(1 + step) - lower(1 - step)) / (2 * step) / math.exp(-z)
    found = random_distributions._standard_gamma_grad(numpy, numpy.ones(1), numpy.array([z]))
    assert abs(found[0] / expected - 1) < 1e-8


def test_gamma_variables_pass_gradients_on() -> None:
    gs.manual_seed(0)
    shape = gs.full((COUNT,), 2.0, requires_grad=True)
    random_distributions.standard_gamma(shape).mean().backward()
    assert shape.grad is not None
    # The mean of a gamma variable is its shape.
    assert abs(shape.grad.sum().item() - 1) < 0.02


def test_the_derivative_runs_on_another_array_module(other_device: str) -> None:
    shape, drawn = (gs.from_numpy(numpy.array(values)).to(other_device) for values in ([0.5, 2.0], [0.3, 2.5]))
    found = OPERATORS["standard_gamma_grad"].function(shape, drawn)
    assert found.device == shape.device
    expected = random_distributions._standard_gamma_grad(numpy, numpy.array([0.5, 2.0]), numpy.array([0.3, 2.5]))
    numpy.testing.assert_allclose(found.cpu().numpy(), expected)
