"""gs.distributions beside torch.distributions: probabilities, moments, divergences, samples, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.distributions.cases import CASES
from tests.side_by_side import compare, same_complaint

COUNT = 20_000

WITHOUT_ENTROPY = [
    *("Poisson", "NegativeBinomial", "HalfCauchy", "LogisticNormal", "TransformedDistribution"),
    *("RelaxedBernoulli", "RelaxedOneHotCategorical", "MixtureSameFamily", "a mixture of vectors"),
    *("FisherSnedecor", "LKJCholesky"),
]
WITHOUT_MOMENTS = ["LogisticNormal", "TransformedDistribution", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
WITHOUT_MOMENTS += ["LKJCholesky"]
WITHOUT_MODE = ["Multinomial", "MixtureSameFamily", "a mixture of vectors"]
WITHOUT_MODE += [
    "ContinuousBernoulli",
    "ContinuousBernoulli by logits",
    "Kumaraswamy",
]  # PyTorch's mode of the last is NaN
FLOAT32_IN_PYTORCH = ["GeneralizedPareto"]
BIASED = ["OneHotCategoricalStraightThrough"]
HEAVY = ["Cauchy", "HalfCauchy", "StudentT", "LogNormal", "Pareto", "InverseGamma"]
SMOOTH = [name for name in CASES if name in ("Normal", "Laplace", "Uniform", "Exponential", "Independent")]
SMOOTH += ["Cauchy", "Gumbel", "HalfNormal", "HalfCauchy", "LogNormal", "Weibull", "Pareto", "TransformedDistribution"]
SMOOTH += ["ContinuousBernoulli", "ContinuousBernoulli by logits", "GeneralizedPareto", "Kumaraswamy"]
WITH_RSAMPLE = [
    *SMOOTH,
    *("StudentT", "Chi2", "LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    *("Gamma", "Beta", "Dirichlet", "InverseGamma", "FisherSnedecor"),
    *("LowRankMultivariateNormal", "OneHotCategoricalStraightThrough"),
    *(name for name in CASES if name.startswith(("Multivariate", "Wishart"))),
]


def value_of(m: Any, name: str) -> Any:
    values = CASES[name][2]
    return m.tensor(values) if name.startswith("Categorical") else m.tensor(values, dtype=m.float64)


def asked(torch: Any, name: str, question: Any) -> None:
    """Compare the answer to a question about a distribution, and its derivatives by the parameters."""
    arrays, make, _ = CASES[name]
    arrays = [numpy.array(a, dtype=float) for a in arrays]

    def answer(m: Any, *given: Any) -> Any:
        # Not every answer depends on every parameter.
        return question(m, make(m.distributions, *given)) + sum((x * 0).sum() for x in given)

    compare(torch, answer, *arrays, names=False, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in CASES if name not in FLOAT32_IN_PYTORCH])
def test_probabilities(torch: Any, name: str) -> None:
    asked(torch, name, lambda m, d: d.log_prob(value_of(m, name)))


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_ENTROPY])
def test_entropies(torch: Any, name: str) -> None:
    asked(torch, name, lambda m, d: d.entropy())
    asked(torch, name, lambda m, d: d.perplexity())


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_MOMENTS])
def test_moments(torch: Any, name: str) -> None:
    for moment in ("mean", "variance", "stddev") + (() if name in WITHOUT_MODE else ("mode",)):
        if name.startswith("Categorical"):
            mine, theirs = (getattr(_made(m, name), moment).tolist() for m in (gs, torch))
            numpy.testing.assert_equal(mine, theirs)
        else:
            asked(torch, name, lambda m, d, moment=moment: getattr(d, moment) * 1)


def _made(m: Any, name: str) -> Any:
    arrays, make, _ = CASES[name]
    return make(m.distributions, *(m.tensor(a, dtype=m.float64) for a in arrays))


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in SMOOTH if name not in ("Independent", *FLOAT32_IN_PYTORCH)])
def test_distribution_functions(torch: Any, name: str) -> None:
    asked(torch, name, lambda m, d: d.cdf(value_of(m, name)))
    asked(torch, name, lambda m, d: d.icdf(m.tensor([0.2, 0.7], dtype=m.float64)))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Singular sample detected:UserWarning:torch")  # PyTorch takes asymmetry for that
@pytest.mark.parametrize("name", CASES)
def test_shapes_and_text(torch: Any, name: str) -> None:
    mine, theirs = (_made(m, name) for m in (gs, torch))
    if not isinstance(mine, gs.distributions.MixtureSameFamily):  # PyTorch's shows what it has happened to compute
        assert repr(mine) == repr(theirs).replace("torch", "gradscope")
    assert repr(mine.support) == repr(theirs.support).replace("torch", "gradscope")
    assert mine.has_rsample == theirs.has_rsample == (name in WITH_RSAMPLE)
    for d, e in ((mine, theirs), (mine.expand((3, *mine.batch_shape)), theirs.expand((3, *theirs.batch_shape)))):
        assert tuple(d.batch_shape) == tuple(e.batch_shape)
        assert tuple(d.event_shape) == tuple(e.event_shape)
        assert tuple(d.sample().shape) == tuple(e.sample().shape)
        assert tuple(d.sample((4, 2)).shape) == tuple(e.sample((4, 2)).shape)
        assert d.sample().dtype.name == str(e.sample().dtype).partition(".")[2]


@pytest.mark.parametrize("name", CASES)
def test_samples_lie_in_the_support_and_have_the_mean(name: str) -> None:
    gs.manual_seed(0)
    distribution = _made(gs, name)
    drawn = distribution.sample((COUNT,))
    assert not drawn.requires_grad
    assert bool(distribution.support.check(drawn).all())
    if name in WITHOUT_MOMENTS or name in HEAVY:
        return
    if name.startswith("Categorical"):
        shares = gs.nn.functional.one_hot(drawn, 3).double().mean(0)
        numpy.testing.assert_allclose(shares.numpy(), distribution.probs.numpy(), atol=0.02)
        return
    spread = distribution.stddev.numpy()
    numpy.testing.assert_allclose(
        (drawn.mean(0) - distribution.mean).numpy() / spread, numpy.zeros_like(spread), atol=5 / math.sqrt(COUNT)
    )
    numpy.testing.assert_allclose(drawn.std(0).numpy(), spread, rtol=0.07)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "Independent"])
def test_samples_are_distributed_as_the_distribution_function_says_and_move_with_it(name: str) -> None:
    gs.manual_seed(0)
    arrays, make, _ = CASES[name]
    given = [gs.tensor(a, dtype=gs.float64, requires_grad=True) for a in arrays]
    distribution = make(gs.distributions, *given)
    shares = distribution.cdf(distribution.rsample((COUNT,)))
    numpy.testing.assert_allclose(shares.mean(0).tolist(), 0.5, atol=0.012)
    numpy.testing.assert_allclose(shares.var(0).tolist(), 1 / 12, rtol=0.05)
    # A sample keeps its place in the distribution, whatever the parameters.
    for g in gs.autograd.grad(shares[:100].sum(), given):
        numpy.testing.assert_allclose(g.numpy(), numpy.zeros(g.shape), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in WITH_RSAMPLE if name not in (*WITHOUT_MOMENTS, *HEAVY, *BIASED)])
def test_samples_pass_gradients_on(name: str) -> None:
    # The derivative of the mean of the squares of samples, and that of the second moment.
    gs.manual_seed(0)
    arrays, make, _ = CASES[name]
    given = [gs.tensor(a, dtype=gs.float64, requires_grad=True) for a in arrays]
    distribution = make(gs.distributions, *given)
    found = gs.autograd.grad((distribution.rsample((2 * COUNT,)) ** 2).mean(0).sum(), given, retain_graph=True)
    moment = distribution.variance + distribution.mean**2
    expected = gs.autograd.grad(moment.sum(), given)
    for a, b in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.08, atol=0.08)


@pytest.mark.parametrize("name", [n for n in CASES if n not in WITH_RSAMPLE])
def test_discrete_samples_have_no_gradient(name: str) -> None:
    with pytest.raises(NotImplementedError, match="has no rsample"):
        _made(gs, name).rsample()


@pytest.mark.parametrize("name", CASES)
def test_answers_are_computed_on_the_device_of_the_parameters(name: str, other_device: str) -> None:
    arrays, make, _ = CASES[name]
    given = [gs.tensor(a, dtype=gs.float64, device=other_device, requires_grad=True) for a in arrays]
    distribution = make(gs.distributions, *given)
    answers = [distribution.log_prob(value_of(gs, name).to(other_device))]
    if name not in WITHOUT_MOMENTS:
        answers += [distribution.mean, distribution.variance]
    if name not in WITHOUT_ENTROPY:
        answers.append(distribution.entropy())
    assert {answer.device.type for answer in answers} == {other_device}
    assert all(bool(g.isfinite().all()) for g in gs.autograd.grad(answers[0].sum(), given))


@pytest.mark.torch
def test_impossible_values(torch: Any) -> None:
    for use in (
        lambda d, m: d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)),
        lambda d, m: d.kl_divergence(d.Bernoulli(m.tensor([0.0, 0.5])), d.Bernoulli(m.tensor([0.0, 0.0]))),
        lambda d, m: d.kl_divergence(d.Categorical(m.tensor([0.0, 1.0])), d.Categorical(m.tensor([1.0, 0.0]))),
        lambda d, m: d.Categorical(logits=m.tensor([0.0, -math.inf])).entropy(),
        lambda d, m: d.Multinomial(2, logits=m.tensor([0.0, -math.inf])).log_prob(m.tensor([2.0, 0.0])),
        lambda d, m: d.Uniform(0.0, 1.0, validate_args=False).log_prob(m.tensor([-1.0, 0.5, 1.0])),
        lambda d, m: d.Poisson(m.tensor([0.0, 1.0])).log_prob(m.tensor([0.0, 0.0])),
        lambda d, m: d.Bernoulli(m.tensor([0.5, 0.6, 0.2])).mode,
        lambda d, m: d.Bernoulli(m.tensor([0.5, 0.6])).enumerate_support(),
        lambda d, m: d.Categorical(m.ones(2, 3)).enumerate_support(),
        lambda d, m: d.OneHotCategorical(m.ones(2, 3)).enumerate_support(),
        lambda d, m: d.Categorical(m.ones(2, 3)).enumerate_support(expand=False),
        lambda d, m: d.Independent(d.Bernoulli(m.tensor([0.5, 0.6])), 0).enumerate_support(expand=False),
        lambda d, m: d.Normal(0.0, 1.0, validate_args=False).expand([2]).log_prob(m.tensor([math.nan, 0.0])),
        lambda d, m: d.FisherSnedecor(m.tensor([1.0, 3.0, 5.0]), m.tensor([2.0, 3.0, 5.0])).mean,
        lambda d, m: d.FisherSnedecor(m.tensor([1.0, 2.0, 5.0]), m.tensor([2.0, 3.0, 5.0])).mode,
        lambda d, m: d.FisherSnedecor(m.tensor([1.0, 3.0, 5.0]), m.tensor([2.0, 4.0, 5.0])).variance,
        lambda d, m: d.InverseGamma(m.tensor([0.5, 1.0, 2.0, 3.0]), 1.0).mean,
        lambda d, m: d.InverseGamma(m.tensor([0.5, 1.0, 2.0, 3.0]), 1.0).variance,
        lambda d, m: d.InverseGamma(m.tensor([0.5, 2.0]), 3.0).cdf(m.tensor([0.5, 2.0])),
        lambda d, m: d.Gamma(m.tensor([0.5, 2.0]), 3.0).cdf(m.tensor([0.5, 2.0])),
        lambda d, m: d.Chi2(m.tensor([0.5, 2.0])).cdf(m.tensor([0.0, 2.0])),
        lambda d, m: d.OneHotCategoricalStraightThrough(m.ones(2, 3)).enumerate_support(),
        lambda d, m: _of_low_rank(d, m).covariance_matrix,
        lambda d, m: _of_low_rank(d, m).precision_matrix,
        lambda d, m: _of_low_rank(d, m).scale_tril,
        # Symmetric up to rounding: large numbers differ by more than small ones.
        lambda d, m: d.MultivariateNormal(m.zeros(2), m.tensor([[1e4, 3e3], [3e3 + 1e-3, 1e4]])).log_prob(m.ones(2)),
    ):
        found, expected = (use(m.distributions, m).numpy() for m in (gs, torch))
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _of_low_rank(d: Any, m: Any) -> Any:
    factor = m.tensor([[0.5, 0.1], [0.2, -0.3], [1.0, 0.7]])
    return d.LowRankMultivariateNormal(m.zeros(3), factor, m.tensor([[1.0, 0.5, 2.0], [0.1, 1.0, 1.0]]))


def test_the_density_of_a_kumaraswamy_variable_is_highest_at_its_mode() -> None:
    one, zero = gs.tensor([1.5, 3.0, 1.0, 0.5, 1.0]).double(), gs.tensor([2.0, 4.0, 2.0, 2.0, 1.0]).double()
    distribution = gs.distributions.Kumaraswamy(one, zero)
    grid = ((gs.arange(10_000, dtype=gs.float64) + 0.5) / 10_000).unsqueeze(-1)
    highest = grid[distribution.log_prob(grid).argmax(0)].squeeze(-1)
    numpy.testing.assert_allclose(distribution.mode[:3].numpy(), highest[:3].numpy(), atol=1e-4)
    assert distribution.mode[3:].isnan().all()
    assert distribution.log_prob(gs.tensor(0.0).double())[:2].tolist() == [-math.inf] * 2


def test_a_parameter_that_is_wrong_is_named() -> None:
    for make, name in (
        (lambda d: d.FisherSnedecor(1.0, -1.0), "df2"),
        (lambda d: d.InverseGamma(-1.0, 1.0), "concentration"),
        (lambda d: d.LowRankMultivariateNormal(gs.zeros(2), gs.ones(2, 1), gs.tensor([1.0, -0.5])), "cov_diag"),
    ):
        with pytest.raises(ValueError, match=f"Expected parameter {name}"):
            make(gs.distributions)


def test_low_rank_is_a_form_of_the_normal_distribution_of_vectors() -> None:
    low = _of_low_rank(gs.distributions, gs)
    full = gs.distributions.MultivariateNormal(low.loc, low.covariance_matrix)
    value = gs.tensor([0.3, -1.0, 2.0])
    numpy.testing.assert_allclose(low.log_prob(value).numpy(), full.log_prob(value).numpy(), rtol=1e-5)
    numpy.testing.assert_allclose(low.entropy().numpy(), full.entropy().numpy(), rtol=1e-5)
    numpy.testing.assert_allclose(low.scale_tril.numpy(), full.scale_tril.numpy(), atol=1e-5)


def test_straight_through_samples_pass_the_gradient_of_the_probabilities() -> None:
    gs.manual_seed(0)
    logits = gs.tensor([0.2, -0.3, 0.5], requires_grad=True)
    choice = gs.distributions.OneHotCategoricalStraightThrough(logits=logits)
    weights = gs.tensor([1.0, 2.0, 4.0])
    drawn = choice.rsample((5,))
    assert drawn.max(-1)[0].tolist() == pytest.approx([1.0] * 5)
    assert not choice.sample().requires_grad
    (found,) = gs.autograd.grad((drawn * weights).sum(), logits)
    (expected,) = gs.autograd.grad(5 * (logits.softmax(-1) * weights).sum(), logits)
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda d, m: d.Normal(0.0, -1.0),
        lambda d, m: d.Normal(m.zeros(2), m.tensor([1.0, -1.0])),
        lambda d, m: d.Normal(0.0, "1"),
        lambda d, m: d.Bernoulli(1.5),
        lambda d, m: d.Bernoulli(),
        lambda d, m: d.Bernoulli(0.5, 0.5),
        lambda d, m: d.Categorical(m.tensor([0.5, -0.5, 1.0])),
        lambda d, m: d.Categorical(m.tensor(0.5)),
        lambda d, m: d.Uniform(1.0, 0.0),
        lambda d, m: d.Beta(1.0, -1.0),
        lambda d, m: d.Dirichlet(m.tensor(1.0)),
        lambda d, m: d.Dirichlet(m.tensor([1.0, -1.0])),
        lambda d, m: d.Normal(0.0, 1.0).log_prob(0.5),
        lambda d, m: d.Bernoulli(0.5).log_prob(m.tensor(0.5)),
        lambda d, m: d.Categorical(m.ones(3)).log_prob(m.tensor(3)),
        lambda d, m: d.Dirichlet(m.ones(3)).log_prob(m.tensor([0.5, 0.5])),
        lambda d, m: d.Normal(m.zeros(3), 1.0).log_prob(m.zeros(2)),
        lambda d, m: d.Independent(d.Normal(0.0, 1.0), 1),
        lambda d, m: d.kl_divergence(d.Normal(0.0, 1.0), d.Multinomial(2, m.ones(2))),
        lambda d, m: d.Multinomial(m.tensor(3), m.ones(2)),
        lambda d, m: d.MultivariateNormal(m.zeros(2)),
        lambda d, m: d.MultivariateNormal(m.zeros(2), m.ones(2)),
        lambda d, m: d.MultivariateNormal(m.zeros(2), -m.eye(2)),
        lambda d, m: d.MultivariateNormal(m.tensor(0.0), m.eye(1)),
        lambda d, m: d.MultivariateNormal(m.zeros(2), m.tensor([[1.0, 0.5], [0.4, 1.0]])),
        lambda d, m: d.Normal(0.0, 1.0).expand([2]).log_prob(m.tensor([math.nan, 0.0])),
        lambda d, m: d.Independent(d.Bernoulli(m.ones(2) / 2), 1).expand([3]).log_prob(m.ones(3, 2) / 2),
        lambda d, m: d.Independent(d.Bernoulli(m.ones(2) / 2), 1).enumerate_support(),
        lambda d, m: d.FisherSnedecor(1.0, 2.0).log_prob(m.tensor(0.0)),
        lambda d, m: d.InverseGamma(1.0, 2.0).log_prob(m.tensor(-1.0)),
        lambda d, m: d.Kumaraswamy(-1.0, 2.0),
        lambda d, m: d.Kumaraswamy(1.0, 2.0).log_prob(m.tensor(1.5)),
        lambda d, m: d.OneHotCategoricalStraightThrough(m.tensor(0.5)),
        lambda d, m: d.LowRankMultivariateNormal(m.tensor(0.0), m.ones(2, 1), m.ones(2)),
        lambda d, m: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2), m.ones(2)),
        lambda d, m: d.LowRankMultivariateNormal(m.zeros(2), m.ones(3, 1), m.ones(2)),
        lambda d, m: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2, 1), m.ones(3)),
        lambda d, m: d.LowRankMultivariateNormal(m.zeros(4, 2), m.ones(3, 2, 1), m.ones(2)),
        lambda d, m: d.Gamma(1.0, 2.0).cdf(m.tensor(-1.0)),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, lambda m: use(m.distributions, m))


@pytest.mark.parametrize("name", ["Bernoulli", "Categorical", "OneHotCategorical", "Multinomial", "Binomial"])
def test_the_parameter_has_the_shape_it_was_given_in(name: str) -> None:
    assert _made(gs, name).param_shape == numpy.shape(CASES[name][0][0])


def test_the_former_way_to_sample_is_warned_of_at_the_line_that_goes_it() -> None:
    with pytest.warns(FutureWarning, match=r"Use `sample\(\(n,\)\)` instead") as caught:
        assert gs.distributions.Normal(gs.zeros(2), 1.0).sample_n(3).shape == (3, 2)
    assert caught[0].filename == __file__


def test_checks_can_be_left_out() -> None:
    gs.distributions.Normal(0.0, -1.0, validate_args=False)
    gs.distributions.Distribution.set_default_validate_args(False)
    try:
        gs.distributions.Normal(0.0, -1.0)
    finally:
        gs.distributions.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        gs.distributions.Normal(0.0, -1.0)


@pytest.mark.torch
def test_no_name_is_foreign(torch: Any) -> None:
    assert set(gs.distributions.__all__) <= set(dir(torch.distributions))
