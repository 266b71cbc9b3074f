"""kl_divergence() beside PyTorch's: between all kinds, and of one's own."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.distributions.cases import CASES
from tests.side_by_side import compare

WITHOUT_DIVERGENCE = [
    *("Multinomial", "StudentT", "Weibull", "NegativeBinomial", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    *("MixtureSameFamily", "a mixture of vectors"),
]


PAIRS: dict[str, Any] = {
    name: ([numpy.array(a, dtype=float) for a in arrays], make)
    for name, (arrays, make, _) in CASES.items()
    if name not in WITHOUT_DIVERGENCE
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PAIRS)
def test_divergences(torch: Any, name: str) -> None:
    arrays, make = PAIRS[name]
    others = [a * 1.1 + (0.3 if "Uniform" not in name else -0.1 + 0.4 * k) for k, a in enumerate(arrays)]
    if name in ("Bernoulli", "Binomial", "Geometric"):
        others = [numpy.array([0.5, 0.1])]

    def divergence(m: Any, *given: Any) -> Any:
        d = m.distributions
        half = len(given) // 2
        return d.kl_divergence(make(d, *given[:half]), make(d, *given[half:]))

    compare(torch, divergence, *arrays, *others, names=False, twice=False)


KINDS: list[Any] = [
    lambda d, m: d.Normal(m.tensor(0.3), m.tensor(1.2)),
    lambda d, m: d.Laplace(m.tensor(0.3), m.tensor(1.2)),
    lambda d, m: d.Gumbel(m.tensor(0.3), m.tensor(1.2)),
    lambda d, m: d.Cauchy(m.tensor(0.3), m.tensor(1.2)),
    lambda d, m: d.Uniform(m.tensor(0.2), m.tensor(0.9)),
    lambda d, m: d.Uniform(m.tensor(-0.5), m.tensor(1.5)),
    lambda d, m: d.Exponential(m.tensor(0.7)),
    lambda d, m: d.Gamma(m.tensor(1.7), m.tensor(0.6)),
    lambda d, m: d.Chi2(m.tensor(1.7)),
    lambda d, m: d.Beta(m.tensor(1.7), m.tensor(0.6)),
    lambda d, m: d.Pareto(m.tensor(0.1), m.tensor(2.5)),
    lambda d, m: d.HalfNormal(m.tensor(0.7)),
    lambda d, m: d.Poisson(m.tensor(0.7)),
    lambda d, m: d.Bernoulli(m.tensor(0.7)),
    lambda d, m: d.Binomial(3, m.tensor(0.7)),
    lambda d, m: d.Geometric(m.tensor(0.7)),
]


@pytest.mark.torch
def test_divergences_between_kinds(torch: Any) -> None:
    compared = 0
    for p in KINDS:
        for q in KINDS:
            try:
                theirs = torch.distributions.kl_divergence(*(make(torch.distributions, torch) for make in (p, q)))
            except NotImplementedError:
                with pytest.raises(NotImplementedError):
                    gs.distributions.kl_divergence(*(make(gs.distributions, gs) for make in (p, q)))
                continue
            mine = gs.distributions.kl_divergence(*(make(gs.distributions, gs) for make in (p, q)))
            numpy.testing.assert_allclose(mine.item(), theirs.item(), rtol=2e-5, atol=1e-6)
            compared += 1
    assert compared > 70


def test_a_divergence_of_ones_own() -> None:
    class Own(gs.distributions.Normal):
        pass

    assert gs.distributions.kl_divergence(Own(0.0, 1.0), gs.distributions.Normal(0.0, 1.0)).item() == 0
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        gs.distributions.register_kl(int, Own)
    gs.distributions.register_kl(Own, Own)(lambda p, q: gs.tensor(5.0))
    assert gs.distributions.kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0)).item() == 5
