"""kl_divergence() beside PyTorch's: between all kinds, and of one's own."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.distributions.cases import CASES
from tests.side_by_side import compare, complaint

WITHOUT_DIVERGENCE = [
    *("Multinomial", "StudentT", "Weibull", "NegativeBinomial", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    *("MixtureSameFamily", "a mixture of vectors"),
    *("FisherSnedecor", "GeneralizedPareto", "Kumaraswamy", "LKJCholesky"),
]


PAIRS: dict[str, Any] = {
    name: ([numpy.array(a, dtype=float) for a in arrays], make)
    for name, (arrays, make, _) in CASES.items()
    if name not in WITHOUT_DIVERGENCE
}


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in PAIRS if not name.startswith("Wishart")])
def test_divergences(torch: Any, name: str) -> None:
    arrays, make = PAIRS[name]
    others = [a * 1.1 + (0.3 if "Uniform" not in name else -0.1 + 0.4 * k) for k, a in enumerate(arrays)]
    if name in ("Bernoulli", "Binomial", "ContinuousBernoulli", "Geometric"):
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
    lambda d, m: d.ContinuousBernoulli(m.tensor(0.7)),
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
    assert compared > 90


NORMALS: dict[str, Any] = {
    "full": lambda d, loc, factor, diagonal: d.MultivariateNormal(loc, factor @ factor.mT + diagonal.diag_embed()),
    "low rank": lambda d, loc, factor, diagonal: d.LowRankMultivariateNormal(loc, factor, diagonal),
}


@pytest.mark.parametrize(("kind_p", "kind_q"), [(p, q) for p in NORMALS for q in NORMALS])
def test_divergences_of_vectors_are_the_same_whatever_the_form_of_the_covariance(kind_p: str, kind_q: str) -> None:
    random = numpy.random.RandomState(0)
    shapes = [(2, 4), (4, 2), (4,), (4,), (2, 4, 3), (2, 4)]
    given = [gs.tensor(random.uniform(0.5, 1.5, size=shape), requires_grad=True) for shape in shapes]
    d = gs.distributions
    answers = []
    for p, q in ((kind_p, kind_q), ("full", "full")):
        divergence = d.kl_divergence(NORMALS[p](d, *given[:3]), NORMALS[q](d, *given[3:]))
        answers.append([divergence.detach(), *gs.autograd.grad(divergence.sum(), given)])
    for found, expected in zip(*answers, strict=True):
        numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize(("kind_p", "kind_q"), [(p, q) for p in NORMALS for q in NORMALS if p != q or p != "full"])
def test_divergences_of_vectors_are_those_of_pytorch(torch: Any, kind_p: str, kind_q: str) -> None:
    random = numpy.random.RandomState(1)
    arrays = [random.uniform(0.5, 1.5, size=shape) for shape in ((3,), (3, 1), (3,), (2, 3), (3, 2), (2, 3))]

    def divergence(m: Any, *given: Any) -> Any:
        d = m.distributions
        return d.kl_divergence(NORMALS[kind_p](d, *given[:3]), NORMALS[kind_q](d, *given[3:]))

    compare(torch, divergence, *arrays, names=False, twice=False)

    def of_two_sizes(m: Any) -> Any:
        d = m.distributions
        p, q = (NORMALS[k](d, m.zeros(n), m.ones(n, 1), m.ones(n)) for k, n in ((kind_p, 2), (kind_q, 3)))
        return d.kl_divergence(p, q)

    assert complaint(gs, of_two_sizes)[0] is complaint(torch, of_two_sizes)[0] is ValueError


def test_a_divergence_of_ones_own() -> None:
    class Own(gs.distributions.Normal):
        pass

    assert gs.distributions.kl_divergence(Own(0.0, 1.0), gs.distributions.Normal(0.0, 1.0)).item() == 0
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        gs.distributions.register_kl(int, Own)
    gs.distributions.register_kl(Own, Own)(lambda p, q: gs.tensor(5.0))
    assert gs.distributions.kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0)).item() == 5
