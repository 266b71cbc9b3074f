"""Transforms beside torch.distributions.transforms: images, inverses, Jacobians, shapes; policies to second order."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.distributions import transforms
from tests.side_by_side import compare, same_complaint

VECTOR = [[0.3, -0.7, 1.1], [0.2, 0.5, -1.5]]
MATRIX = [[0.3, -0.7], [0.2, 0.5]]

# By name: the transform, and values.
CASES: dict[str, tuple[Any, Any]] = {
    "exp": (lambda d, m: d.ExpTransform(), VECTOR),
    "power": (lambda d, m: d.PowerTransform(m.tensor(1.7, dtype=m.float64)), [0.4, 1.3]),
    "sigmoid": (lambda d, m: d.SigmoidTransform(), VECTOR),
    "softplus": (lambda d, m: d.transforms.SoftplusTransform(), VECTOR),
    "tanh": (lambda d, m: d.TanhTransform(), VECTOR),
    "affine": (lambda d, m: d.AffineTransform(0.5, -2.0), VECTOR),
    "affine of tensors": (
        lambda d, m: d.AffineTransform(m.tensor([0.5, 1.0, 2.0]).double(), m.tensor([2.0, -1.0, 0.5]).double(), 1),
        VECTOR,
    ),
    "inverse": (lambda d, m: d.TanhTransform().inv, [0.4, -0.9]),
    "composed": (lambda d, m: d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.TanhTransform()]), VECTOR),
    "composed to shares": (
        lambda d, m: d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.StickBreakingTransform()]),
        VECTOR,
    ),
    "nothing": (lambda d, m: d.transforms.identity_transform, VECTOR),
    "independent": (lambda d, m: d.IndependentTransform(d.ExpTransform(), 1), VECTOR),
    "reshape": (lambda d, m: d.ReshapeTransform((3,), (3, 1)), VECTOR),
    "stick breaking": (lambda d, m: d.StickBreakingTransform(), VECTOR),
    "distribution function": (
        lambda d, m: d.CumulativeDistributionTransform(d.Normal(m.tensor(0.5).double(), m.tensor(2.0).double())),
        VECTOR,
    ),
    "softmax": (lambda d, m: d.SoftmaxTransform(), VECTOR),
    "abs": (lambda d, m: d.AbsTransform(), VECTOR),
    "lower Cholesky": (lambda d, m: d.LowerCholeskyTransform(), MATRIX),
    "positive definite": (lambda d, m: d.PositiveDefiniteTransform(), MATRIX),
}
PARTS = (lambda d: d.ExpTransform(), lambda d: d.AffineTransform(0.5, -2.0), lambda d: d.TanhTransform())
CASES |= {
    "cat": (lambda d, m: d.CatTransform([part(d) for part in PARTS[:2]], -1, [1, 2]), VECTOR),
    "cat of the first dimension": (lambda d, m: d.CatTransform([part(d) for part in PARTS[:2]]), VECTOR),
    "cat of vectors": (
        lambda d, m: d.CatTransform([d.AffineTransform(0.0, 2.0, 1), d.ExpTransform()], -1, [2, 1]),
        VECTOR,
    ),
    "cat of rows": (lambda d, m: d.CatTransform([d.StickBreakingTransform(), d.StickBreakingTransform()]), VECTOR),
    "stack": (lambda d, m: d.StackTransform([part(d) for part in PARTS], 1), VECTOR),
    "stack of rows": (lambda d, m: d.StackTransform([d.StickBreakingTransform(), d.StickBreakingTransform()]), VECTOR),
    "correlations": (lambda d, m: d.CorrCholeskyTransform(), VECTOR),
    "correlations of four": (lambda d, m: d.CorrCholeskyTransform(), [0.3, -0.7, 1.1, 0.2, 0.5, -1.5]),
}
NOT_EQUAL = ["distribution function", "reshape", "independent"]
NOT_EQUAL += [name for name in CASES if name.startswith(("cat", "stack"))]
WITHOUT_JACOBIAN = ["softmax", "abs", "lower Cholesky", "positive definite"]


def made(m: Any, name: str) -> Any:
    return CASES[name][0](m.distributions, m)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_images_and_inverses(torch: Any, name: str) -> None:
    values = numpy.array(CASES[name][1])
    compare(torch, lambda m, x: made(m, name)(x) * 1, values, names=False)
    image = made(gs, name)(gs.tensor(values)).numpy()
    compare(torch, lambda m, y: made(m, name).inv(y) * 1, image, names=False)
    if made(gs, name).bijective:
        numpy.testing.assert_allclose(made(gs, name).inv(gs.tensor(image)).numpy(), values, rtol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_JACOBIAN])
def test_jacobians(torch: Any, name: str) -> None:
    def jacobian(m: Any, x: Any) -> Any:
        transform = made(m, name)
        return transform.log_abs_det_jacobian(x, transform(x)) + (x * 0).sum()

    def of_inverse(m: Any, x: Any) -> Any:
        transform = made(m, name)
        return transform.inv.log_abs_det_jacobian(transform(x), x) + (x * 0).sum()

    values = numpy.array(CASES[name][1])
    compare(torch, jacobian, values, names=False)
    compare(torch, of_inverse, values, names=False, twice=False)


@pytest.mark.parametrize("name", ["exp", "power", "sigmoid", "softplus", "tanh", "affine", "composed"])
def test_jacobians_are_the_derivatives(name: str) -> None:
    x = gs.tensor(CASES[name][1], dtype=gs.float64, requires_grad=True)
    transform = made(gs, name)
    y = transform(x)
    (slope,) = gs.autograd.grad(y.sum(), x)
    numpy.testing.assert_allclose(
        transform.log_abs_det_jacobian(x, y).detach().numpy(), slope.abs().log().numpy(), rtol=1e-6
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_shapes_regions_and_text(torch: Any, name: str) -> None:
    mine, theirs = made(gs, name), made(torch, name)
    assert repr(mine) == repr(theirs)
    for region in ("domain", "codomain"):
        assert repr(getattr(mine, region)) == repr(getattr(theirs, region))
        assert getattr(mine, region).event_dim == getattr(theirs, region).event_dim
    assert mine.bijective == theirs.bijective
    shape = numpy.shape(CASES[name][1])
    assert tuple(mine.forward_shape(shape)) == tuple(theirs.forward_shape(shape))
    result = mine.forward_shape(shape)
    assert tuple(mine.inverse_shape(result)) == tuple(theirs.inverse_shape(result))
    assert mine.inv.inv == mine
    assert mine == made(gs, name) or name in NOT_EQUAL
    assert mine != gs.distributions.Transform()
    assert repr(pickle.loads(pickle.dumps(mine))) == repr(mine)


def test_a_cache_gives_the_value_back() -> None:
    transform = gs.distributions.TanhTransform(cache_size=1)
    x = gs.tensor([25.0], requires_grad=True)
    y = transform(x)
    assert transform(x) is y
    assert transform.inv(y) is x
    assert transform.inv(y.detach()).item() == float("inf")
    assert transform.with_cache(1) is transform
    assert transform.with_cache(0)._cache_size == 0
    composed = gs.distributions.ComposeTransform([gs.distributions.AffineTransform(0.0, 1.0), transform], cache_size=1)
    assert composed.inv(composed(x)) is x


def test_transforms_and_distributions_go_by_reference_count() -> None:
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            policy(gs, gs.zeros(2), gs.zeros(2))[0].log_prob(gs.zeros(2))
        assert gc.collect() == 0
    finally:
        gc.enable()


# --- a policy's squashed actions --------------------------------------------------------------------------------------


def policy(m: Any, mean: Any, log_std: Any) -> tuple[Any, Any]:
    """Return the distribution of soft actor-critic's actions, and its normal base."""
    d = m.distributions
    base = d.Normal(mean, log_std.exp(), validate_args=False)
    squashed = d.TransformedDistribution(base, [d.TanhTransform(cache_size=1), d.AffineTransform(0.0, 2.0)])
    return d.Independent(squashed, 1), base


