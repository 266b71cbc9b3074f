"""What exceeds a threshold, by tails of all kinds, beside PyTorch in its default precision and without it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

LOC, SCALE, SHAPE = [0.5, -1.0, 0.0, 2.0], [0.7, 2.0, 1.5, 1.0], [0.2, -0.4, 1.5, -1.5]
VALUES = [[0.6, 3.0, 0.5, 2.1], [1.5, -0.9, 20.0, 2.6]]


@pytest.fixture
def in_double(torch: Any) -> Iterator[Any]:
    """Let PyTorch compute in double precision, which it does where that is the default alone."""
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "question", ["log_prob", "cdf", "log_cdf", "log_survival_function", "icdf", "mean", "variance", "entropy"]
)
def test_answers_and_their_derivatives_are_those_of_pytorch(in_double: Any, question: str) -> None:
    def answer(m: Any, *given: Any) -> Any:
        asked = getattr(m.distributions.GeneralizedPareto(*given), question)
        if not callable(asked):
            found = asked
        elif question == "entropy":
            found = asked()
        else:
            found = asked(m.tensor([0.3, 0.9, 0.0, 0.5] if question == "icdf" else VALUES, dtype=m.float64))
        return m.nan_to_num(found, 7.0) + sum((x * 0).sum() for x in given)

    compare(in_double, answer, *map(numpy.array, (LOC, SCALE, SHAPE)), names=False, twice=False)


def test_without_a_tail_it_is_exponential_and_moves_smoothly_with_it() -> None:
    shape = gs.tensor([-1e-4, -1e-9, 0.0, 1e-9, 1e-4], dtype=gs.float64, requires_grad=True)
    excess = gs.distributions.GeneralizedPareto(gs.tensor(1.0).double(), gs.tensor(2.0).double(), shape)
    exponential = gs.distributions.Exponential(gs.tensor(0.5).double())
    value = gs.tensor(3.0, dtype=gs.float64)
    found, expected = excess.log_prob(value), exponential.log_prob(value - 1)
    numpy.testing.assert_allclose(found.detach().numpy(), expected.item(), atol=1e-4)
    assert found[2].item() == pytest.approx(expected.item(), abs=1e-15)
    (slope,) = gs.autograd.grad(found.sum(), shape)
    numpy.testing.assert_allclose(slope.numpy(), -0.5, atol=1e-3)  # z**2 / 2 - z, at z = 1
    (slope,) = gs.autograd.grad(excess.icdf(gs.tensor(0.5).double()).sum(), shape)
    numpy.testing.assert_allclose(slope.numpy(), math.log(2) ** 2, atol=1e-3)  # scale * w**2 / 2, at w = log(2)


def test_the_ends_of_the_support_are_what_it_begins_and_ends_with() -> None:
    excess = gs.distributions.GeneralizedPareto(0.0, 1.0, gs.tensor([-0.5, 0.0, 0.5]), validate_args=False)
    ends = gs.tensor([2.0, math.inf, math.inf])
    assert excess.support.upper_bound.tolist() == excess.icdf(gs.tensor(1.0)).tolist() == ends.tolist()
    assert excess.icdf(gs.tensor(0.0)).tolist() == [0, 0, 0]
    assert excess.log_prob(gs.tensor(-1.0)).tolist() == [-math.inf] * 3
    assert excess.log_prob(gs.tensor(3.0))[0].item() == -math.inf
    assert excess.cdf(gs.tensor(-1.0)).tolist() == [0, 0, 0]
    assert excess.cdf(gs.tensor(3.0))[0].item() == 1


def test_samples_pass_gradients_to_all_parameters() -> None:
    given = [gs.tensor(x, dtype=gs.float64, requires_grad=True) for x in (LOC, SCALE, SHAPE)]
    drawn = gs.distributions.GeneralizedPareto(*given).rsample((1000,))
    for slope in gs.autograd.grad(drawn.sum(), given):
        assert slope.isfinite().all()
        assert (slope != 0).all()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda d, m: d.GeneralizedPareto(0.0, -1.0, 0.5),
        lambda d, m: d.GeneralizedPareto(0.0, 1.0, math.nan),
        lambda d, m: d.GeneralizedPareto(0.0, 1.0, -0.5).log_prob(m.tensor(3.0)),
        lambda d, m: d.GeneralizedPareto(0.0, 1.0, 0.5).cdf(m.tensor(-1.0)),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, lambda m: use(m.distributions, m))
