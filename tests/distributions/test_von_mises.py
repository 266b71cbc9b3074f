"""Angles around a direction, beside PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs

LOC, CONCENTRATION = [0.0, 1.0, -2.0, 0.5], [0.5, 4.0, 50.0, 1e-6]


def made(m: Any) -> tuple[Any, Any, Any]:
    loc, concentration = (m.tensor(v, dtype=m.float64, requires_grad=True) for v in (LOC, CONCENTRATION))
    return m.distributions.VonMises(loc, concentration), loc, concentration


def test_densities_and_moments_are_those_of_pytorch(torch: Any) -> None:
    found = []
    for m in (gs, torch):
        angles, loc, concentration = made(m)
        value = m.tensor([0.3, -2.0, 7.0, 3.0], dtype=m.float64)
        density = angles.log_prob(value)
        density.sum().backward()
        found.append(
            [
                t.detach().numpy()
                for t in (density, loc.grad, concentration.grad, angles.variance, angles.mean, angles.mode)
            ]
        )
        assert tuple(angles.expand((2, 4)).batch_shape) == (2, 4)
        assert not angles.has_rsample
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=2e-6)  # PyTorch approximates Bessel functions


def test_the_density_is_one_in_all() -> None:
    angles, _, _ = made(gs)
    grid = gs.linspace(-math.pi, math.pi, 20001, dtype=gs.float64).unsqueeze(-1)
    total = angles.log_prob(grid).exp().mean(0) * (2 * math.pi)
    numpy.testing.assert_allclose(total.detach().numpy(), 1, rtol=1e-3)


def test_large_concentrations_do_not_overflow() -> None:
    density = gs.distributions.VonMises(gs.tensor(0.0), gs.tensor(1e4)).log_prob(gs.tensor(0.0))
    # That of a normal distribution with variance 1 / concentration.
    assert density.item() == pytest.approx(0.5 * math.log(1e4 / (2 * math.pi)), rel=1e-4)


def test_samples_are_angles_with_the_circular_moments() -> None:
    gs.manual_seed(0)
    angles, loc, _ = made(gs)
    drawn = angles.sample((20000,))
    assert (tuple(drawn.shape), drawn.dtype, drawn.requires_grad) == ((20000, 4), gs.float64, False)
    assert (drawn >= -math.pi).all()
    assert (drawn < math.pi).all()
    numpy.testing.assert_allclose(
        gs.cos(drawn - loc).mean(0).detach().numpy(), (1 - angles.variance).detach().numpy(), atol=0.02
    )
    numpy.testing.assert_allclose(gs.sin(drawn - loc).mean(0).detach().numpy(), 0, atol=0.02)
    assert gs.distributions.VonMises(0.0, 1.0).sample().shape == ()


def test_what_is_not_a_number_ends_the_draw() -> None:
    angles = gs.distributions.VonMises(gs.tensor(0.0), gs.tensor(math.nan), validate_args=False)
    assert angles.sample((2,)).isnan().all()
