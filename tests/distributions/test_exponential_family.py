"""Entropies and divergences by natural parameters, beside those in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

# By name: the distribution of parameters, parameters, and others.
FAMILIES: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "Normal": (gs.distributions.Normal, [[0.5, -1.0], [0.7, 2.0]], [[0.1, 1.0], [1.0, 0.5]]),
    "Exponential": (gs.distributions.Exponential, [[0.5, 2.0]], [[1.0, 0.3]]),
    "Gamma": (gs.distributions.Gamma, [[0.5, 3.0], [2.0, 0.5]], [[1.5, 2.0], [1.0, 0.7]]),
    "Beta": (gs.distributions.Beta, [[0.5, 3.0], [2.0, 0.5]], [[1.5, 2.0], [1.0, 0.7]]),
    "Dirichlet": (gs.distributions.Dirichlet, [[[0.5, 3.0, 1.0], [2.0, 0.5, 2.5]]], [[[1.5, 2.0, 1.0]] * 2]),
    "Bernoulli": (gs.distributions.Bernoulli, [[0.2, 0.7]], [[0.5, 0.1]]),
    "ContinuousBernoulli": (gs.distributions.ContinuousBernoulli, [[0.2, 0.5]], [[0.5, 0.1]]),
    "Wishart": (
        lambda df, matrix: gs.distributions.Wishart(df, matrix @ matrix.mT),
        [[4.5, 6.0], [[1.5, 0.3], [-0.2, 0.8]]],
        [[3.5, 7.0], [[0.7, -0.2], [0.1, 1.1]]],
    ),
}


def _given(name: str, which: int = 1) -> list[gs.Tensor]:
    return [gs.tensor(values, dtype=gs.float64, requires_grad=True) for values in FAMILIES[name][which]]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_entropy_is_that_of_the_closed_form_and_so_is_its_gradient(name: str) -> None:
    given = _given(name)
    family = FAMILIES[name][0](*given)
    unused = sum((x * 0).sum() for x in given)  # not every entropy depends on every parameter
    found, expected = gs.distributions.ExponentialFamily.entropy(family), family.entropy() + unused
    assert tuple(found.shape) == tuple(family.batch_shape)
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
    both = [gs.autograd.grad(entropy.sum(), given, retain_graph=True) for entropy in (found, expected)]
    for mine, theirs in zip(*both, strict=True):
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "Wishart"])
def test_the_divergence_is_that_of_the_closed_form_and_so_is_its_gradient(name: str) -> None:
    given, others = _given(name), _given(name, 2)
    p, q = FAMILIES[name][0](*given), FAMILIES[name][0](*others)
    bregman = gs.distributions.kl._registered[gs.distributions.ExponentialFamily, gs.distributions.ExponentialFamily]
    found, expected = bregman(p, q), gs.distributions.kl_divergence(p, q)
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-8, atol=1e-12)
    both = [gs.autograd.grad(divergence.sum(), given + others, retain_graph=True) for divergence in (found, expected)]
    for mine, theirs in zip(*both, strict=True):
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-9)


def test_an_entropy_of_constants_has_no_history() -> None:
    family = gs.distributions.Gamma(gs.tensor(2.0), gs.tensor(3.0, requires_grad=True))
    assert gs.distributions.ExponentialFamily.entropy(family).requires_grad
    with gs.no_grad():
        assert not gs.distributions.ExponentialFamily.entropy(family).requires_grad
    assert not gs.distributions.ExponentialFamily.entropy(gs.distributions.Gamma(2.0, 3.0)).requires_grad


def test_a_family_of_ones_own_needs_its_normalizer_alone() -> None:
    class Rayleigh(gs.distributions.ExponentialFamily):
        """The length of a normal vector in the plane: ``x / s**2 * exp(-x**2 / (2 * s**2))``."""

        def __init__(self, scale: gs.Tensor) -> None:
            self.scale = scale
            super().__init__(scale.shape, validate_args=False)

        @property
        def _natural_params(self) -> tuple[gs.Tensor, ...]:
            return (-0.5 * self.scale.pow(-2),)

        def _log_normalizer(self, *natural_params: gs.Tensor) -> gs.Tensor:
            return -(-2 * natural_params[0]).log()

        @property
        def _mean_carrier_measure(self) -> gs.Tensor:
            return self.scale.log() + 0.5 * (numpy.log(2) - numpy.euler_gamma)

    own, other = Rayleigh(gs.tensor([1.0, 2.0])), Rayleigh(gs.tensor([2.0, 2.0]))
    expected = 1 + (own.scale / 2**0.5).log() + numpy.euler_gamma / 2
    numpy.testing.assert_allclose(own.entropy().numpy(), expected.numpy(), rtol=1e-6)
    ratio = own.scale**2 / other.scale**2
    numpy.testing.assert_allclose(
        gs.distributions.kl_divergence(own, other).numpy(), (ratio - ratio.log() - 1).numpy(), atol=1e-6
    )


@pytest.mark.torch
def test_what_is_not_known_is_refused(torch: Any) -> None:
    for use in (
        lambda d: d.Poisson(1.0).entropy(),
        lambda d: d.ExponentialFamily(validate_args=False).entropy(),
        lambda d: d.kl_divergence(d.Exponential(1.0), d.Poisson(1.0)),
    ):
        for m in (gs, torch):
            with pytest.raises(NotImplementedError):
                use(m.distributions)


@pytest.mark.torch
def test_the_same_distributions_are_exponential_families_as_in_pytorch(torch: Any) -> None:
    def families(m: Any) -> set[str]:
        kinds = {name: getattr(m.distributions, name) for name in gs.distributions.__all__}
        return {
            name
            for name, kind in kinds.items()
            if isinstance(kind, type) and issubclass(kind, m.distributions.ExponentialFamily)
        }

    assert families(gs) == families(torch)
    same_complaint(torch, lambda m: m.distributions.ContinuousBernoulli())