@pytest.mark.torch
def test_a_policy_has_the_derivatives_of_pytorch_to_second_order(torch: Any) -> None:
    noise = numpy.random.RandomState(0).normal(size=(4, 3))

    def objective(m: Any, mean: Any, log_std: Any, weight: Any) -> Any:
        distribution, base = policy(m, mean, log_std)
        raw = base.loc + base.scale * m.tensor(noise)
        action = raw
        for transform in distribution.base_dist.transforms:
            action = transform(action)
        value = (action * weight).sum(-1).sin()
        return 0.2 * distribution.log_prob(action) - value

    random = numpy.random.RandomState(1)
    compare(torch, objective, *(random.normal(size=(4, 3)) for _ in range(3)), names=False, twice=True)


def test_a_policy_samples_and_passes_gradients_on() -> None:
    gs.manual_seed(0)
    mean, log_std = gs.zeros(3, requires_grad=True), gs.zeros(3, requires_grad=True)
    distribution, _ = policy(gs, mean, log_std)
    action = distribution.rsample((1000,))
    assert action.shape == (1000, 3)
    assert float(action.abs().max()) <= 2.0
    loss = distribution.log_prob(action).mean()
    grads = gs.autograd.grad(loss, (mean, log_std), create_graph=True)
    assert all(bool(g.isfinite().all()) for g in grads)
    gs.autograd.grad(sum((g**2).sum() for g in grads), (mean, log_std))
    # With the base known, the change of variables gives the density.
    numpy.testing.assert_allclose(
        distribution.log_prob(gs.zeros(3)).item(), -0.5 * 3 * numpy.log(2 * numpy.pi) - 3 * numpy.log(2), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["correlations", "correlations of four", "stick breaking", "stack", "cat of vectors"])
