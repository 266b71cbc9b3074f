"""Wishart and LKJ distributions: what is not asked of every distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

MATRIX, OTHER = [[1.5, 0.3], [0.3, 0.8]], [[0.7, -0.2], [-0.2, 1.1]]


def _doubles(m: Any, *values: Any) -> list[Any]:
    return [m.tensor(value, dtype=m.float64) for value in values]


# --- LKJ --------------------------------------------------------------------------------------------------------------


def test_the_density_of_two_rows_is_that_of_one_correlation() -> None:
    # p(r) is proportional to (1 - r**2)**(concentration - 1), and the factor's one free element is r.
    for concentration in (0.5, 1.0, 3.0):
        r = (gs.arange(20_000, dtype=gs.float64) + 0.5) / 10_000 - 1
        factor = gs.zeros(20_000, 2, 2, dtype=gs.float64)
        factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1.0, r, (1 - r**2).sqrt()
        density = gs.distributions.LKJCholesky(2, gs.tensor(concentration).double()).log_prob(factor).exp()
        assert (density.sum() / 10_000).item() == pytest.approx(1, rel=1e-2)
        shape = (1 - r**2) ** (concentration - 1)
        numpy.testing.assert_allclose((density / shape).numpy(), (density[9999] / shape[9999]).item(), rtol=1e-6)


@pytest.mark.parametrize("concentration", [0.7, 1.0, 4.0])
def test_every_correlation_is_a_beta_variable(concentration: float) -> None:
    # Each of the correlations has the marginal Beta(a, a) on (-1, 1), a = concentration - 1 + dim / 2.
    gs.manual_seed(0)
    dim = 4
    factor = gs.distributions.LKJCholesky(dim, gs.tensor(concentration).double()).sample((20_000,))
    matrix = factor @ factor.mT
    expected = 1 / (2 * (concentration - 1 + dim / 2) + 1)
    for row in range(dim):
        for column in range(row):
            correlation = matrix[:, row, column]
            assert correlation.mean().item() == pytest.approx(0, abs=0.02)
            assert correlation.var().item() == pytest.approx(expected, rel=0.05)


def test_single_precision_samples_are_factors() -> None:
    gs.manual_seed(0)
    distribution = gs.distributions.LKJCholesky(8, gs.tensor([0.05, 1.0, 50.0]))
    drawn = distribution.sample((500,))
    assert drawn.dtype is gs.float32
    assert distribution.support.check(drawn).all()
    assert distribution.log_prob(drawn).isfinite().all()
    assert distribution.expand((2, 3)).sample().shape == (2, 3, 8, 8)


# --- Wishart ----------------------------------------------------------------------------------------------------------


def test_divergences_are_means_of_log_ratios_for_batches_too() -> None:
    gs.manual_seed(0)
    p, q = (
        gs.distributions.Wishart(*_doubles(gs, df, matrix))
        for df, matrix in (([4.5, 6.0], MATRIX), ([3.5, 7.0], OTHER))
    )
    drawn = p.sample((100_000,))
    found = gs.distributions.kl_divergence(p, q)
    numpy.testing.assert_allclose(found.numpy(), (p.log_prob(drawn) - q.log_prob(drawn)).mean(0).numpy(), rtol=0.03)
    numpy.testing.assert_allclose(p.entropy().numpy(), -p.log_prob(drawn).mean(0).numpy(), rtol=0.01)


@pytest.mark.torch
def test_divergences_are_those_of_pytorch(torch: Any) -> None:
    def divergence(m: Any) -> float:
        d = m.distributions
        return d.kl_divergence(d.Wishart(*_doubles(m, 4.5, MATRIX)), d.Wishart(*_doubles(m, 3.5, OTHER))).item()

    assert divergence(gs) == pytest.approx(divergence(torch), rel=1e-9)


def test_one_row_is_a_scaled_chi_squared_variable() -> None:
    df, variance, value = _doubles(gs, 3.0, [[2.0]], [[1.7]])
    found = gs.distributions.Wishart(df, variance).log_prob(value)
    expected = gs.distributions.Chi2(df).log_prob(value[0, 0] / 2) - math.log(2)
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)


def test_few_degrees_of_freedom_are_warned_of_and_singular_samples_drawn_anew() -> None:
    gs.manual_seed(0)
    with pytest.warns(UserWarning, match="Low df values detected") as caught:
        low = gs.distributions.Wishart(gs.tensor(2.01), gs.eye(3))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="Singular sample detected"):
        drawn = low.rsample((2000,), max_try_correction=50)
    assert low.support.check(drawn).all()
    assert low.mode.isnan().all()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda d, m: d.Wishart(m.tensor(1.0), m.eye(2)),
        lambda d, m: d.Wishart(m.tensor(3.0)),
        lambda d, m: d.Wishart(m.tensor(3.0), m.eye(2), scale_tril=m.eye(2)),
        lambda d, m: d.Wishart(m.tensor(3.0), scale_tril=m.ones(2)),
        lambda d, m: d.Wishart(m.tensor(3.5), m.eye(2)).log_prob(-m.eye(2)),
        lambda d, m: d.LKJCholesky(1),
        lambda d, m: d.LKJCholesky(3).log_prob(2 * m.eye(3)),
        lambda d, m: d.LKJCholesky(3).log_prob(m.eye(2)),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, lambda m: use(m.distributions, m))


def test_a_concentration_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected parameter concentration"):
        gs.distributions.LKJCholesky(3, -1.0)
