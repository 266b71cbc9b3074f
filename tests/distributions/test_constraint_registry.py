"""Transforms to regions, beside PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

REGIONS: dict[str, Callable[[Any, Any], Any]] = {
    "real": lambda m, c: c.real,
    "positive": lambda m, c: c.positive,
    "nonnegative": lambda m, c: c.nonnegative,
    "unit_interval": lambda m, c: c.unit_interval,
    "half_open_interval": lambda m, c: c.half_open_interval(0.0, 1.0),
    "interval": lambda m, c: c.interval(-1.0, 3.0),
    "interval of tensors": lambda m, c: c.interval(m.tensor([0.0, 1.0]), m.tensor([1.0, 2.0])),
    "less_than": lambda m, c: c.less_than(2.0),
    "greater_than": lambda m, c: c.greater_than(1.0),
    "simplex": lambda m, c: c.simplex,
    "real_vector": lambda m, c: c.real_vector,
    "independent": lambda m, c: c.independent(c.positive, 1),
    "lower_cholesky": lambda m, c: c.lower_cholesky,
    "positive_definite": lambda m, c: c.positive_definite,
    "positive_semidefinite": lambda m, c: c.positive_semidefinite,
    "corr_cholesky": lambda m, c: c.corr_cholesky,
    "cat": lambda m, c: c.cat([c.real, c.unit_interval], -1),
    "stack": lambda m, c: c.stack([c.real, c.positive], 1),
}
MATRICES = ("lower_cholesky", "positive_definite", "positive_semidefinite")


@pytest.mark.parametrize("table", ["biject_to", "transform_to"])
@pytest.mark.parametrize("region", REGIONS)
def test_transforms_lead_into_the_region_as_in_pytorch(torch: Any, region: str, table: str) -> None:
    def transform(m: Any) -> Any:
        return getattr(m.distributions, table)(REGIONS[region](m, m.distributions.constraints))

    if table == "biject_to" and region in MATRICES:
        for m in (gs, torch):
            with pytest.raises(NotImplementedError, match="Cannot transform"):
                transform(m)
        return
    found = []
    for m in (gs, torch):
        made, x = transform(m), m.tensor([[0.1, -0.2], [0.3, 0.5]])
        x = x[:, :1] if region == "corr_cholesky" else x
        y = made(x)
        assert REGIONS[region](m, m.distributions.constraints).check(y).all()
        found.append([y.numpy(), made.log_abs_det_jacobian(x, y).numpy() if table == "biject_to" else None])
        if table == "biject_to":
            numpy.testing.assert_allclose(made.inv(y).numpy(), x.numpy(), rtol=1e-4, atol=1e-6)
    for mine, theirs in zip(*found, strict=True):
        if theirs is not None:
            numpy.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_constrained_parameter_is_optimized() -> None:
    rates = gs.distributions.Gamma(gs.tensor([2.0, 5.0]), gs.tensor([1.0, 2.0]))
    free = gs.zeros(2, requires_grad=True)
    transform = gs.distributions.transform_to(gs.distributions.Gamma.support)
    optimizer = gs.optim.Adam([free], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        (-rates.log_prob(transform(free)).sum()).backward()
        optimizer.step()
    numpy.testing.assert_allclose(transform(free).tolist(), rates.mode.tolist(), rtol=1e-3)


def test_a_region_of_ones_own_is_registered(torch: Any) -> None:
    for m in (gs, torch):
        table = m.distributions.constraint_registry.ConstraintRegistry()

        class Ours(m.distributions.constraints.Constraint):  # type: ignore[misc, name-defined]
            pass

        @table.register(Ours)
        def factory(constraint: Any) -> Any:
            return "made"

        assert table(Ours()) == "made"
        assert table.register(Ours(), lambda constraint: "again") is not factory
        assert table(Ours()) == "again"
    with pytest.raises(NotImplementedError, match="Cannot transform Boolean constraints"):
        gs.distributions.biject_to(gs.distributions.constraints.boolean)
    same_complaint(torch, lambda m: m.distributions.constraint_registry.biject_to.register(3, lambda c: c))


@pytest.mark.torch
def test_regions_of_matrices_are_those_of_pytorch(torch: Any) -> None:
    matrices = [
        [[1.0, 0.0], [0.6, 0.8]],
        [[1.0, 0.0], [0.6, -0.8]],
        [[1.0, 0.6], [0.6, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.0], [0.0, 2.0]],
        [[1.0, math.nan], [0.0, 1.0]],
    ]
    regions = ["square", "symmetric", "positive_semidefinite", "positive_definite"]
    regions += ["lower_triangular", "lower_cholesky", "corr_cholesky"]
    for region in regions:
        answers = []
        for m in (gs, torch):
            constraint = getattr(m.distributions.constraints, region)
            checked = matrices[2:-1] if region.startswith("positive") else matrices  # of others PyTorch checks less
            answers.append([constraint.check(m.tensor(checked)).tolist(), repr(constraint), constraint.event_dim])
            oblong = constraint.check(m.ones(2, 3, 2)) if region != "corr_cholesky" else m.zeros(2) != 0
            answers[-1].append(oblong.tolist())
        assert answers[0] == answers[1], region


@pytest.mark.torch
def test_regions_side_by_side_are_those_of_pytorch(torch: Any) -> None:
    def answers(m: Any) -> list[Any]:
        c = m.distributions.constraints
        cat = c.cat([c.positive, c.boolean], -1, [1, 2])
        stack = c.stack([c.positive, c.nonnegative_integer])
        found = [c.positive_integer.check(m.tensor([0.0, 1.0, 1.5])).tolist()]
        found.append(cat.check(m.tensor([[0.5, 0.0, 1.0], [-0.5, 0.5, 1.0]])).tolist())
        found.append(stack.check(m.tensor([[0.5, -0.5], [1.0, 0.5]])).tolist())
        found += [c.simplex.check(m.tensor([0.4, 0.6])).item(), c.stack([c.simplex, c.simplex]).event_dim]
        for constraint in (cat, stack):
            found += [repr(constraint), constraint.is_discrete, constraint.event_dim]
        return found

    assert answers(gs) == answers(torch)


def test_regions_of_vectors_and_numbers_are_checked_side_by_side() -> None:
    c = gs.distributions.constraints
    pairs = gs.tensor([[0.4, 0.6, 1.0], [0.4, 0.6, -1.0], [0.4, 0.5, 1.0]])
    assert c.cat([c.simplex, c.independent(c.positive, 1)], -1, [2, 1]).check(pairs).tolist() == [True, False, False]
    assert c.cat([c.simplex, c.positive], -1, [2, 1]).check(pairs).tolist() == [True, False, False]
    assert c.stack([c.simplex, c.simplex, c.real_vector]).check(pairs).tolist() == [False, False, True]
    columns = gs.tensor([[0.4, 0.5], [0.6, 0.5]])
    assert c.stack([c.simplex, c.simplex], -1).check(columns).tolist() is True
    assert c.stack([c.simplex, c.simplex], -1).event_dim == 2


@pytest.mark.torch
def test_regions_that_depend_on_parameters_are_known_of_the_class(torch: Any) -> None:
    def answers(m: Any) -> list[Any]:
        d, c = m.distributions, m.distributions.constraints
        names = [name for name in gs.distributions.__all__ if isinstance(getattr(d, name), type)]
        dependent = {name for name in names if c.is_dependent(getattr(getattr(d, name), "support", None))}
        found = [dependent, c.is_dependent(c.real), repr(c.dependent), c.dependent(event_dim=2).event_dim]
        kinds = ("Binomial", "Categorical", "GeneralizedPareto", "Multinomial", "Pareto", "Uniform")
        found += [(getattr(d, kind).support.event_dim, getattr(d, kind).support.is_discrete) for kind in kinds]

        class Own(d.Distribution):  # type: ignore[misc, name-defined]
            @c.dependent_property(is_discrete=False, event_dim=1)
            def support(self) -> Any:
                return c.simplex

            @c.dependent_property
            def other(self) -> Any:
                return c.real

        own = Own(validate_args=False)
        return [*found, repr(Own.support), Own.support.event_dim, repr(own.support), repr(own.other)]

    assert answers(gs) == answers(torch)
    for use in (
        lambda c: c.dependent.is_discrete,
        lambda c: c.dependent.event_dim,
        lambda c: c.independent(c.dependent, 1).event_dim,
        lambda c: c.dependent.check(3),
    ):
        same_complaint(torch, lambda m, use=use: use(m.distributions.constraints))