def test_jacobians_are_the_determinants_of_the_derivatives(name: str) -> None:
    transform = made(gs, name)
    for row in numpy.atleast_2d(CASES[name][1]):
        x = gs.tensor(row if name != "stack" else row[None], dtype=gs.float64)
        y = transform(x)
        matrix = gs.autograd.functional.jacobian(transform, x).reshape(y.numel(), x.numel())
        free = numpy.linalg.matrix_rank(matrix.numpy())
        assert free == x.numel()
        # The coordinates of the image are its elements below the diagonal, or all shares but the last.
        kept = {"correlations": y.tril(-1) != 0, "correlations of four": y.tril(-1) != 0} if y.dim() == 2 else {}
        chosen = kept.get(name, gs.arange(y.numel()).reshape(y.shape) < x.numel()).reshape(-1)
        expected = numpy.linalg.slogdet(matrix.numpy()[chosen.numpy()])[1]
        numpy.testing.assert_allclose(transform.log_abs_det_jacobian(x, y).sum().item(), expected, rtol=1e-9)


def test_large_numbers_lead_to_factors_of_correlations() -> None:
    transform = gs.distributions.CorrCholeskyTransform()
    x = gs.tensor([30.0, -7.0, 0.5], requires_grad=True)
    factor = transform(x)
    assert transform.codomain.check(factor)
    (slope,) = gs.autograd.grad(transform.log_abs_det_jacobian(x, factor), x)
    assert slope.isfinite().all()


def test_stacked_transforms_of_numbers_transform_a_distribution_number_by_number() -> None:
    # PyTorch's take a dimension that is counted from the right for a part of a value, and their densities add up wrong.
    d = gs.distributions
    base = d.Normal(gs.zeros(2).double(), gs.ones(2).double())
    stacked = d.TransformedDistribution(base, d.StackTransform([d.ExpTransform(), d.identity_transform], -1))
    value = gs.tensor([1.5, 0.3], dtype=gs.float64)
    expected = [d.LogNormal(0.0, 1.0).log_prob(value[0]).item(), d.Normal(0.0, 1.0).log_prob(value[1]).item()]
    numpy.testing.assert_allclose(stacked.log_prob(value).numpy(), expected, rtol=1e-6)
    assert (stacked.batch_shape, stacked.event_shape) == ((2,), ())


def test_parts_side_by_side_keep_a_cache() -> None:
    d = gs.distributions
    for transform in (
        d.CatTransform([d.TanhTransform(), d.ExpTransform()], cache_size=1),
        d.StackTransform([d.TanhTransform(), d.ExpTransform()]).with_cache(1),
        d.CatTransform([d.TanhTransform(), d.ExpTransform()]).with_cache(1),
    ):
        x = gs.tensor([25.0, 1.0])
        assert transform.inv(transform(x)) is x
        assert transform.with_cache(1) is transform


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda d, m: d.CatTransform([3]),
        lambda d, m: d.CatTransform([d.ExpTransform()], lengths=[2, 3]),
        lambda d, m: d.CatTransform([d.ExpTransform()], lengths=[2])(m.ones(3)),
        lambda d, m: d.CatTransform([d.ExpTransform()], dim=2, lengths=[2])(m.ones(3)),
        lambda d, m: d.StackTransform([3]),
        lambda d, m: d.StackTransform([d.ExpTransform()])(m.ones(3)),
        lambda d, m: d.CorrCholeskyTransform().forward_shape((4,)),
        lambda d, m: d.CorrCholeskyTransform().forward_shape(()),
        lambda d, m: d.CorrCholeskyTransform().inverse_shape((4,)),
        lambda d, m: d.CorrCholeskyTransform().inverse_shape((3, 4)),
        lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
        lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
        lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
        lambda d, m: d.ExpTransform(cache_size=2),
        lambda d, m: d.ReshapeTransform((2,), (3,)),
        lambda d, m: d.ReshapeTransform((2,), (2, 1)).forward_shape((3,)),
        lambda d, m: d.IndependentTransform(d.ExpTransform(), 2)(m.ones(3)),
        lambda d, m: d.StickBreakingTransform().forward_shape(()),
        lambda d, m: d.StickBreakingTransform().inv.event_dim + d.ReshapeTransform((2,), (2, 1)).event_dim,
        lambda d, m: d.LogNormal(0.0, -1.0),
        lambda d, m: d.LogNormal(0.0, 1.0).log_prob(m.tensor(-1.0)),
        lambda d, m: d.Pareto(m.tensor(1.0), m.tensor(1.0)).log_prob(m.tensor(0.5)),
        lambda d, m: d.Geometric(m.tensor([0.0, 0.5])),
        lambda d, m: d.Binomial(3, m.tensor(1.5)),
        lambda d, m: d.Binomial(m.tensor([1.0, 2.0]), m.tensor(0.5)).entropy(),
        lambda d, m: d.NegativeBinomial(3, m.tensor(1.0)),
        lambda d, m: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(m.zeros(2), 1.0)),
        lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(3)), d.Normal(m.zeros(2), 1.0)),
        lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(3, 2)), d.Normal(m.zeros(4, 2), 1.0)),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, lambda m: use(m.distributions, m))


@pytest.mark.torch
def test_no_name_is_foreign(torch: Any) -> None:
    assert set(transforms.__all__) <= set(torch.distributions.transforms.__all__)
