"""The gamma function's relatives, to the last digits."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

POSITIVE = numpy.concatenate([numpy.linspace(0.01, 40, 4001), [1.0, 2.0, 3.0, 12.9, 13.0, 1e-300, 1e300]])
NEGATIVE = numpy.linspace(-20.03, -0.017, 2003)


def test_lgamma_is_that_of_the_standard_library() -> None:
    for x in (POSITIVE, NEGATIVE):
        found = gs.lgamma(gs.tensor(x, dtype=gs.float64)).numpy()
        numpy.testing.assert_allclose(found, [math.lgamma(v) for v in x], rtol=1e-14, atol=2e-15)


def test_lgamma_at_poles_and_infinities() -> None:
    x = gs.tensor([0.0, -0.0, -1.0, -7.0, math.inf, -math.inf, math.nan])
    assert gs.lgamma(x).tolist()[:6] == [math.inf] * 6
    assert math.isnan(gs.lgamma(x)[-1].item())


@pytest.mark.parametrize("x", [0.3, 1.0, 4.5, 9.99, 10.0, 33.0, -0.5, -3.25])
def test_digamma_satisfies_its_recurrence(x: float) -> None:
    low, high = gs.digamma(gs.tensor([x, x + 1], dtype=gs.float64)).tolist()
    assert high == pytest.approx(low + 1 / x, rel=1e-13)


def test_known_values() -> None:
    one = gs.tensor(1.0, dtype=gs.float64)
    assert gs.digamma(one).item() == pytest.approx(-0.57721566490153286, rel=1e-15)
    assert gs.polygamma(1, one).item() == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert one.polygamma(3).item() == pytest.approx(math.pi**4 / 15, rel=1e-15)
    assert gs.mvlgamma(one * 3, 2).item() == pytest.approx(math.lgamma(3) + math.lgamma(2.5) + math.log(math.pi) / 2)


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_polygamma_of_negative_numbers_satisfies_its_recurrence(order: int) -> None:
    x = gs.tensor(numpy.linspace(-7.7, -0.3, 9), dtype=gs.float64)
    step = (-1) ** order * math.factorial(order) / x ** (order + 1)
    numpy.testing.assert_allclose((x + 1).polygamma(order).numpy(), (x.polygamma(order) + step).numpy(), rtol=1e-10)


def test_polygamma_at_poles_and_infinity() -> None:
    x = gs.tensor([0.0, -2.0, math.inf])
    assert x.polygamma(1).tolist() == [math.inf, math.inf, 0.0]
    assert x.polygamma(2).tolist()[:2] == [-math.inf, -math.inf]


@pytest.mark.torch
def test_derivatives_are_those_of_pytorch(torch: Any) -> None:
    x = numpy.concatenate([POSITIVE[5:2000:7], NEGATIVE[::11]])
    compare(torch, lambda lib, x: lib.lgamma(x), x)
    compare(torch, lambda lib, x: lib.polygamma(2, x), x)
    compare(torch, lambda lib, x: lib.polygamma(4, x), x)
    compare(torch, lambda lib, x: lib.mvlgamma(x, 3), numpy.linspace(1.2, 9, 40))


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.polygamma(-1, lib.ones(2)))
    same_complaint(torch, lambda lib: lib.mvlgamma(lib.ones(2), 0))
    same_complaint(torch, lambda lib: lib.lgamma(lib.ones(2, dtype=lib.complex128)))
